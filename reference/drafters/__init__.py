"""Drafters: the sources of drafted tokens."""
