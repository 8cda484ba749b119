"""Builder of Fetal-Gauge-style benchmarks from folders of fetal cases."""
