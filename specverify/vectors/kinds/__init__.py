"""The kinds of vectors, one file each, ending in a ``Kind``."""
