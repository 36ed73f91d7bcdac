"""The law of one call at a vocabulary of real size: the number of accepted drafts, and the pmf of the token after them.

If the program never reads its last token, the law of that token is known from its draw. If the program reads the token
(``int(token)``), the token was drawn from a pmf that the program passed to a sampler. The law is that pmf, provided
that the program returns any drawn token unchanged. To test this, the program runs again with other outcomes of the
draw: tokens at which arrays are often cut, drafted tokens, likely tokens and a sample of the pmf. If one of them
changes the result, the law is known only for the outcomes that were followed, and each of them gives a lower bound.

In some programs the outcome of a draw matters only if it equals a drafted token or the outcome of another draw.
Therefore these outcomes are tried too if the likely outcomes of a draw change nothing.

If other outcomes of a draw lead to other draws, or if several draws decide the last token jointly, the path is known
only for the outcomes that were followed. Then the law has the probability of these outcomes, and the probability of the
other outcomes is missing.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from specverify.laws.call_paths import FEW, MOST_PATHS, CallPath, Ending, Program, again, call_paths, likely
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.laws.rounding import Rounding, worst
from specverify.reference import Tokens

FOLLOWED_WHOLE = 128
"""A draw from a pmf of at most this many tokens is enumerated completely."""
AT_EDGES, SAMPLED = 20, 6
"""For a larger pmf, the number of outcomes followed at the edges of tiles and dtypes, and the number of sampled
outcomes."""
OTHERS = 3
"""Number of further outcomes tried to decide whether a draw affects the emitted tokens."""
ONCE_MORE = 2
"""Number of outcomes followed if the same draws were already followed on another path."""


class FailedOutcome(NamedTuple):
    """An outcome of a draw with which the call raises an error, or emits no token.

    ``token`` is the outcome. ``said`` describes the failure in words.
    """

    kept: Tokens
    """Accepted drafts before the failing outcome."""
    token: int
    mass: float
    """Conditional probability of the outcome given ``kept``."""
    said: str


class Behind(NamedTuple):
    """The probability that exactly one sequence of drafts is accepted, and the law of the token after these drafts.

    The sequence is the key of this value in ``CallLaw.behind``.
    """

    weight: float
    """Probability that exactly these drafts are accepted."""
    masses: Any
    """``[vocabulary]``: joint probability of accepting exactly these drafts and emitting each token after them."""
    outside: Mapping[float, float]
    """Emitted number that is no token id -> joint probability of accepting exactly these drafts and emitting it."""
    unread: str = ""
    """Why ``masses`` contain only the followed outcomes, or nothing; '' if they are complete."""


class CallLaw(NamedTuple):
    """The law of the tokens that a call emits: for each sequence of accepted drafts, the law of the token after it.

    ``behind`` maps the accepted drafts to the law of the next token. ``faults`` are outcomes with which the call fails,
    ``missing`` is the probability of the paths that were not followed, and ``runs`` the number of runs. ``rounding``
    has the observations from which rounding errors are bounded.
    """

    behind: Mapping[Tokens, Behind]
    """Accepted drafts -> law of the token after them."""
    faults: tuple[FailedOutcome, ...] = ()
    missing: float = 0.0
    runs: int = 0
    sampled: int = 0
    """Number of followed outcomes that were sampled from the pmf of a draw that the program read."""
    looked_at: int = 0
    """Number of draws of a last token whose outcome the program read."""
    rounding: Rounding = Rounding()


class _Read(NamedTuple):
    """The law of the last token at the end of one path, as found so far.

    ``kept`` are the tokens before the last one, and ``masses`` the probabilities of its possible ``values``.
    """

    kept: Tokens
    values: Any
    """Possible values of the last token, an array of numbers."""
    masses: Any
    runs: int = 0
    """Number of times that the call was made."""
    sampled: int = 0
    """Number of runs for an outcome that was sampled from the pmf of a draw that the program read."""
    looked_at: int = 0
    """Number of draws of a last token whose outcome the program read: 0 or 1."""
    faults: tuple[FailedOutcome, ...] = ()
    """The outcomes with which the call raises an error."""
    unread: str = ""
    """Why the law of the last token is not known; "" if it is."""
    share: float = 1.0
    """Probability of the outcomes for which the path was followed: below 1 if others lead to other draws or tokens."""


def call_law(
    program: Program,
    vocabulary: int,
    notable: Sequence[int] = (),
    said: tuple[type[Exception], ...] = (),
    seed: int = 0,
) -> CallLaw:
    """Return the law of the tokens that one call emits; ``program`` makes the call, over ``vocabulary`` tokens.

    Of a draw over the vocabulary, the outcomes in ``notable`` (such as the drafted tokens) are followed, and others
    sampled by ``seed``. An error after such an outcome is recorded in ``faults`` of the law, except errors of the types
    in ``said``, which are raised.
    """
    result: dict[Tokens, Behind] = {}
    law, total, known = CallLaw(result), 0.0, set[Any]()
    for number, path in enumerate(call_paths(program)):
        if number == MOST_PATHS:
            return law._replace(missing=max(0.0, 1.0 - total))
        reader = _Reader(program, path, vocabulary, notable, (*said, MemoryError), seed)
        draws = (path.ending.tokens[:-1], *((draw.site, draw.pmf.tobytes()) for draw in path.wide))
        read = reader.read(briefly=draws in known)
        known.add(draws)
        total += path.weight * read.share
        result[read.kept] = _added(result.get(read.kept), read, path.weight * read.share, vocabulary)
        law = law._replace(
            missing=law.missing + path.weight * (1.0 - read.share),
            runs=law.runs + 1 + read.runs,
            sampled=law.sampled + read.sampled,
            looked_at=law.looked_at + read.looked_at,
            faults=law.faults + read.faults,
            rounding=worst(law.rounding, path.rounding),
        )
    return law


def _added(before: Behind | None, read: _Read, weight: float, vocabulary: int) -> Behind:
    values, masses = np.asarray(read.values, dtype=np.float64), np.asarray(read.masses) * weight
    inside = (values >= 0) & (values < vocabulary) & (values == np.floor(values))
    result = np.bincount(values[inside].astype(np.int64), masses[inside], minlength=vocabulary)
    outside = dict(before.outside) if before else {}
    for value, mass in zip(values[~inside].tolist(), masses[~inside].tolist(), strict=True):
        if mass > 0:
            outside[value] = outside.get(value, 0.0) + mass
    if before is None:
        return Behind(weight, result, outside, read.unread)
    return Behind(before.weight + weight, before.masses + result, outside, before.unread or read.unread)


class _Reader:
    """Determine the law of the last token at the end of a path, and test it with other outcomes of its draw."""

    def __init__(
        self,
        program: Program,
        path: CallPath,
        vocabulary: int,
        notable: Sequence[int],
        said: tuple[type[Exception], ...],
        seed: int,
    ) -> None:
        self._program, self._path, self._vocabulary, self._said = program, path, vocabulary, said
        self._notable, self._seed = notable, seed
        self._runs = 0

    def read(self, *, briefly: bool) -> _Read:
        """Return the law of the last token at the end of the path.

        To test this law, the path is run again with other outcomes of its draws over the vocabulary. With ``briefly``
        these are fewer, because the same draws were tested on an earlier path.
        """
        ending, others = self._path.ending, 1 if briefly else OTHERS
        if ending.values is not None:
            read = _Read(ending.tokens, ending.values, ending.masses)
        else:
            read = _Read(ending.tokens[:-1], np.array(ending.tokens[-1:]), np.ones(1))
        deciding, leading = set[int](), set[int]()
        for number in range(len(self._path.wide)):
            endings = [self._ending(number, self._another(number, time)) for time in range(others)]
            if not briefly and not _deviates(endings, ending):
                endings += [self._ending(number, outcome) for outcome in self._coincidences(number)]
            faults = tuple(result for result in endings if isinstance(result, FailedOutcome))
            unread = next((result for result in endings if isinstance(result, str)), read.unread)
            read = read._replace(faults=read.faults + faults, unread=unread)
            if _deviates(endings, ending):
                deciding.add(number)
            if any(isinstance(result, str) for result in endings):
                leading.add(number)
        jointly = len(deciding) > 1 or bool(deciding and ending.values is not None)
        if jointly:
            read = read._replace(
                unread=read.unread or f"several draws of more than {FEW} outcomes each decide its last token jointly"
            )
        if leading or jointly:
            read = read._replace(share=self._share(leading | deciding))
        elif deciding:
            read = self._of_draw(deciding.pop(), read, briefly=briefly)
        return read._replace(runs=self._runs)

    def _share(self, numbers: set[int]) -> float:
        """Return the probability that all draws with the indices ``numbers`` have the outcomes of this path."""
        drawn = (self._path.wide[number] for number in numbers)
        return math.prod(float(draw.pmf[draw.outcome] / draw.pmf.sum()) for draw in drawn)

    def _of_draw(self, number: int, read: _Read, *, briefly: bool) -> _Read:
        """Return the law of a last token that depends on one draw, whose outcome the program read.

        ``number`` is the index of the draw, ``read`` the result for the path's own outcome. With ``briefly`` fewer
        outcomes are followed.
        """
        draw = self._path.wide[number]
        tried, sampled = self._outcomes(number)
        if briefly:
            tried, sampled = tried[-ONCE_MORE:], min(sampled, ONCE_MORE)
        emitted, problems = self._tried(number, tried, read.kept)
        emitted.setdefault(draw.outcome, float(read.values[0]))
        possible = np.flatnonzero(draw.pmf)
        if len(tried) < len(possible) and any(token != outcome for outcome, token in emitted.items()):
            others = [outcome for outcome in self._behind_moved(emitted, possible) if outcome not in emitted]
            more, further = self._tried(number, others, read.kept)
            emitted, problems = emitted | more, problems + further
        faults = tuple(result for result in problems if isinstance(result, FailedOutcome))
        unread = next((result for result in problems if isinstance(result, str)), "")
        followed = np.array(list(emitted), dtype=np.int64)
        values, masses = np.array(list(emitted.values())), draw.pmf[followed]
        shifts = set((values - followed).tolist())
        if len(shifts) == 1 and not unread:
            values, masses = np.arange(len(draw.pmf)) + shifts.pop(), draw.pmf
        elif len(followed) < len(possible) and not unread:
            unread = (
                f"what comes of the outcome of {draw.site[0]} is known for {len(followed)} of its "
                f"{len(possible)} outcomes, too many to follow: pass cases of fewer tokens too"
            )
        share = float(masses.sum() / draw.pmf.sum()) if any(isinstance(result, str) for result in problems) else 1.0
        return read._replace(
            values=values,
            masses=masses / share,
            sampled=sampled,
            looked_at=1,
            faults=read.faults + faults,
            unread=unread,
            share=share,
        )

    def _behind_moved(self, emitted: Mapping[int, float], possible: Any) -> list[int]:
        """Return further outcomes to follow for a program that emits another token than the outcome of its draw.

        ``emitted`` maps the followed outcomes to tokens, ``possible`` has all possible outcomes, in ascending order.
        The result has the first and the last outcome, and those equal to an emitted token. If every emitted token is
        the outcome plus the same number, as in a block of the vocabulary, it also has outcomes whose token is at an
        edge (``edges``).
        """
        outcomes: list[int] = possible.tolist()
        wanted = {outcomes[0], outcomes[-1], *emitted.values()}
        shifts = {token - outcome for outcome, token in emitted.items()}
        if len(shifts) == 1:
            shift, at = shifts.pop(), set(edges(self._vocabulary))
            at_edges = [outcome for outcome in outcomes if outcome + shift in at]
            wanted.update(at_edges[:: max(1, len(at_edges) // AT_EDGES)])
        return [outcome for outcome in outcomes if outcome in wanted]

    def _tried(
        self, number: int, outcomes: Sequence[int], kept: Tokens
    ) -> tuple[dict[int, float], list[FailedOutcome | str]]:
        """Run the path again with each of ``outcomes`` of draw ``number``; return (outcome -> last token, problems).

        ``kept`` are the tokens before the last one. An outcome that changes these, or with which the call fails, is a
        problem: a ``FailedOutcome`` if the call raises or emits no last token, else a sentence.
        """
        emitted: dict[int, float] = {}
        problems: list[FailedOutcome | str] = []
        for outcome in outcomes:
            result = self._ending(number, outcome)
            if not isinstance(result, Ending):
                problems.append(result)
            elif result.tokens == kept:
                problems.append(self._fault(number, outcome, "it emits no token for it"))
            elif result.values is not None or result.tokens[:-1] != kept:
                problems.append(f"the tokens before the last one are others where {outcome} is drawn")
            else:
                emitted[outcome] = result.tokens[-1]
        return emitted, problems

    def _ending(self, number: int, outcome: int) -> Ending | FailedOutcome | str:
        """Run the path again with the given ``outcome`` of draw ``number``, and return its ``Ending``.

        Returns a sentence if the program then makes other draws, and a ``FailedOutcome`` if it raises. ``MemoryError``
        and errors of the types that the caller of ``call_law`` passes as ``said`` are raised.
        """
        self._runs += 1
        try:
            return again(self._program, self._path, {number: outcome}).ending
        except self._said:
            raise
        except NotAFunctionOfItsDraws:
            where = self._path.wide[number].site[0]
            followed = f"draws of at most {FEW} outcomes are followed"
            return f"it continues differently if {outcome} is drawn at {where}: only {followed}"
        except Exception as error:  # noqa: BLE001 - it raises for one token and not for another: that is a finding
            return self._fault(number, outcome, f"it raises {type(error).__name__}: {' '.join(str(error).split())}")

    def _fault(self, number: int, outcome: int, said: str) -> FailedOutcome:
        return FailedOutcome(self._path.ending.tokens[:-1], outcome, float(self._path.wide[number].pmf[outcome]), said)

    def _another(self, number: int, time: int) -> int:
        """Return an outcome of draw ``number`` that differs from the one on the path, sampled from the rest of the pmf.

        ``time`` numbers repeated calls: other values give other samples.
        """
        draw = self._path.wide[number]
        left = draw.pmf.copy()
        left[draw.outcome] = 0.0
        return likely(left, zlib.crc32(repr((draw.site, number, time, self._seed)).encode()))

    def _coincidences(self, number: int) -> list[int]:
        """Return the outcomes of draw ``number`` that are equal to another token of the call.

        These tokens are the notable ones (see ``call_law``) and the outcomes of the other draws of the path. A program
        may compare the drawn token with them.
        """
        draw = self._path.wide[number]
        candidates = dict.fromkeys((*self._notable, *(other.outcome for other in self._path.wide)))
        return [
            token for token in candidates if token != draw.outcome and token < len(draw.pmf) and draw.pmf[token] > 0
        ]

    def _outcomes(self, draw: int) -> tuple[list[int], int]:
        """Return which outcomes of the wide draw with index ``draw`` to follow, and the size of the sample among them.

        If at most ``FOLLOWED_WHOLE`` outcomes are possible, all are followed, and the size is 0. Otherwise these are:
        a random sample from the pmf, the tokens that the caller passed as notable (such as the drafts), the two most
        probable tokens, and some tokens at the ends of blocks of the vocabulary (``edges``).
        """
        pmf = self._path.wide[draw].pmf
        possible = np.flatnonzero(pmf > 0)
        if len(possible) <= FOLLOWED_WHOLE:
            return possible.tolist(), 0
        word = repr((self._path.wide[draw].site, self._path.choices, self._seed))
        rng = np.random.default_rng(zlib.crc32(word.encode()))
        at = [token for token in edges(self._vocabulary) if token < len(pmf) and pmf[token] > 0]
        chosen = rng.choice(at, min(AT_EDGES, len(at)), replace=False).tolist() if at else []
        likeliest = np.argpartition(pmf, -2)[-2:].tolist()
        notable = [token for token in self._notable if token < len(pmf) and pmf[token] > 0]
        sample = rng.choice(len(pmf), SAMPLED, p=pmf / pmf.sum()).tolist()
        return list(dict.fromkeys([*notable, *likeliest, *chosen, *sample])), len(sample)


def _deviates(endings: Sequence[Ending | FailedOutcome | str], ending: Ending) -> bool:
    """Return whether one of ``endings`` has other tokens, or another law of the last token, than ``ending``.

    Failed outcomes and sentences among ``endings`` do not count.
    """
    return any(isinstance(result, Ending) and not _same(result, ending) for result in endings)


def _same(one: Ending, other: Ending) -> bool:
    if one.tokens != other.tokens or (one.values is None) != (other.values is None):
        return False
    return one.values is None or (np.array_equal(one.values, other.values) and np.array_equal(one.masses, other.masses))


def edges(vocabulary: int) -> tuple[int, ...]:
    """Return tokens at which kernels often cut rows of ``vocabulary`` entries, in ascending order.

    These are powers of two, the last multiple of each usual block size, both plus or minus one, and the two tokens at
    each end of the row.
    """
    powers = [2**bits for bits in range(7, 20)]
    blocks = [vocabulary // size * size for size in (64, 128, 1024, 4096, 8192)]
    result = {0, 1, vocabulary - 2, vocabulary - 1}
    result |= {edge + beside for edge in (*powers, *blocks) for beside in (-1, 0, 1)}
    return tuple(sorted(token for token in result if 0 <= token < vocabulary))
