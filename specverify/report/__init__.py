"""Verdicts written for readers and for programs."""
