"""Somebody else's code and the process it runs in: its endings, its time, and the line that is meant."""
