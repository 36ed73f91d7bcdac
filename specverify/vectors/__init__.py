"""Test vectors for implementations in any language, and the grading of their answers."""
