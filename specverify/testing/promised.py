"""Validate the arguments ``returns``, ``promises`` and ``sizes`` of the check functions.

``returns`` names values that an engine returns beside the tokens, such as log-probabilities. ``promises`` names
properties of the tokens other than their law, such as equal texts for equal seeds. ``sizes`` sets the size of the
examined cases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from specverify.base.arguments import argument_error, check_callable, check_count
from specverify.laws.size_scenarios import Sizes
from specverify.promises.known_values import KINDS, Kind
from specverify.subjects.alphabet_hint import MOST_TOKENS

Returns = Collection[str] | Mapping[str, str | Callable[..., Any]]
"""Names of values that are returned with the tokens, or name -> the promise about the value."""


def promised_values(returns: Any) -> Mapping[str, Kind]:
    """Return name -> promise for the values in ``returns``; a promise is None if it is not stated.

    ``returns`` is a collection of names, a mapping from names to promises, or None for no values. Raises ``ValueError``
    for an invalid argument.
    """
    if returns is None:
        return {}
    if isinstance(returns, str) or not isinstance(returns, Collection) or not returns:
        expected = "names of returned values, such as ('logprobs',), or {'logprobs': 'raw'}"
        raise argument_error("returns", returns, expected)
    for name in returns:
        if not isinstance(name, str):
            raise argument_error("a name in returns", name, "the name of a returned value, such as 'logprobs'")
    if not isinstance(returns, Mapping):
        return dict.fromkeys(returns)
    for name, kind in returns.items():
        if not (kind is None or callable(kind) or kind in KINDS):
            said = f"{', '.join(map(repr, KINDS))}, or a function of the new tokens"
            raise argument_error(f"the entry {name} of returns", kind, said)
    return dict(returns)


def promised_pairs(promises: Any, known: Collection[str]) -> frozenset[str]:
    """Return the names in ``promises``, a collection or None, after validation; ``known`` are the valid names.

    Each names a promise about the texts of an engine. Raises ``ValueError`` for an invalid name or form.
    """
    if promises is None:
        return frozenset()
    if isinstance(promises, str) or not isinstance(promises, Collection):
        raise argument_error("promises", promises, f"a collection of some of {', '.join(map(repr, known))}")
    for name in promises:
        if name not in known:
            raise argument_error("a promise", name, f"one of {', '.join(map(repr, known))}")
    return frozenset(promises)


def promised_constraint(promises: Any) -> tuple[Any, Callable[..., Any] | None]:
    """Return the names in ``promises`` without the constraint ``"allowed"``, and the constraint's function or None.

    ``promises`` is a collection of names, or a mapping from names to None and from ``"allowed"`` to its function.
    Raises ``ValueError`` if ``"allowed"`` has no function, or another name has one.
    """
    if not isinstance(promises, Mapping):
        if isinstance(promises, Collection) and "allowed" in promises and not isinstance(promises, str):
            raise argument_error("promises", promises, "{'allowed': mask}, where mask(new) is a mask [vocabulary]")
        return promises, None
    allowed = promises.get("allowed")
    if "allowed" in promises:
        check_callable(allowed, "the constraint in promises", arguments=1)
    for name, value in promises.items():
        if name != "allowed" and value is not None:
            raise argument_error(f"the value of promise {name!r}", value, "None: only 'allowed' has a function")
    return [name for name in promises if name != "allowed"], allowed


MOST_SIZE = 1 << 20


def checked_sizes(sizes: Any) -> Sizes:
    """Return the validated sizes, default ones for None. Raises ``ValueError`` for anything that is not ``Sizes``."""
    if sizes is None:
        return Sizes()
    if not isinstance(sizes, Sizes):
        raise argument_error("sizes", sizes, "Sizes(...), such as Sizes(horizon=256)")
    for name, size in sizes._asdict().items():
        if size:
            most = MOST_TOKENS if name == "least_vocabulary" else MOST_SIZE
            check_count(size, f"the {name} of sizes", least=2 if "vocabulary" in name else 1, most=most)
    return sizes
