"""Speculative decoding between an edge that drafts and a cloud that verifies, by messages that may be lost.

``messages`` defines the messages and ``wire`` their JSON; ``modes`` defines which part of q is sent; ``shared_noise``
is the noise that both sides may share. ``edge`` and ``cloud`` are pure state machines. ``link`` connects them in
memory, ``over_http`` between processes, and ``decoder`` makes a ``Decoder`` of them.
"""
