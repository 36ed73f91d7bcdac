"""Subjects: decoders, verifiers, kernels, caches and engines, each converted to one type that the checks examine."""
