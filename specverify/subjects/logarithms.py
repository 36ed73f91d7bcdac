"""Verifiers that take logarithms of probabilities, as the names of their first two parameters state."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from specverify.base.callables import signature_of

_LOGARITHM = re.compile(r"(^|_)log_?(p|q|ps|probs?)(_|$)", re.IGNORECASE)
"""Matches the name of a parameter for logarithms of probabilities, such as ``target_logprobs`` or ``logp``."""


def with_logarithms(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of rows of p and q that calls ``verify`` with their logarithms.

    Returns ``verify`` unchanged unless the names of its first two parameters state that it takes logarithms. The
    logarithm of 0 is -inf.
    """
    signature = signature_of(verify)
    names = [] if signature is None else list(signature.parameters)[:2]
    if len(names) < 2 or not all(map(_LOGARITHM.search, names)):
        return verify

    @wraps(verify)
    def of_probabilities(p: Any, q: Any, *others: Any, **named: Any) -> Any:
        return verify(_log(p), _log(q), *others, **named)

    return of_probabilities


def _log(rows: Any) -> Any:
    """Return the logarithms of ``rows``, in an array of the same library and dtype."""
    if isinstance(rows, np.ndarray):
        with np.errstate(divide="ignore"):
            return np.log(rows)
    torch, jax_numpy = sys.modules.get("torch"), sys.modules.get("jax.numpy")
    if torch is not None and isinstance(rows, torch.Tensor):
        return rows.log()
    return rows if jax_numpy is None else jax_numpy.log(rows)
