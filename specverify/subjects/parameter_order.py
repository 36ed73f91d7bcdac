"""The order of a verifier's parameters p, q and drafts, as far as their names determine it.

The arguments p, q and drafts are positional. If a verifier that takes q first got p first, right code would be refuted
without a visible reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature
from typing import Any

from specverify.base.callables import signature_of, with_parameters

ORDER = ("p", "q", "draft_tokens")
TREE_ORDER = ("p", "q", "parents", "draft_tokens")
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("token", "tokens", "id", "ids", "drafts"), "tokens"),
    **dict.fromkeys(
        ("p", "q", "prob", "probs", "logit", "logits", "log", "logp", "logq", "logprob", "logprobs", "pmf", "pmfs"),
        "rows",
    ),
}
"""What a word in the name of a parameter states about its values."""
_MODELS: Mapping[str, str] = {
    **dict.fromkeys(("target", "large", "big", "teacher", "verifier"), "p"),
    **dict.fromkeys(("draft", "drafter", "small", "student", "speculator", "assistant", "proposal"), "q"),
}
"""The row that belongs to a model, by a word for the model in the name of a parameter."""


def in_named_order(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of (p, q, drafts), in this order, that passes them to the right parameters of ``verify``.

    The parameters are recognised by their names, one of them also by the names of the others. Keyword-only ones are
    passed by name. A function with a parameter for parents is one of (p, q, parents, drafts). Returns ``verify``
    unchanged if all of them are positional and the names do not show another order.
    """
    signature = signature_of(verify)
    if signature is None:
        return verify
    taken = parameters_in_order(signature)
    roles = roles_of([item.name for item in taken])
    order = TREE_ORDER if "parents" in roles else ORDER
    positional = all(item.kind is not item.KEYWORD_ONLY for item in taken[: len(order)])
    if {*roles} != {*order} or (tuple(roles) == order and positional):
        return verify
    return passed_in_order(verify, signature, roles)


def passed_in_order(verify: Callable[..., Any], signature: Signature, roles: Sequence[str]) -> Callable[..., Any]:
    """Return a function of (p, q, drafts), or of (p, q, parents, drafts), in this order, that calls ``verify``.

    ``roles`` are the roles of the first parameters of ``verify``, which has the signature ``signature``. Keyword-only
    ones are passed by name.
    """
    taken, count = parameters_in_order(signature), len(roles)
    order = TREE_ORDER if "parents" in roles else ORDER
    positional = sum(item.kind is not item.KEYWORD_ONLY for item in taken[:count])
    places = [order.index(role) for role in roles]
    names = [item.name for item in taken[positional:count]]

    @wraps(verify)
    def reordered(*given: Any, **named: Any) -> Any:
        here = [given[place] for place in places]
        return verify(*here[:positional], *given[count:], **dict(zip(names, here[positional:], strict=True)), **named)

    first = [
        taken[roles.index(role)].replace(kind=Parameter.POSITIONAL_ONLY, default=Parameter.empty) for role in order
    ]
    return with_parameters(reordered, signature, [*first, *taken[count:]])


def parameters_in_order(signature: Signature) -> list[Parameter]:
    """Return the parameters of a verifier, with the keyword-only ones that may be left out at the end.

    A parameter whose name states that it is p, q, parents or drafts is not moved. ``functools.partial`` makes all
    parameters after one that it sets by name keyword-only.
    """
    items = signature.parameters.values()
    optional = {
        item.name
        for item in items
        if item.kind is item.KEYWORD_ONLY and item.default is not item.empty and not role_of(item.name)
    }
    return sorted(items, key=lambda item: 2 if item.kind is item.VAR_KEYWORD else item.name in optional)


def roles_of(names: Sequence[str]) -> list[str]:
    """Return the roles of the first three of the parameters ``names``: "p", "q" or "draft_tokens"; "" if unknown.

    If a parameter has the role "parents", the roles of the first four are returned. If all but one of them have
    different roles by their names, the last one has the remaining role, unless the name of a later parameter states
    that role.
    """
    roles = [role_of(name) for name in names]
    order = TREE_ORDER if "parents" in roles else ORDER
    first, left = roles[: len(order)], {*order}.difference(roles)
    if first.count("") == len(left) == 1:
        first[first.index("")] = left.pop()
    return first


def names_rows(parameter: str) -> bool:
    """Return whether a parameter's name states that its values are rows of probabilities, logits or logarithms."""
    return any(_KINDS.get(word) == "rows" for word in re.split(r"_+", parameter.lower()))


def role_of(parameter: str) -> str:
    """Return the role that a parameter's name indicates: "p", "q", "parents" or "draft_tokens"; "" if none.

    The last word that states a kind of values decides: ``draft_token_probs`` are rows. ``draft`` alone states nothing.
    """
    words = re.split(r"_+", parameter.lower())
    if {"parent", "parents"} & {*words}:
        return "parents"
    kinds = [_KINDS[word] for word in words if word in _KINDS]
    if kinds and kinds[-1] == "tokens":
        return "draft_tokens"
    models = {_MODELS[word] for word in words if word in _MODELS}
    if len(models) == 1:
        return "" if words == ["draft"] else models.pop()
    letters = {*words} & {"p", "q"}
    return letters.pop() if len(letters) == 1 and all(word in _KINDS for word in words) else ""
