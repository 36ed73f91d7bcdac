"""Speculative decoding between an edge that drafts and a cloud that verifies, by messages that may be lost.

``messages`` and ``wire`` say what travels, ``modes`` what of q travels, ``shared_noise`` what both sides may hold,
``edge`` and ``cloud`` are pure state machines, ``link`` joins them in memory, ``over_http`` between processes, and
``decoder`` makes them a ``Decoder``.
"""
