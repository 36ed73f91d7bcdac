"""Resolve names to subjects, run checks, plan statistics, replay failures, write reproduction scripts."""
