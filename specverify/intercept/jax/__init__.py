"""Intercept JAX's random calls, and compute with their results: see ``calls``.

Imported only if jax has already been imported.
"""
