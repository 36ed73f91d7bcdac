"""The table of reasons for which interception refuses a program, and the recording of refusals.

A refusal is an exception with these fields: the code of a row of the table, a sentence about this case, the library's
operation, the line of foreign code that called it, and what the user can do. ``docs/refusals.md`` is generated from the
table.

A refusal ends the enumeration even if the foreign code catches it (``except Exception``) or it was raised in a thread:
the end of the ``with`` block of interception raises it again. Draws that the standard library makes for itself, such as
for the name of a temporary file or the boundary of a mail, are not draws of the program and are not intercepted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeGuard

from specverify.intercept.caller import NOWHERE, draws_constant, is_ours_or_answered, is_own, standard_library
from specverify.intercept.run import RUNS, Block

# Refusals


class Reason(NamedTuple):
    """One row of the table of refusals.

    ``meaning`` explains the reason in a sentence, and ``way_out`` states what the user can do.
    """

    meaning: str
    way_out: str


SAMPLES = "let samples decide (`sampled=True`)"
REASONS: dict[str, Reason] = {
    # the number itself
    "value-needed": Reason(
        "An operation needs the value of a random number, and there is no rule for its result.",
        f"compare the random number before this operation, with the bound that is used later, or {SAMPLES}",
    ),
    "float-needed": Reason(
        "A library accepts only plain floats or ints, and received a random number.",
        "compare the random number itself, and pass the outcome",
    ),
    "order-alone-is-known": Reason(
        "Only the order of several random numbers is known, and the value of one is needed.",
        "use the index (`argmax`, `indices`), or compare the numbers before they are sorted",
    ),
    "unknown-sign": Reason(
        "The result of an operation depends on the sign of a random number, which may be positive or negative.",
        "compare the number with 0 first, or shift it to one side of 0",
    ),
    "rest-needed": Reason(
        "The remainder of a random number, or the nearest integer, is needed.",
        "draw an integer (`randint`), or take the integer part (`floor`)",
    ),
    "out-of-range": Reason(
        "A factor or an exponent of a random number is 0, infinite or not a float, or an integer overflows.",
        "compute with logarithms or in a wider type, or clamp the factor",
    ),
    # comparisons
    "near-an-atom": Reason(
        "A clamp, an integer part or 16 bits give a value a positive probability, and a bound is near this value.",
        "compare with exactly the bound of the clamp, leave the clamp out, or draw in float32 instead of 16 bits",
    ),
    "equal-numbers": Reason(
        "The result depends on which of several equal numbers comes first, or on whether two numbers are equal.",
        "break ties by the index, or use noise that is not clamped",
    ),
    "unsorted-bounds": Reason(
        "A random number is looked up in bounds that are not sorted.",
        "sort the bounds; a cumulative sum is sorted",
    ),
    "compared-in-two-ways": Reason(
        "A random number decides several things, and their dependence is not followed.",
        "draw another number for each decision",
    ),
    "too-many-joined": Reason(
        "More random numbers are added or multiplied than can be followed together.",
        f"examine it with fewer drafts, or {SAMPLES}",
    ),
    # races and orders
    "not-a-race": Reason(
        "The argmax of random numbers decides, and they do not have the form `w / E` or `log w + Gumbel` of a race.",
        "write the sampler as `argmax(p / exponential)` or `argmax(log p + gumbel)`",
    ),
    "second-race": Reason(
        "Noise that has decided one draw is used again, in a way that is not followed, such as a third race.",
        "draw fresh noise for each decision; if no noise is meant there, an operation in place, such as "
        "`probs.div_(noise)`, has written it into the row",
    ),
    "order-of-joined": Reason(
        "The order or the maximum of numbers that combine several random numbers is needed.",
        f"compare them two at a time, or {SAMPLES}",
    ),
    # draws
    "no-law": Reason(
        "A call draws from a law that is not expressed by uniform numbers (gamma, Wald, Dirichlet).",
        f"draw from uniform or exponential numbers, or {SAMPLES}",
    ),
    "parameters": Reason(
        "The law of a call is not known for these parameters.",
        "pass plain numbers inside the documented range",
    ),
    "too-many-outcomes": Reason(
        "A draw has more outcomes than can be enumerated.",
        "examine it at a smaller vocabulary or range, or compare the number instead of using it as an index",
    ),
    "too-many-numbers": Reason(
        "A call draws more numbers than can be followed.",
        "examine it at a smaller vocabulary; draw only numbers that are used",
    ),
    "few-bits": Reason(
        "Random numbers have so few bits that some of them are equal.",
        "draw them in float32, and keep this dtype until they are compared",
    ),
    "one-state-twice": Reason(
        "Two different draws are made from one state of a generator; their arithmetic is not modelled.",
        "draw once from a state: do not seed again, and split keys",
    ),
    "shifted-stream": Reason(
        "Two generators draw from one stream at different places, because they began from one seed.",
        "give each generator a seed of its own, for example by SeedSequence.spawn",
    ),
    "seed-of-another-request": Reason(
        "A request begins from the seed of an earlier request.",
        "give the call an argument with seed in its name; otherwise seed once",
    ),
    "unseen-draw": Reason(
        "A call that is not intercepted advanced a generator, or drew.",
        "pass the generator in or use the public calls of torch, NumPy, JAX or random",
    ),
    "bits-of-generator": Reason(
        "The raw bits of a generator are read, or native code draws from it.",
        "draw by the methods of the generator",
    ),
    "endless-at-an-end": Reason(
        "A loop draws again and again, and none of very many numbers ends it.",
        "bound the loop",
    ),
    # arrays
    "write-not-followed": Reason(
        "Random numbers are written, or their array is reshaped, in a way that is not followed.",
        "make a new array of the random numbers",
    ),
    "arrays-not-followed": Reason(
        "An operation on very many random numbers, at a real vocabulary, is not followed.",
        "examine the code at a small vocabulary",
    ),
    "key-of-random-number": Reason(
        "A key of JAX is made from a random number that has no value.",
        "split a key instead",
    ),
    "traced-by-jax": Reason(
        "A random number is used while JAX traces a function, and would be the same in every later call.",
        "draw it with a key, or pass it to the function as an argument",
    ),
    # the world
    "from-outside": Reason(
        "Numbers come from a child process, a socket or a device.",
        "replace the source by a function of the same process",
    ),
    "imported-late": Reason(
        "A library was imported in the middle of a run.",
        "import it before",
    ),
    "no-promise": Reason(
        "The subject states no law with which its own law could be compared.",
        "state what is promised",
    ),
}
"""Code of a refusal -> reason, and what the user can do."""


class Declined:
    """The value that a rule returns if it does not apply, with the reason.

    The next rule is then tried. If no rule applies and the value of a symbolic number is needed, the reason is part of
    the refusal.
    """

    __slots__ = ("reason",)

    for_python: Final = NotImplemented
    """What an operator method returns if a rule declined, so that Python tries the other operand."""

    def __init__(self, reason: str) -> None:
        """Store ``reason``, a clause that states why the rule does not apply."""
        self.reason = reason

    def __repr__(self) -> str:
        return f"Declined({self.reason!r})"


class RuleDeclined(Exception):  # noqa: N818 - never leaves this package
    """The exception form of ``Declined``, for code inside a rule; the caller of the rule converts it."""

    def __init__(self, reason: str) -> None:
        """Store ``reason``, a clause that states why the rule does not apply."""
        super().__init__(reason)
        self.declined = Declined(reason)


def is_declined(result: Any) -> TypeGuard[Declined]:
    """Return whether ``result`` is ``Declined``: the rule that returned it does not apply."""
    return type(result) is Declined


# Block


_HOUSEKEEPING = {"tempfile.py", "imaplib.py", "mailbox.py", "smtplib.py"}
_HOUSEKEEPING_PACKAGES = {"email", "http", "multiprocessing", "urllib"}
"""Packages of the standard library that draw names on which no token depends."""


def current() -> Block | None:
    """Return the innermost open block (the record of a run with interception) of any thread, or None."""
    return RUNS.blocks[-1] if RUNS.blocks else None


@contextmanager
def open_block() -> Iterator[Block]:
    """Context manager that opens a block, the record of one run with interception, and yields it.

    At the end the first refusal of the run is raised again, even if the code caught it or raised another exception.
    """
    block = Block()
    RUNS.blocks.append(block)
    try:
        yield block
    except Exception as error:
        if not block.refusals or any(error is refusal for refusal in block.refusals):
            raise
        raise block.refusals[0] from error
    finally:
        block.end()
        RUNS.blocks.remove(block)
    if block.refusals:
        raise block.refusals[0]


def refused(error: Exception) -> None:
    """Record ``error``, a refusal, in the innermost open block (the record of a run), if there is one."""
    if RUNS.blocks:
        RUNS.blocks[-1].refusals.append(error)


@contextmanager
def gifts_kept() -> Iterator[dict[str, None]]:
    """Context manager that yields a record; ``give`` adds to it each plain random number that the program receives.

    The record is a dictionary whose keys are descriptions. A plain number is an ordinary float or integer, whose use
    cannot be followed.
    """
    kept: dict[str, None] = {}
    RUNS.gifts.append(kept)
    try:
        yield kept
    finally:
        RUNS.gifts.remove(kept)


def give(what: str) -> None:
    """Record that the foreign code receives a random number as an ordinary float or integer, described by ``what``."""
    for kept in RUNS.gifts:
        kept[what] = None


@contextmanager
def tried() -> Iterator[None]:
    """Context manager for an attempt that may be refused: refusals raised in it are not recorded in the open block.

    It is used where the caller can compute the result in another way. A refusal is still raised as an exception.
    """
    block = current()
    before = len(block.refusals) if block else 0
    try:
        yield
    finally:
        if block:
            del block.refusals[before:]


def is_left_to_library() -> bool:
    """Return whether a draw is not intercepted, because no outcome of it is a random choice of the subject.

    Such draws are made by this package itself, by the standard library for its own use, for example for the name of a
    temporary file, or by a line whose draws are constants.
    """
    frame: Any = sys._getframe(1)  # noqa: SLF001
    filename = frame.f_code.co_filename  # read once a frame: the interpreter tells of every look at its code
    while is_ours_or_answered(filename):
        if is_own(filename):
            return True
        frame = frame.f_back
        if frame is None:
            return False
        filename = frame.f_code.co_filename
    parts = standard_library(filename)
    in_housekeeping = bool(parts) and (parts[0] in _HOUSEKEEPING or parts[0] in _HOUSEKEEPING_PACKAGES)
    return in_housekeeping or draws_constant()


class NeedsValue(Exception):  # noqa: N818 - reads as the sentence it is
    """The exception of a refusal: interception cannot follow the program, for example if it reads a symbolic number."""

    def __init__(self, code: str, reason: str, operation: str = "", place: str = "", way_out: str = "") -> None:
        """Create a refusal for ``reason``, a sentence, and record it in the open block, so that it cannot be caught.

        ``code`` is a key of ``REASONS``; the ``way_out`` of this entry is the default. ``operation`` and ``place``
        (file and line) may be added by ``during``.
        """
        super().__init__(code, reason, operation, place, way_out)
        self.code, self.reason, self.operation, self.place = code, reason, operation, place
        self.way_out, self._explained = way_out or REASONS[code].way_out, False
        refused(self)

    def __str__(self) -> str:
        """Return one sentence with the operation, its place, the reason and the way out.

        If the operation or the place is unknown, the sentence is the reason alone, followed by the place if that is
        known. A reason that names the place is also returned alone.
        """
        if not self.operation or not self.place or self.place in self.reason:
            return self.reason if not self.place or self.place in self.reason else f"{self.reason}, at {self.place}"
        return f"{self.operation} at {self.place}: {self.reason}; {self.way_out}"

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.reason, self.operation, self.place, self.way_out)

    def at(self, place: str) -> NeedsValue:
        """Set ``place``, the file and line of the refusal, unless it is already set, and return the refusal."""
        self.place = self.place or ("" if place == NOWHERE else place)
        return self

    def during(self, operation: str, place: str) -> NeedsValue:
        """Add to this refusal the ``operation`` of the library and its line ``place``, and return the refusal.

        Nothing is overwritten: an operation or a place that the refusal already has is kept. If the refusal already has
        another place than ``place``, the operation is not added either.
        """
        if not self.operation and self.place in {"", place}:
            self.operation = operation
        return self.at(place)

    def because(self, declined: Declined) -> NeedsValue:
        """Add the reason of ``declined``, why no rule applied, to the sentence of this refusal; return the refusal.

        Only a refusal with the code ``value-needed`` gets a reason, and only the first one.
        """
        if self.code == "value-needed" and not self._explained:
            self.reason, self._explained = f"{self.reason}: {declined.reason}", True
        return self

    def again(self) -> NeedsValue:
        """Return a copy of the refusal, to be raised once more; the open interception block records this copy."""
        return NeedsValue(self.code, self.reason, self.operation, self.place, self.way_out)
