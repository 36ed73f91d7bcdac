"""Tests of a black box by samples, one file per question; each can be evaluated after every batch of samples.

``sampler_law``: against a known law. ``reference``: against another sampler. ``independent_rows``: of rows and calls.
"""
