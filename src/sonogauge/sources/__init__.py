"""Foreign data in: readers of file formats, and one module for each known data set."""
