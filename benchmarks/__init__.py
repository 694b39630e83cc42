"""Benchmarks against peers and against the floor, in one run, as ratios."""
