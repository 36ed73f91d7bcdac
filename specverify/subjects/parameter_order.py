"""The order of a verifier's parameters p, q and drafts, as far as their names determine it.

The arguments p, q and drafts are positional. If a verifier that takes q first got p first, right code would be refuted
without a visible reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from specverify.base.callables import signature_of, with_parameters

ORDER = ("p", "q", "draft_tokens")
_TOKENS, _ROWS = (
    {"token", "tokens", "id", "ids", "drafts"},
    {"p", "q", "prob", "probs", "logit", "logits", "pmf", "pmfs"},
)


def in_named_order(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of (p, q, drafts), in this order, that passes them to the right parameters of ``verify``.

    The parameters are recognised by their names, and keyword-only ones are passed by name. Returns ``verify`` unchanged
    if all three are positional and the names do not show another order.
    """
    signature = signature_of(verify)
    if signature is None:
        return verify
    taken = list(signature.parameters.values())
    roles = [_role(item.name) for item in taken[:3]]
    positional = sum(item.kind is not item.KEYWORD_ONLY for item in taken[:3])
    if set(roles) != set(ORDER) or (tuple(roles) == ORDER and positional == len(ORDER)):
        return verify
    places = [ORDER.index(role) for role in roles]
    names = [item.name for item in taken[positional:3]]

    @wraps(verify)
    def reordered(*given: Any, **named: Any) -> Any:
        here = [given[place] for place in places]
        return verify(*here[:positional], *given[3:], **dict(zip(names, here[positional:], strict=True)), **named)

    first = [taken[roles.index(role)] for role in ORDER]
    return with_parameters(
        reordered, signature, [*(item.replace(kind=item.POSITIONAL_ONLY) for item in first), *taken[3:]]
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
