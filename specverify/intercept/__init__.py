"""Intercept the random calls of foreign code and answer them by draws."""
