"""Fetal-Gauge-style benchmarks: planes, conformity, orientation, diagnosis and boxed structures of fetal ultrasound."""
