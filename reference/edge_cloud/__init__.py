"""Speculative decoding between an edge that drafts and a cloud that verifies, by messages that may be lost.

``messages`` and ``wire`` define the messages, ``modes`` the part of q in them, ``shared_noise`` the noise that both
sides may share. ``edge`` and ``cloud`` are pure state machines; ``link`` connects them in memory, ``over_http`` between
processes, and ``decoder`` makes a ``Decoder`` of them.
"""
