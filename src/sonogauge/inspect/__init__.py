"""At home in Inspect: benchmarks as its tasks, its logs as replies, runs as its logs; extra `[inspect]`."""
