"""Class Q: the output is exact and acceptance collapses."""
