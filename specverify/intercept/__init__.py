"""Intercept the random calls of foreign code: ``draws``, an interpreter, chooses the outcome of each call."""
