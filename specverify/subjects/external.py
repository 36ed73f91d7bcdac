"""Somebody else's decoder, named as ``package.module:attribute``.

The attribute is an ``Algorithm`` row, or a function that decodes:

    decode(draws, target, draft, prompt, *, horizon) -> new tokens
    decode(draws, target, draft, prompt, *, horizon, eos) -> new tokens

``draws.categorical(pmf, site)`` is its only randomness; ``target`` and ``draft`` map a tuple of all tokens so far to a
pmf ``[vocabulary]``. The whole decode is enumerated path by path. A function that cannot compute with exact rationals
(object arrays of ``Fraction``) is given float64 pmfs.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from reference import Algorithm, Claim, Decoder, Draws, Round, State, Task, Tokens
from reference.rounds import initial_state
from specverify.draws import Tape
from specverify.scenarios import SCENARIOS, scenario_task
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.subject import Subject, Variant

Decode = Callable[..., Any]


class UnusableSubject(Exception):  # noqa: N818 - reads as the sentence it is
    """The subject cannot be loaded, or does not have the shape of one."""


def external_subject(name: str) -> Subject:
    """Return the subject ``package.module:attribute``; raises ``UnusableSubject`` in one sentence."""
    found = _load(name)
    if isinstance(found, Algorithm):
        return algorithm_subject(found, prefix=name.partition(":")[0])._replace(name=name)
    return decode_subject(found, name)


def decode_subject(decode: Decode, name: str) -> Subject:
    """Return the subject of a decode function; claims LOSSLESS, because that is what speculation promises."""
    takes_eos = _check_signature(decode, name)
    subject = Subject(
        name=name,
        summary=(inspect.getdoc(decode) or "a decode function").partition("\n")[0],
        claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
        variants=(Variant("as given", partial(whole_decode, decode, takes_eos)),),
        stops_at_eos=takes_eos,
    )
    return subject._replace(rational=_computes_with_rationals(subject.variants[0]))


def whole_decode(decode: Decode, takes_eos: bool, task: Task) -> Decoder:
    """Return the decoder whose single round is the whole of ``decode``."""

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        limits = {"horizon": task.horizon, **({"eos": task.eos} if takes_eos else {})}
        new = _as_tokens(decode(draws, task.target, task.draft, state.tokens, **limits))
        return State(state.tokens + new, 0), Round(new, (), 0, 0)

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


def _as_tokens(answer: Any) -> Tokens:
    try:
        return tuple(int(token) for token in answer)
    except TypeError:
        raise UnusableSubject(
            f"decode returned {type(answer).__name__}, expected the new tokens as a sequence of integers"
        ) from None


def _load(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UnusableSubject(f"{name!r} is not a subject: expected package.module:callable")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UnusableSubject(f"cannot import {module_name}: {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        raise UnusableSubject(f"{module_name} has no attribute {attribute!r}")
    found = getattr(module, attribute)
    if not callable(found) and not isinstance(found, Algorithm):
        raise UnusableSubject(f"{name} is a {type(found).__name__}, expected a decode function or an Algorithm")
    return found


def _check_signature(decode: Decode, name: str) -> bool:
    expected = "decode(draws, target, draft, prompt, *, horizon[, eos])"
    try:
        signature = inspect.signature(decode)
    except (TypeError, ValueError):
        raise UnusableSubject(f"{name} has no signature that can be read, expected {expected}") from None
    for takes_eos in (True, False):
        try:
            signature.bind(None, None, None, (), horizon=1, **({"eos": ()} if takes_eos else {}))
        except TypeError:
            continue
        return takes_eos
    raise UnusableSubject(f"{name} takes {signature}, expected {expected}")


def _computes_with_rationals(variant: Variant) -> bool:
    scenario = next(item for item in SCENARIOS if item.shape == "generic" and item.horizon > 1)
    try:
        decoder = variant.build(scenario_task(scenario))
        decoder.step(Tape(0), decoder.init(scenario.prompt))
    except (TypeError, AttributeError, ValueError):
        return False
    except Exception:  # noqa: BLE001 - whatever else it raises, the checks will name
        return True
    return True
