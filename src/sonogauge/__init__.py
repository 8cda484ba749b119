"""Build, run, score and compare ultrasound benchmarks for vision-language models."""

__version__ = "0.1.0"
