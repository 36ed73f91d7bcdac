"""The first difference of two greedy texts: the gap between the target's logits there, and the gap due to rounding.

Greedy speculation emits the argmax of the target, and so does the target alone. The two compute a row in different
passes with different rounding. If the largest logits nearly tie, either may be chosen and neither is wrong. Assume that
every probability of either pass has a relative error of at most r. A pass that prefers token x to token y then
satisfies p(x) (1 + r) >= p(y) (1 - r): a token of a right pass lies at most ln((1 + r) / (1 - r)) below the largest
logit. A token further below is no tie.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from specverify.reference import Tokens
from specverify.reference.validation import shown

NO_TOKEN = -1
"""Takes the place of a token after the end of a text."""
RESIDUE = 1e-9
"""A second outcome of a greedy call with a probability below this is ignored."""


class Logits(NamedTuple):
    """The target's logits of the next token, as a function of the text, with a bound on the probabilities' errors."""

    row: Callable[[Tokens], Any]
    """``row(new)`` returns the logits after the prompt and the new tokens ``new``, up to a common offset: an array
    ``[vocabulary]``; or a mapping from the most likely tokens to their logits, in which every missing token is at most
    as likely as the last entry and ``NO_TOKEN`` is the end of the text; or None if the logits are not available."""
    rounding: float
    """Bound on the relative error of a probability in either forward pass."""

    @property
    def bound(self) -> float:
        """Return how far a logit may be below the largest one if rounding may still make its token the argmax."""
        return 2 * math.atanh(self.rounding)


class Parting(NamedTuple):
    """The first position of the new tokens at which the texts of greedy speculation and of the target alone differ.

    ``setting`` is the name of the examined call in messages. ``speculative`` is the token of greedy speculation, or
    ``NO_TOKEN`` if its text has ended.
    """

    setting: str
    position: int
    """Index of the first differing new token, from 0."""
    plain: int
    """Token of the target alone; ``NO_TOKEN`` if its text has ended."""
    speculative: int
    gap: float
    """Difference between the largest logit and the smaller of the two tokens' logits. Infinite if a text has ended and
    the end is no token of the row."""
    bound: float
    """Largest logit difference that rounding explains."""
    near_tie: bool
    """Whether rounding explains the difference."""

    @property
    def undecided(self) -> str:
        """Return the reason for the verdict UNKNOWN, which replaces a refutation if the two tokens nearly tie."""
        return f"{self}; in float64 a bug would stay and a tie would not"

    def __str__(self) -> str:
        verdict = "a near-tie" if self.near_tie else "no tie"
        return (
            f"at new token {self.position} speculation emits {named(self.speculative)} and the target alone "
            f"{named(self.plain)}: {verdict}, their logits are {self.gap:.3g} apart and rounding explains "
            f"{self.bound:.3g}"
        )


def named(token: int) -> str:
    """Return a token as text for a message; "nothing" for the end of the text."""
    return "nothing" if token == NO_TOKEN else str(token)


def parting(setting: str, plain: Tokens, speculative: Tokens, logits: Logits) -> Parting | None:
    """Return the first difference of two different greedy texts: ``plain``, of the target alone, and ``speculative``.

    Returns None if the logits there are not known, or a token there is no integer. ``setting`` is the name of the call
    in messages. Raises ``ValueError`` for an invalid row of logits.
    """
    texts = zip((*plain, NO_TOKEN), (*speculative, NO_TOKEN), strict=False)
    position, pair = next((index, pair) for index, pair in enumerate(texts) if pair[0] != pair[1])
    row = logits.row(tuple(plain[:position]))
    if row is None or any(token != int(token) for token in pair):
        return None
    if pair[0] != NO_TOKEN and _distance_to_argmax(pair[0], row) == math.inf:
        raise ValueError(f"the logits are {shown(row)}, expected a row with a place for token {pair[0]}")
    gap = max(_distance_to_argmax(token, row) for token in pair)
    return Parting(setting, position, int(pair[0]), int(pair[1]), gap, logits.bound, gap <= logits.bound)


def greedy_parting(
    setting: str, logits: Logits | None, law: Mapping[Any, Any], expected: Mapping[Any, Any]
) -> Parting | None:
    """Return the first difference between the greedy text with speculation and the only text of ``expected``.

    ``law`` maps each text with speculation to its probability. If there are several texts, the likeliest that is not
    expected is compared, and the result has ``bound`` 0 and is no near-tie: rounding explains a near-tie of two logits,
    but not several texts. Returns None if the texts are equal, if ``expected`` has several texts, or if the logits are
    not known. ``setting`` is the name of the call in messages.
    """
    plain, text = only_outcome(expected), only_outcome(law)
    if logits is None or not isinstance(plain, tuple) or text == plain:
        return None
    if isinstance(text, tuple):
        return parting(setting, plain, text, logits)
    others = law.keys() - {plain}
    likeliest = max(others, key=lambda outcome: (law[outcome], outcome), default=None)
    result = parting(setting, plain, likeliest, logits) if isinstance(likeliest, tuple) else None
    return None if result is None else result._replace(bound=0.0, near_tie=False)


def _distance_to_argmax(token: int, row: Any) -> float:
    """Return how far the logit of ``token`` lies below the largest logit of ``row``.

    ``row`` is an array of all logits, or a mapping from some tokens to their logits. If a mapping has no entry for
    ``token``, its smallest logit is used; but the result is infinite for ``NO_TOKEN``, the end of the text. The result
    is also infinite for a token outside of an array.
    """
    by_token = isinstance(row, Mapping)
    plain = list(row.values()) if by_token else row.detach().double().cpu().numpy() if hasattr(row, "detach") else row
    values = np.asarray(plain, dtype=np.float64)
    if values.ndim != 1 or not len(values) or np.isnan(values).any() or not math.isfinite(values.max()):
        raise ValueError(f"the logits are {shown(row)}, expected a row of numbers")
    if by_token:
        last = -math.inf if token == NO_TOKEN else values.min()
        return float(values.max() - row.get(token, last))
    return float(values.max() - values[int(token)]) if token in range(len(values)) else math.inf


def only_outcome(probabilities: Mapping[Any, Any]) -> Any:
    """Return the only outcome of a law, or None if it has several; ``probabilities`` maps outcomes to probabilities.

    Outcomes with a probability of at most ``RESIDUE`` do not count, because rounding may cause them.
    """
    likely = [outcome for outcome, mass in probabilities.items() if mass > RESIDUE]
    return likely[0] if len(likely) == 1 else None
