"""Symbolic random numbers: compared, computed with, raced, and left undecided."""
