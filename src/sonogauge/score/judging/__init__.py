"""Judging free text: rules first, then models that give 0, 0.5 or 1; verdicts are stored and checked by physicians."""
