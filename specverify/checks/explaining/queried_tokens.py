"""Find the tokens of draws that do not give a token directly, from the model query that follows each draw.

An example is an engine whose draft vocabulary is smaller than the target's: a draw gives an index, and the program maps
the index to a token. The outcomes of the draw, or the intervals of its uniform, are then those of the indices, and the
next query has the token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from specverify.checks.explaining.engine_paths import KeptPaths, PathDraw, draws_of, with_pmfs
from specverify.laws.paths import Path
from specverify.subjects.subject import Trace

NEAR = 1e-9
Outcomes = tuple[int, ...]


class _Token(NamedTuple):
    """A token that the next query after a draw shows, usually the drawn one, and its probability in p (``p``)."""

    token: int
    p: float
    is_doubtful: bool
    """Whether the token may replace the drawn one: p is queried in between, and a draft with p = 0 is surely rejected.
    """


class QueriedTokens:
    """The tokens of an engine's draws, found in the queries to its models where a draw does not give the token."""

    def __init__(
        self,
        engine: KeptPaths,
        trace_of: Callable[[Path[Any]], Trace | None],
        size: int,
        cells: dict[Outcomes, Any],
    ) -> None:
        """Store all paths of the engine, and ``trace_of``, which returns the queries to the models on a path.

        ``size`` is the vocabulary size. ``cells`` is a cache of the intervals in which each uniform lies (see
        ``with_pmfs``).
        """
        self._engine, self._trace_of, self._size, self._cells = engine, trace_of, size, cells
        self._known = dict[Outcomes, dict[int, int]]()

    def added(self, items: Sequence[PathDraw], trace: Trace | None) -> list[PathDraw]:
        """Return the draws ``items`` of a path with the outcome and the pmf of each draft whose token is queried.

        ``trace`` has the queries of the path. A draw is such a draft if each of its outcomes, or each interval of its
        uniform, has a queried token (``_queried``). If p is queried before the token, and a token with p = 0 might
        surely be rejected and replaced, one of the tokens must itself have p = 0: the queries then precede the tests.
        """
        shown = dict(_queried(items, trace))
        result = []
        for item in items:
            tokens = self._tokens(item, shown[item.before]) if item.before in shown else {}
            if tokens:
                pmf, masses = [0.0] * self._size, _masses(item)
                for index, token in tokens.items():
                    pmf[token] += masses[index]
                item = item._replace(outcome=tokens[_index(item)], pmf=tuple(pmf), emits=())  # noqa: PLW2901
            result.append(item)
        return result

    def _tokens(self, item: PathDraw, first: _Token) -> dict[int, int]:
        """Return the token for each possible index of the draw ``item``, as the queries on all paths show it.

        ``first`` is the token on the path of the draw. Returns {} if an index has no queried token, if the tokens may
        be replacements, or if each outcome is itself the token. Two outcomes of a draw have different tokens.
        """
        if item.before not in self._known:
            tokens = {_index(item): first}
            possible = {index for index, mass in enumerate(_masses(item)) if mass > 0}
            for path in self._engine:
                if len(tokens) == len(possible):
                    break
                if path.choices[: len(item.before)] != item.before:
                    continue
                other = with_pmfs(self._engine, draws_of(path.decisions), self._size, self._cells)
                here = next((one for one in other if one.before == item.before), None)
                if here is None or _index(here) in tokens:
                    continue
                shown = dict(_queried(other, self._trace_of(path)))
                if item.before not in shown:
                    break
                tokens[_index(here)] = shown[item.before]
            whole = tokens.keys() == possible and all(0 <= one.token < self._size for one in tokens.values())
            sure = not any(one.is_doubtful for one in tokens.values()) or any(one.p <= 0 for one in tokens.values())
            told = {index: one.token for index, one in tokens.items()}
            direct = item.outcome is not None and not item.looked_up[1]
            mapped = not direct or (len({*told.values()}) == len(told) and any(at != told[at] for at in told))
            self._known[item.before] = told if whole and sure and mapped else {}
        return self._known[item.before]


def _index(item: PathDraw) -> int:
    """Return which of its outcomes the draw ``item`` has: the outcome itself, or the interval of its uniform."""
    return item.interval if item.outcome is None or item.widths else item.outcome


def _masses(item: PathDraw) -> tuple[float, ...]:
    """Return the probability of each index of the draw ``item`` (see ``_index``)."""
    return item.widths or item.pmf


def _queried(items: Sequence[PathDraw], trace: Trace | None) -> Iterator[tuple[Outcomes, _Token]]:
    """Yield (outcomes before the draw, token) for the draws of a path whose token is only shown by a query.

    Such a draw is the first one after a query to the draft model, and the target was not queried with the same text
    before. Before the next draw, a model is queried with this text and one token more. ``items`` are the draws of the
    path, and ``trace`` has its queries.
    """
    if trace is None or trace.target is None or len(trace.texts) != 1 or len(trace.moments) != len(trace.queries):
        return
    open_ones = [item for item in items if item.high - item.low < 1 - NEAR]
    ends = [*(len(item.before) for item in open_ones[1:]), max(trace.moments, default=0)]
    for number, (item, end) in enumerate(zip(open_ones, ends, strict=False)):
        asked = sum(moment <= len(item.before) for moment in trace.moments)
        if sum(mass > 0 for mass in _masses(item)) < 2 or item.together or not asked:
            continue
        name, text = trace.queries[asked - 1]
        is_first = not number or trace.moments[asked - 1] > len(open_ones[number - 1].before)
        if name != "draft" or not is_first or ("target", text) in trace.queries[:asked]:
            continue
        queries = zip(trace.moments[asked:], trace.queries[asked:], strict=True)
        following = [query for moment, query in queries if moment <= end]
        token = next((other[-1] for _, other in following if other and other[:-1] == text), None)
        if token is not None:
            p = trace.target(text).tolist()
            doubtful = ("target", text) in following and min(p) <= 0
            yield item.before, _Token(token, float(p[token]) if token < len(p) else 0.0, doubtful)
