"""The stages between cases and a benchmark: pure functions over record batches or over the light facts of all cases."""
