"""Adapt a verifier whose parameters, by their names, take other arguments than (p, q, draft_tokens)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specverify.subjects.fresh_generators import with_generator
from specverify.subjects.logarithms import with_logarithms
from specverify.subjects.parameter_order import in_named_order


def with_named_arguments(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``verify`` as a call with p, q and drafts, in this order, as probabilities, without a generator."""
    return with_logarithms(in_named_order(with_generator(verify)))
