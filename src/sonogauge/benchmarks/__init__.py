"""The benchmarks: data files, prompts, their check, and the totals over tasks."""
