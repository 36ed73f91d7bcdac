"""Test vectors for programs in any language, and what their answers are worth."""
