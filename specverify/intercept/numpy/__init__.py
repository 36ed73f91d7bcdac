"""The random calls of NumPy."""
