"""From names to verdicts: subjects found, checks run, statistics planned, findings repeated and written down."""
