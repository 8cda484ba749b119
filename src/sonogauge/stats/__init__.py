"""Clustered resampling, intervals and paired differences: shared ground below score and compare."""
