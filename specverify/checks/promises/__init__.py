"""Checks of what an engine promises beside the law of its tokens: values, seeds, batches, statistics, constraints."""
