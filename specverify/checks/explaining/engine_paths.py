"""The draws on a path of an engine: coins, and tokens with the pmf of each draw.

The draws of an engine carry no roles, so a draft and a bonus cannot be distinguished. Looking up one uniform in
cumulative sums makes several comparisons. They are merged into one draw, and the intervals on the other paths give the
pmf of that draw.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from specverify.base.prefixes import common_length
from specverify.checks.explaining.given_drafts import RACE, place_of
from specverify.checks.explaining.round_rules import Row, same_row
from specverify.checks.explaining.wording import short, short_row
from specverify.laws.draws import AMONG, BELOW, TOGETHER, Decision
from specverify.laws.paths import Path, heaviest_paths, outcomes_of, paths
from specverify.reference import Draws, Site

MOST_PATHS = 5000
SEARCHED_PATHS = 20_000
"""The number of paths that are searched for the most probable ones."""
LOOKUPS = frozenset({"choice", "choices", "multinomial", "categorical", "sample", "searchsorted", "shuffle", RACE})
"""Last words of the names of calls that draw a token and not a coin."""
LONGEST_PMF = 8
OF_A_COIN = 2
"""Number of intervals of the uniform of a coin."""
NEAR = 1e-9


class KeptPaths:
    """The first ``MOST_PATHS`` paths of an engine. Each path is run only once, even if the paths are iterated again."""

    def __init__(self, run: Callable[[Draws], Any], known: Sequence[Path[Any]] = ()) -> None:
        """Store the program ``run`` of the engine, and all its paths if they are already ``known``."""
        self.run, self._more, self._kept = run, iter(()) if known else paths(run), list(known)
        self._failure: Exception | None = None

    def __iter__(self) -> Iterator[Path[Any]]:
        """Yield the paths, depth first."""
        at = 0
        while at < MOST_PATHS and (at < len(self._kept) or self._runs_another()):
            yield self._kept[at]
            at += 1

    def heaviest(
        self, share: Callable[[Any], Any], number: int, among: Collection[tuple[int, ...]] = ()
    ) -> list[tuple[Any, Path[Any]]]:
        """Return the ``number`` paths with the largest weights, as (weight, path); paths with weight 0 are left out.

        The weight is the probability of the path times ``share(outcome)``, the fraction of the path that ends in an
        outcome which the caller searches for. The fraction is 0 or 1, or between if the engine never reads the last
        token of the path: the path then stands for all values of this token. Paths whose choices are ``among`` those
        given are returned alone, if there is one.
        """
        if sum(1 for _ in self) == MOST_PATHS:
            return heaviest_paths(self.run, share, number, SEARCHED_PATHS)
        weighed = [(path.weight * part, path) for path in self._kept if (part := share(path.outcome))]
        weighed = [item for item in weighed if item[1].choices in among] or weighed
        return sorted(weighed, key=lambda item: -item[0])[:number]

    def _runs_another(self) -> bool:
        if self._failure is not None:
            raise self._failure
        try:
            path = next(self._more, None)
        except Exception as failure:
            self._failure = failure
            raise
        if path is not None:
            self._kept.append(path)
        return path is not None


class PathDraw(NamedTuple):
    """One draw of a path: a coin (a test with two outcomes), or a lookup (the choice of a token from a pmf).

    ``call`` is the name of the random call, and ``place`` its program line. The outcome of the draw restricts the
    uniform to an interval.
    """

    call: str
    place: str
    low: float
    high: float
    """``low`` and ``high``: ends of the interval of the uniform; for a draw of an outcome, 0 and its probability."""
    outcome: int | None
    """The token, if the draw determines it."""
    before: tuple[int, ...]
    """The outcomes of all decisions before this draw."""
    pmf: tuple[float, ...] = ()
    """The pmf of the draw, if known; else ()."""

    together: bool = False
    """Whether the draw is one comparison of several uniforms."""
    widths: tuple[float, ...] = ()
    """The lengths, in order, of the intervals in which the uniform can lie on any path."""
    interval: int = 0
    """The index of the interval in which the uniform lies on this path."""
    looked_up: tuple[int, tuple[float, ...]] = (0, ())
    """For a uniform that is looked up once in cumulative sums: the index, and the probability of each index."""
    emits: tuple[int, ...] = ()
    """The next token for each entry of ``pmf``, if the draw alone decides this token and it is not always the index."""

    def emitted(self) -> PathDraw:
        """Return this draw with the token that it emits as outcome, and the pmf of this token.

        The draw itself is returned if its outcome is this token, or if the draw does not decide the next token.
        """
        if self.outcome is None or not self.emits:
            return self
        pmf = [0.0] * len(self.pmf)
        for token, mass in zip(self.emits, self.pmf, strict=True):
            pmf[token] += mass
        return self._replace(outcome=self.emits[self.outcome], pmf=tuple(pmf), emits=())

    def token_from(self, row: Row, near: float = NEAR) -> int | None:
        """Return the token that this draw selects if it is a draw from ``row``; None if it is not.

        The pmf of the draw must equal ``row`` within ``near``. If the pmf is not known, the lengths of the intervals of
        the uniform must equal the positive entries of ``row``.
        """
        if self.outcome is not None:
            return self.outcome if same_row(self.pmf, row, near) else None
        tokens = [token for token, mass in enumerate(row) if mass > near]
        if len(tokens) < OF_A_COIN or not same_row(self.widths, [row[token] for token in tokens], near):
            return None
        return tokens[self.interval]

    @property
    def bound(self) -> float:
        """Return the number that the uniform of a coin is compared with."""
        return self.high if self.low <= 0 else self.low

    @property
    def is_lookup(self) -> bool:
        """Return whether this draw selects a token; if not, it is a coin."""
        return self.outcome is not None or self.calls_lookup

    @property
    def calls_lookup(self) -> bool:
        """Return whether the random call selects a token.

        Two kinds of calls do: a function that draws an index, such as ``multinomial``, and a uniform that the program
        looks up in the cumulative sums of a pmf.
        """
        return self.call.rpartition(".")[2].partition(" ")[0] in LOOKUPS or bool(self.looked_up[1])


def draws_of(decisions: Sequence[Decision]) -> list[PathDraw]:
    """Return the draws of a path, given its ``decisions``; all comparisons of one uniform become one draw."""
    result: list[PathDraw] = []
    of_uniform: dict[Site, int] = {}
    choices = tuple(decision.outcome for decision in decisions)
    for number, decision in enumerate(decisions):
        call = str(decision.site[0] if decision.site else "a draw") or "a draw"
        place, weights = place_of(decision), [float(weight) for weight in decision.weights]
        uniform, question = decision.site[:-2], decision.site[-2:-1]
        if question not in {(BELOW,), (AMONG,)}:
            mass = weights[decision.outcome]
            several = question == (TOGETHER,)
            result.append(PathDraw(call, place, 0.0, mass, decision.outcome, choices[:number], tuple(weights), several))
            continue
        if decision.site[-1] == 1 or uniform not in of_uniform:  # the first question to a uniform
            of_uniform[uniform] = len(result)
            result.append(PathDraw(call, place, 0.0, 1.0, None, choices[:number]))
            if question == (AMONG,):
                result[-1] = result[-1]._replace(looked_up=(decision.outcome, tuple(weights)))
        last = result[of_uniform[uniform]]
        if decision.site[-1] != 1:
            last = last._replace(looked_up=(0, ()))  # it is compared again
        edges = [last.low, *(last.low + (last.high - last.low) * share for share in accumulate(weights))]
        result[of_uniform[uniform]] = last._replace(low=edges[decision.outcome], high=edges[decision.outcome + 1])
    return result


def with_pmfs(
    engine: Iterable[Path[Any]], drawn: Sequence[PathDraw], vocabulary: int, known: dict[tuple[int, ...], Any]
) -> list[PathDraw]:
    """Return ``drawn``, the draws of a path, with the pmf of each token that is looked up by a uniform.

    The entries of the pmf are the lengths of the intervals in which the uniform lies on the paths with the same earlier
    decisions. A pmf without its last zeros, as JAX's draws have it, is filled to the size of the vocabulary. The index
    of a lookup is a token if the uniform is looked up in as many sums as there are tokens, unless the entries are
    sorted from the largest.

    Args:
        engine: Yields all paths.
        drawn: The draws of one path.
        vocabulary: The number of tokens.
        known: A cache, filled if it is {}: outcomes of all decisions before a draw -> intervals of its uniform.
    """
    if not known:
        known.update(_cells(engine))
    result = []
    for item in drawn:
        if item.calls_lookup and 0 < len(item.pmf) < vocabulary:
            item = item._replace(pmf=item.pmf + (0.0,) * (vocabulary - len(item.pmf)))  # noqa: PLW2901
        emitted = known.get(item.before, {})
        cells = sorted(emitted)
        ends = [0.0, *(high for _, high in cells)]
        whole = all(abs(low - end) < NEAR for (low, _), end in zip(cells, ends, strict=False)) and (
            abs(ends[-1] - 1) < NEAR
        )
        token = item.is_lookup or vocabulary > OF_A_COIN
        at = next((i for i, (low, _) in enumerate(cells) if abs(low - item.low) < NEAR), None)
        if item.outcome is None and whole and at is not None:
            widths = tuple(high - low for low, high in cells)
            item = item._replace(widths=widths, interval=at)  # noqa: PLW2901
            if token and len(cells) == vocabulary:
                item = item._replace(outcome=at, pmf=widths)  # noqa: PLW2901
        masses = item.looked_up[1]
        masses = masses[:-1] if masses and masses[-1] < NEAR else masses  # the last of the sums is 1
        unsorted = any(one < other for one, other in pairwise(masses))  # else the index may be a rank
        if item.outcome is None and token and len(masses) == vocabulary and unsorted:
            item = item._replace(outcome=item.looked_up[0], pmf=masses)  # noqa: PLW2901
        result.append(item._replace(emits=_emits(item, emitted)) if item.outcome is not None else item)
    return result


_Interval = tuple[float, float]


def _interval_of(item: PathDraw) -> _Interval:
    """Return the interval of a draw on its path; those of two outcomes of one draw differ."""
    first = item.outcome or 0
    return round(first + item.low, 12), round(first + item.high, 12)


def _cells(engine: Iterable[Path[Any]]) -> dict[tuple[int, ...], dict[_Interval, set[int]]]:
    """Return, for each draw of the engine, the intervals in which its uniform lies on the different paths.

    The lengths of the intervals give the pmf of a draw that looks a uniform up. A draw is identified by the outcomes of
    the earlier decisions on its path. Each interval has the tokens that follow those which are determined before the
    draw. ``engine`` yields the paths.
    """
    every = list(engine)
    begun: dict[tuple[int, ...], Any] = {}
    for path in every:
        for text, share in outcomes_of(path.outcome):
            for length in range(len(path.choices) + 1) if share else ():
                known = begun.setdefault(path.choices[:length], text)
                if text[: len(known)] != known:
                    begun[path.choices[:length]] = text[: common_length(text, known)]
    result: dict[tuple[int, ...], dict[_Interval, set[int]]] = {}
    for path in every:
        texts = [text for text, share in outcomes_of(path.outcome) if share]
        for item in draws_of(path.decisions):
            tokens = result.setdefault(item.before, {}).setdefault(_interval_of(item), set())
            at = len(begun[item.before])
            tokens.update(text[at] if len(text) > at else -1 for text in texts)
    return result


def _emits(item: PathDraw, emitted: Mapping[_Interval, set[int]]) -> tuple[int, ...]:
    """Return the next token for each entry of the pmf of ``item``; () if the draw does not decide it, or is the token.

    ``emitted`` has the tokens that follow on the paths with each interval of the draw.
    """
    result = list(range(len(item.pmf)))
    begins = accumulate(item.pmf, initial=0.0) if item.widths else result
    for index, (low, mass) in enumerate(zip(list(begins), item.pmf, strict=False)):
        if mass < NEAR:
            continue
        tokens = next((each for (one, _), each in emitted.items() if abs(one - low) < NEAR), set())
        token = next(iter(tokens)) if len(tokens) == 1 else None
        if not isinstance(token, int) or not 0 <= token < len(item.pmf):
            return ()
        result[index] = token
    return tuple(result) if result != list(range(len(item.pmf))) else ()


def is_drawn_from_q(
    engine: Iterable[Path[Any]], seen: Sequence[float], p: Sequence[float], known: dict[tuple[int, ...], Any]
) -> bool:
    """Return whether, on some path, token x is drawn from ``seen`` and then tested with the bound p(x)/seen(x).

    If so, the program uses the row ``seen`` as q. ``p`` is the row of the target. ``engine`` yields all paths, and
    ``known`` is the cache that ``with_pmfs`` fills: the intervals of the uniform of each draw.
    """
    for path in engine:
        drawn = with_pmfs(engine, draws_of(path.decisions), len(seen), known)
        if any(same_row(item.pmf, seen, NEAR) and is_test_of(test, item, p) for item, test in pairwise(drawn)):
            return True
    return False


def is_test_of(test: PathDraw, draft: PathDraw, p: Sequence[float]) -> bool:
    """Return whether ``test`` is a coin that accepts the outcome x of the draw ``draft`` if u < p(x)/q(x).

    ``p`` is the row of the target, and the pmf of ``draft`` is q.
    """
    token = draft.outcome
    if test.is_lookup or token is None or token >= len(draft.pmf) or not draft.pmf[token]:
        return False
    return bool(abs(test.bound - p[token] / draft.pmf[token]) < NEAR)


def drawn_together(engine: Iterable[Path[Any]], decisions: Sequence[Decision], number: int) -> list[PathDraw]:
    """Return the draws that determine the first ``number`` tokens of a path, if these are fewer draws than tokens.

    Such a program is wrong, because a right one draws each new token. ``engine`` yields all paths, and ``decisions``
    are those of this path. Coins are returned too. Returns [] in three cases:

    * At least ``number`` tokens are drawn, or none.
    * There are more coins than drawn tokens.
    * The decisions do not determine the tokens.
    """
    length = _length_that_decides(engine, decisions, number)
    drawn = [] if length is None else draws_of(decisions[:length])
    lookups = sum(item.is_lookup for item in drawn)
    return drawn if 0 < lookups < number and len(drawn) - lookups <= lookups else []


def draw_that_decides(engine: Iterable[Path[Any]], decisions: Sequence[Decision], number: int) -> int | None:
    """Return the index, among ``draws_of(decisions)``, of the draw after which the first ``number`` tokens are known.

    For a token that is drawn and kept untested, this is its draw; for a tested draft, its coin or its replacement.
    ``engine`` yields all paths, and ``decisions`` are those of one path. Returns None if they do not determine the
    tokens, or if no decision is needed.
    """
    length = _length_that_decides(engine, decisions, number)
    if not length:
        return None
    before, after = draws_of(decisions[: length - 1]), draws_of(decisions[:length])
    return next((at for at, item in enumerate(after) if at >= len(before) or item != before[at]), None)


def _length_that_decides(engine: Iterable[Path[Any]], decisions: Sequence[Decision], number: int) -> int | None:
    """Return how many of the ``decisions`` of a path determine its first ``number`` tokens; None if they do not."""
    choices = tuple(decision.outcome for decision in decisions)
    ends = [(path.choices, path.outcome) for path in engine]
    for length in range(len(choices) + 1):
        ends = [(other, outcome) for other, outcome in ends if other[:length] == choices[:length]]
        begun = {tuple(text[:number]) for _, outcome in ends for text, share in outcomes_of(outcome) if share}
        if len(begun) <= 1:
            return length
    return None


def describe_draws(drawn: Sequence[PathDraw]) -> str:
    """Format the draws ``drawn`` as one line; draws with a certain outcome are omitted."""
    return ", ".join(_describe_draw(item) for item in drawn if item.high - item.low < 1 - NEAR) or "without any draw"


def _describe_draw(item: PathDraw) -> str:
    at = f" ({item.place})" if item.place else ""
    mass = short(item.high - item.low)
    if item.together:
        return f"a comparison of several random numbers came out with probability {mass}{at}"
    if item.is_lookup:
        token = "a token" if item.outcome is None else str(item.outcome)
        shown = item.pmf and len(item.pmf) <= LONGEST_PMF
        return f"drew {token} {f'from {short_row(item.pmf)}' if shown else f'with probability {mass}'}{at}"
    if item.low <= 0:
        return f"u < {short(item.high)}{at}"
    return f"u >= {short(item.low)}{at}" if item.high >= 1 else f"{short(item.low)} <= u < {short(item.high)}{at}"
