"""One module for each kind of foreign file; each gives plain arrays, rows or drafts of cases."""
