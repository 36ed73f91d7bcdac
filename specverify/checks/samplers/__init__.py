"""Tests of a black box by samples, one file per question; each may be evaluated after every batch.

``law``: against a known law. ``reference``: against another sampler. ``independence``: of rows and of calls.
"""
