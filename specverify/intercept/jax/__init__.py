"""JAX's random calls, answered by draws, and what is computed of them: see ``calls``.

Imported where jax has been imported already, and nowhere else.
"""
