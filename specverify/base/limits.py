"""Limits where none is given."""

SECONDS = 600.0
"""Of a subject, for all its checks together."""
