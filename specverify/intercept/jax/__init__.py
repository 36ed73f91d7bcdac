"""JAX's random calls, answered by draws, and computations with their results: see ``calls``.

Imported only if jax has already been imported.
"""
