"""A black box: a function that returns samples, with a number (seed) that distinguishes its calls.

  sample(seed, n) -> n token sequences
  sample(seed, n) -> {"tokens": n token sequences, "accepted": n numbers of drafts that were accepted}
  sample(seed, n) -> n mappings, each with "tokens", and with "accepted" if it counts them

The n sequences of one call, and those of calls with different seeds, must be independent. A sequence is a tuple, list
or array of token ids; an integer stands for a sequence of one token. Verdicts are decided by the samples alone; the
code of the function is only searched for the cause of a refutation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from specverify.base.arguments import is_token, shown
from specverify.base.callables import signature_of, with_first
from specverify.reference import Tokens
from specverify.subjects.call_arguments import VARIADIC, names_seed
from specverify.subjects.subject import UnusableSubject

MOST_ACCEPTED: Final = 100_000
"""The largest valid number of accepted drafts of one sequence."""


class Sampler(NamedTuple):
    """A sampling function and its name."""

    name: str
    sample: Callable[[int, int], Any]
    """``sample(seed, n)`` -> n sequences of token ids."""


class SampledText(NamedTuple):
    """The sampled sequences of one call (``tokens``) and the values reported with them."""

    tokens: Sequence[Tokens]
    accepted: Sequence[int] | None = None
    """The number of accepted drafts of each sequence; None if the sampler does not return it."""


def with_seed_first(sample: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the seed as its first argument and calls ``sample``.

    Parameters are recognised by their names. Returns ``sample`` unchanged if its first parameter is a seed, or if not
    exactly one of its parameters is. Without this function, a seed could be passed as the number of samples, and
    billions of samples would be drawn.
    """
    signature = signature_of(sample)
    taken = [] if signature is None else [item for item in signature.parameters.values() if item.kind not in VARIADIC]
    seeds = [item for item in taken if names_seed(item.name)]
    if len(seeds) != 1 or seeds[0] is taken[0] or seeds[0].kind is inspect.Parameter.POSITIONAL_ONLY:
        return sample
    return with_first(sample, seeds[0].name)


def drawn(sampler: Sampler, seed: int, number: int) -> Sequence[Tokens]:
    """Return ``number`` sequences from one call of the sampler with this seed.

    Raises ``UnusableSubject`` for a result that is no such sequences, and for errors of the sampler.
    """
    return answered(sampler, seed, number).tokens


def answered(sampler: Sampler, seed: int, number: int) -> SampledText:
    """Return ``number`` sampled sequences of a call with ``seed``, and the values reported with them.

    Raises ``UnusableSubject`` for any other result, and for errors of the sampler.
    """
    try:
        answer = sampler.sample(seed, number)
    except UnusableSubject:
        raise
    except Exception as error:
        said = f"{sampler.name}(seed={seed}, n={number}) raised {type(error).__name__}: {error}"
        raise UnusableSubject(said) from error
    asked = f"{sampler.name}(seed={seed}, n={number}) returned"
    if not isinstance(answer, Mapping):
        return SampledText(_sequences(answer, number, asked), accepted_of_rows(answer))
    if "tokens" not in answer:
        raise UnusableSubject(f"{asked} {shown(answer)}, expected tokens, and accepted if it counts them")
    accepted = _numbers(answer["accepted"], number, asked) if "accepted" in answer else None
    return SampledText(_sequences(answer["tokens"], number, asked), accepted)


def _sequences(answer: Any, number: int, asked: str) -> Sequence[Tokens]:
    plain = answer.tolist() if hasattr(answer, "tolist") else answer
    if isinstance(plain, (str, bytes)) or not hasattr(plain, "__iter__"):
        raise UnusableSubject(f"{asked} {shown(answer)}, expected {number} sequences of token ids")
    rows = tuple(plain)
    if len(rows) != number:
        raise UnusableSubject(f"{asked} {len(rows)} sequences, expected {number}")
    return [_tokens(row, asked) for row in rows]


def accepted_of_rows(answer: Any) -> list[int] | None:
    """Return the number of accepted drafts of each row in ``answer``; None if a row is no mapping with this number."""
    rows = answer if isinstance(answer, (list, tuple)) else ()
    counts: list[Any] = [row.get("accepted") if isinstance(row, Mapping) else None for row in rows]
    return [int(count) for count in counts] if counts and all(map(is_token, counts)) else None


def _numbers(given: Any, number: int, asked: str) -> Sequence[int]:
    plain = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(plain, (list, tuple)) or len(plain) != number or not all(map(is_token, plain)):
        raise UnusableSubject(f"{asked} accepted {shown(given)}, expected {number} whole numbers of at least 0")
    if max(plain, default=0) > MOST_ACCEPTED:
        raise UnusableSubject(f"{asked} accepted {max(plain)} drafts of one sequence, expected {MOST_ACCEPTED} at most")
    return [int(item) for item in plain]


def _tokens(row: Any, asked: str) -> Tokens:
    if isinstance(row, Mapping) and "tokens" in row:
        row = row["tokens"]
    plain = row.tolist() if hasattr(row, "tolist") else row
    tokens = (plain,) if is_token(plain) else plain
    if isinstance(tokens, (tuple, list)):
        result = tuple(item.item() if hasattr(item, "item") else item for item in tokens)
        if all(map(is_token, result)):
            return result
    raise UnusableSubject(f"{asked} the sequence {shown(row)}, expected token ids, each a whole number of at least 0")
