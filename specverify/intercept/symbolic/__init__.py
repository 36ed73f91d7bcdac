"""Symbolic random numbers (without a value): arithmetic, comparisons, races, and outcomes that were not read."""
