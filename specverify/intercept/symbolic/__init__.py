"""Symbolic random numbers: their arithmetic, comparisons, races and unread outcomes."""
