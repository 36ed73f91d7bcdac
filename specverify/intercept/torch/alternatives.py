"""One draw that nobody has looked at, carried through a computation: what comes out for each of its outcomes.

A draft whose predecessor is rejected is fed to the target and forgotten. If every outcome of its draw were a run of
its own, all these runs would be the same but for numbers that are thrown away. So where all that is undecided in the
arguments depends on one categorical draw, the computation is done once for each outcome; a number on which all agree,
bit for bit, is known, and another is ``Chosen`` by the draw when somebody looks at it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from specverify.intercept.refusals import Declined, RuleDeclined, is_declined, tried
from specverify.intercept.symbolic.deferred import Categorical, Chosen, is_open, known
from specverify.intercept.torch.tensors import SymbolicTensor, in_all, is_stored, look_at, of_numbers

MOST_CARRIED = 8
"""With more of them the runs that are saved are fewer than the computations that are made."""
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def only_source(values: Any) -> Categorical | None:
    """Return the draw on which everything undecided in the arguments depends, if it is one of few outcomes."""
    sources = list(_sources(values))
    if not sources or any(source is not sources[0] for source in sources):
        return None
    few = isinstance(sources[0], Categorical) and np.count_nonzero(sources[0].pmf) <= MOST_CARRIED
    return sources[0] if few else None


def _sources(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _sources(item)
    elif isinstance(value, SymbolicTensor) and not is_stored(value):
        for element in value.elements.flat:
            if is_open(element):
                yield element.source if isinstance(element, Chosen) else element


def for_each_outcome(
    source: Categorical, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return what ``function`` gives, which writes to none of its arguments, undecided where it depends on ``source``.

    Raises ``RuleDeclined`` where the outcomes do not give the same shapes, dtypes, containers and plain values, or one
    of them raises an error.
    """
    result = {}
    for outcome, _ in source.outcomes():

        def given(value: Any, outcome: int = outcome) -> Any:
            return _at(value, source, outcome)

        try:
            with tried():
                result[outcome] = function(
                    *in_all(given, args), **{name: in_all(given, kwargs[name]) for name in kwargs}
                )
        except Exception as error:  # in the run in which this outcome is drawn it is raised again
            raise RuleDeclined(f"an outcome raises {type(error).__name__}") from error
    return merged_outcomes(source, result)


def _at(value: Any, source: Categorical, outcome: int) -> Any:
    if not isinstance(value, SymbolicTensor) or is_stored(value):
        return look_at(value)
    numbers = [
        outcome
        if element is source
        else element.values[outcome]
        if isinstance(element, Chosen) and element.source is source
        else known(element)
        for element in value.elements.flat
    ]
    return of_numbers(value, numbers)


def merged_outcomes(source: Categorical, found: Mapping[int, Any]) -> Any:
    """Return what was found for each outcome as one value, with lazy tensors where they differ."""
    values = list(found.values())
    first = values[0]
    if any(type(value) is not type(first) for value in values):
        raise RuleDeclined("outcomes give values of different types")
    if isinstance(first, torch.Tensor):
        return _merged_tensors(source, found)
    if isinstance(first, dict):
        if any(value.keys() != first.keys() for value in values):
            raise RuleDeclined("outcomes give dictionaries with different keys")
        return type(first)(
            (name, merged_outcomes(source, {outcome: found[outcome][name] for outcome in found})) for name in first
        )
    if type(first) in (list, tuple):
        if any(len(value) != len(first) for value in values):
            raise RuleDeclined("outcomes give sequences of different lengths")
        return type(first)(
            merged_outcomes(source, {outcome: found[outcome][item] for outcome in found}) for item in range(len(first))
        )
    if hasattr(first, "__dict__") and not callable(first):
        made = copy.copy(first)
        made.__dict__.update(merged_outcomes(source, {outcome: dict(found[outcome].__dict__) for outcome in found}))
        return made
    if any(value is not first and value != first for value in values):
        raise RuleDeclined("outcomes give different plain values")
    return first


def _merged_tensors(source: Categorical, found: Mapping[int, torch.Tensor]) -> torch.Tensor:
    tensors = list(found.values())
    first = tensors[0]
    if any((item.shape, item.dtype, item.device) != (first.shape, first.dtype, first.device) for item in tensors):
        raise RuleDeclined("outcomes give tensors of different shapes or dtypes")
    if first.element_size() not in _BITS:
        raise RuleDeclined("the bits of the dtype are not compared")
    bits = torch.stack([item.contiguous().view(_BITS[first.element_size()]) for item in tensors])
    agree = (bits == bits[0]).all(0)
    if bool(agree.all()):
        return first
    lists = {outcome: item.reshape(-1).tolist() for outcome, item in found.items()}
    elements = np.empty(first.numel(), dtype=object)
    elements[:] = lists[next(iter(lists))]
    for place in (~agree).reshape(-1).nonzero().reshape(-1).tolist():
        elements[place] = Chosen(source, {outcome: numbers[place] for outcome, numbers in lists.items()})
    return SymbolicTensor(elements.reshape(tuple(first.shape)), first.dtype, first.device)


def on_alternatives(function: Any, handler: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return ``handler``, and where that has no answer ``function`` for every outcome of the one undecided draw."""
    no_rule = Declined(f"there is no rule for {function} of random numbers")

    def answer(*args: Any, **kwargs: Any) -> Any:
        result = handler(*args, **kwargs) if handler else no_rule
        source = only_source((args, tuple(kwargs.values()))) if is_declined(result) else None
        if source is None:
            return result
        try:
            return for_each_outcome(source, function, args, kwargs)
        except RuleDeclined as differs:
            return differs.declined

    return answer
