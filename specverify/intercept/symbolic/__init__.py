"""Random numbers that nobody has valued: compared, computed with, raced, and left undecided."""
