"""Default limits of a run: its time, the size of a cache, and the least probable edge that refutes."""

SECONDS = 600.0
"""Time limit in seconds for all checks of a subject together."""
MOST_PROGRAMS = 512
"""Number of programs whose results are cached. It exceeds the number of an engine's programs, because each check runs
all of them in turn."""
EDGE = 1e-9
"""Smallest probability per draft at which an edge refutes; ``docs/soundness.md`` gives the reasons."""
