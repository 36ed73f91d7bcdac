"""Test vectors for programs in any language, and the grading of answers."""
