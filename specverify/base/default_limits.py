"""Default limits of runs."""

SECONDS = 600.0
"""Of a subject, for all its checks together."""
MOST_PROGRAMS = 512
"""Programs of which results are kept: more than one engine has, since the checks go through all of them in turn."""
EDGE = 1e-9
"""Probability per draft from which on an edge refutes; ``docs/soundness.md`` gives the reasons."""
