"""Planted bugs of placeholders, prefill chunks, preemption and aborted requests."""
