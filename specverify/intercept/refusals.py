"""Every reason for which interception refuses a program: one row each, with what its author can do about it.

A refusal is a value: the code of its row, what was asked in the words of this case, the operation of the author's
library, the place in the author's file, and a way out. ``docs/refusals.md`` is written from this table.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeGuard


class Reason(NamedTuple):
    """Why a program is refused."""

    meaning: str
    way_out: str


SAMPLES = "let samples decide (`sampled=True`)"
REASONS: dict[str, Reason] = {
    # the number itself
    "value-needed": Reason(
        "An operation needs the number itself, and no rule is known for what it makes of a random one.",
        f"compare the random number with what it would be compared with afterwards, or {SAMPLES}",
    ),
    "float-needed": Reason(
        "A library takes nothing but plain floats or ints, and was given a random number.",
        "compare the random number itself, and hand over the outcome",
    ),
    "order-alone-is-known": Reason(
        "Of several random numbers the order is known, and the value of one is needed.",
        "use the place (`argmax`, `indices`), or compare the numbers before they are put in order",
    ),
    "unknown-sign": Reason(
        "What an operation gives depends on the sign of a random number, which may be either.",
        "compare the number with 0 first, or shift it to one side of 0",
    ),
    "rest-needed": Reason(
        "The rest of a division, or the nearest whole number, is needed of a random number.",
        "draw a whole number (`randint`), or take the whole part (`floor`)",
    ),
    "out-of-range": Reason(
        "A factor or an exponent of a random number is 0, infinite or not a float.",
        "compute with logarithms, or clamp the factor",
    ),
    # comparisons
    "near-an-atom": Reason(
        "A number that has a value of positive probability (a clamp, a whole part) is compared within rounding of it.",
        "compare with the very number of the clamp, leave the clamp out, or draw in float32",
    ),
    "equal-numbers": Reason(
        "Which of several equal numbers comes first, or whether two numbers are equal, decides.",
        "break ties by the place, or use noise that is not clamped",
    ),
    "unsorted-bounds": Reason(
        "A random number is looked up in bounds that are not sorted.",
        "sort the bounds, as a cumulated sum is",
    ),
    "compared-in-two-ways": Reason(
        "A random number decides several things, and how they hang together is not followed.",
        "draw another number for each decision",
    ),
    "too-many-joined": Reason(
        "More random numbers are added up or multiplied than are followed together.",
        f"examine it at fewer drafts, or {SAMPLES}",
    ),
    # races and orders
    "not-a-race": Reason(
        "The largest of random numbers decides, and they are not `w / E`, `log w + Gumbel` or another race of clocks.",
        "write the sampler as `argmax(p / exponential)` or `argmax(log p + gumbel)`",
    ),
    "second-race": Reason(
        "Noise that has decided one thing decides another.",
        "draw fresh noise for each decision",
    ),
    "order-of-joined": Reason(
        "The order, or the largest, is asked for of numbers that are made of several random ones.",
        f"compare them two at a time, or {SAMPLES}",
    ),
    # draws
    "no-law": Reason(
        "A call draws from a law that is not a function of uniform numbers here (normal, gamma, Poisson).",
        f"draw from uniform or exponential numbers, or {SAMPLES}",
    ),
    "parameters": Reason(
        "A law is known for other parameters than those of this call.",
        "pass plain numbers inside the documented range",
    ),
    "too-many-outcomes": Reason(
        "A draw has more outcomes than can be enumerated.",
        "examine it at a smaller vocabulary or range, or compare the number instead of using it as an index",
    ),
    "too-many-numbers": Reason(
        "A call draws more numbers than are followed.",
        "examine it at a smaller vocabulary; draw what is used and no more",
    ),
    "few-bits": Reason(
        "Random numbers have so few bits that some of them are equal.",
        "draw them in float32, and keep them so until they are compared",
    ),
    "one-state-twice": Reason(
        "Two different draws are made from one state of a generator; their arithmetic is not modelled.",
        "draw once from a state: do not seed again, and split keys",
    ),
    "seed-of-another-request": Reason(
        "A request begins from the seed of a request before.",
        "let the call take an argument whose name has seed in it; else seed once",
    ),
    "unseen-draw": Reason(
        "A generator moved, or a function drew, by a call that is not answered.",
        "pass the generator in or use the public calls of torch, NumPy, JAX or random",
    ),
    "bits-of-generator": Reason(
        "The raw bits of a generator are taken, or native code draws from it.",
        "draw by the methods of the generator",
    ),
    "endless-at-an-end": Reason(
        "A loop draws until a number is another one, and would never end at a value that the generator returns.",
        "bound the loop",
    ),
    # arrays
    "write-not-followed": Reason(
        "Random numbers are written, or the shape of what holds them is changed, in a way that is not followed.",
        "make a new array of the random numbers",
    ),
    "arrays-not-followed": Reason(
        "At a real vocabulary an operation on very many random numbers is not followed.",
        "examine it at a small vocabulary as well",
    ),
    "key-of-random-number": Reason(
        "A key of JAX is made of a random number that has no value.",
        "split a key instead",
    ),
    "traced-by-jax": Reason(
        "A random number is used while JAX traces a function, and would be the same in every later call.",
        "draw it with a key, or hand it to the function as an argument",
    ),
    # the world
    "from-outside": Reason(
        "Numbers come from a child process, a socket or a device.",
        "stand in for it with a function of the same process",
    ),
    "imported-late": Reason(
        "A library was imported in the middle of a run.",
        "import it before",
    ),
    "no-promise": Reason("No law is promised that could be compared.", "state what is promised"),
}
"""By its code."""


class Declined:
    """The value that a rule returns where it does not apply, with the reason.

    The next rule is tried. If no rule applies, and the operation then needs the value of a random number, the reason is
    part of the refusal that the user reads.
    """

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        """Decline for a ``reason``, which continues a sentence."""
        self.reason = reason

    def to_python(self) -> Any:
        """Return what a method of Python's operator protocol returns, so that Python asks the other operand."""
        return NotImplemented

    def __repr__(self) -> str:
        return f"Declined({self.reason!r})"


class RuleDeclined(Exception):  # noqa: N818 - never leaves this package
    """The same for code that computes inside a rule: whoever applies the rule turns it into ``Declined``."""

    def __init__(self, reason: str) -> None:
        """Decline for a ``reason``."""
        super().__init__(reason)
        self.declined = Declined(reason)


def is_declined(result: Any) -> TypeGuard[Declined]:
    """Return whether a rule declined."""
    return type(result) is Declined
