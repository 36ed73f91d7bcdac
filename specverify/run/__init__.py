"""From names to verdicts: find subjects, run checks, plan statistics, repeat findings, write scripts."""
