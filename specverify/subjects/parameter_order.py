"""The order of a verifier's parameters p, q and drafts, as far as their names determine it.

The arguments p, q and drafts are positional. If a verifier took q first, p and q would be exchanged, and right code
would be refuted without a visible reason.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from specverify.subjects.subject import UnusableSubject

ORDER = ("p", "q", "draft_tokens")
_TOKENS, _ROWS = {"token", "tokens", "id", "ids"}, {"p", "q", "prob", "probs", "logit", "logits", "pmf", "pmfs"}


def check_order(verify: Callable[..., Any], name: str) -> None:
    """Raise ``UnusableSubject`` if the first three parameters of ``verify`` are p, q and the drafts in another order.

    The order is judged by the names of the parameters. ``name`` is the name of the verifier in the message.
    """
    try:
        signature = inspect.signature(verify)
    except (TypeError, ValueError):
        return
    roles = tuple(map(_role, list(signature.parameters)[:3]))
    if set(roles) == set(ORDER) and roles != ORDER:
        taken = ", ".join(ORDER[ORDER.index(role)] for role in roles)
        raise UnusableSubject(
            f"{name} takes {signature}, expected the target's rows, the draft's rows and the drafts in this order: "
            f"hand over lambda p, q, draft_tokens: verify({taken})"
        )


def _role(parameter: str) -> str:
    """Return the role that a parameter's name indicates: "p", "q" or "draft_tokens"; "" if none."""
    words = set(re.split(r"_+", parameter.lower()))
    if words & _TOKENS:
        return "draft_tokens"
    if parameter in {"p", "q"}:
        return parameter
    of_models = {"p": "target" in words, "q": "draft" in words and bool(words & _ROWS)}
    return next((role for role, named in of_models.items() if named), "")
