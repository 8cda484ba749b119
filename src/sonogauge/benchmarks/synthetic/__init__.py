"""Simulated B-mode images with exact references for the eight kinds of task; not clinical."""
