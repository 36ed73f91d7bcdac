"""Adapt a verifier whose parameters, by their names, take other arguments than (p, q, draft_tokens)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specverify.subjects.certain_drafts import with_unused_q
from specverify.subjects.fresh_generators import with_generator
from specverify.subjects.logarithms import with_logarithms
from specverify.subjects.parameter_order import in_named_order


def with_named_arguments(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``verify`` as a function of p, q and drafts, in this order, with rows of probabilities.

    If, by the names of its parameters, ``verify`` takes another order, logarithms, no q or a random generator, the
    returned function converts the arguments and passes a new generator itself.
    """
    return with_logarithms(in_named_order(with_unused_q(with_generator(verify))))
