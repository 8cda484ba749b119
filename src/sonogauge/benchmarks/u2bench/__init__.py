"""U2-BENCH: 51 scenarios of eight tasks as data, and its total."""
