"""Read the draft model of a batch from the draws of an engine whose models are not recorded.

The rows of such a batch advance in lock step: each round drafts as many tokens in every row, and appends as many. The
rows of q are those from which the drafts are drawn, and the rows of p are those of the expected law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.batch_rules import RequestBatch, UnknownRowError, rule_of_batch
from specverify.checks.explaining.counterexample_parts import NEAR_LAW
from specverify.checks.explaining.engine_paths import KeptPaths, PathDraw, draws_of, with_pmfs
from specverify.checks.explaining.engine_rounds import model_of_law
from specverify.checks.explaining.round_rules import Row, same_row
from specverify.laws.paths import outcomes_of
from specverify.reference import LanguageModel, Tokens

READ_PATHS = 1000
"""The largest number of paths from which the rows of q are read."""
MOST_GAMMA = 4
"""The largest number of drafts a round that is tried."""

Split = Callable[[Any], Sequence[Tokens]]
RowsOfRequests = dict[tuple[int, Tokens], Row]
"""(index of a request, its new tokens) -> row of q."""


class _Layout(NamedTuple):
    """The order in which a round draws its drafts: ``gamma`` in each of ``rows`` rows, up to ``horizon`` tokens."""

    gamma: int
    by_row: bool
    rows: int
    horizon: int

    def drafts(self, block: Sequence[PathDraw], count: int) -> list[list[PathDraw]]:
        """Return the draws of each row, ``count`` of each, in a round that begins with the draws ``block``."""
        if self.by_row:
            return [list(block[i * count : (i + 1) * count]) for i in range(self.rows)]
        return [list(block[i :: self.rows]) for i in range(self.rows)]


def fault_of_drawn_batch(engine: KeptPaths, split: Split, laws: tuple[Mapping[Any, Any], Mapping[Any, Any]]) -> str:
    """Return the sentence about a fault that lets one row of a batch decide about another; "" if there is none.

    ``engine`` has the paths, ``split`` returns the new tokens of each request, and ``laws`` are the observed and the
    expected law of the engine.
    """
    law, expected = ({tuple(map(tuple, split(new))): float(mass) for new, mass in one.items()} for one in laws)
    lengths = {len(new) for texts in (*law, *expected) for new in texts}
    rows = len(next(iter(expected)))
    if rows < 2 or len(lengths) != 1:
        return ""
    [horizon] = lengths
    size = max(token for texts in expected for new in texts for token in new) + 1
    models = [model_of_law(_law_of_row(expected, i), size) for i in range(rows)]
    if not _are_independent(expected, models):
        return ""
    cells = dict[tuple[int, ...], Any]()
    read = [
        (with_pmfs(engine, draws_of(path.decisions), size, cells), tuple(split(outcomes_of(path.outcome)[0][0])))
        for path in islice(engine, READ_PATHS)
    ]
    for gamma, by_row in product(range(1, min(MOST_GAMMA, horizon - 1) + 1), (False, True)):
        q = _rows_of_drafts(_Layout(gamma, by_row, rows, horizon), read)
        if q:
            prompts = tuple((i,) for i in range(rows))  # stands for the prompt, which is not known
            batch = RequestBatch(_target(models, horizon), _draft(q), prompts, horizon, (rows,), (gamma,))
            joined = {sum(texts, ()): mass for texts, mass in law.items()}
            if said := rule_of_batch(batch, joined):
                return said
    return ""


def _law_of_row(law: Mapping[Any, float], i: int) -> dict[Tokens, float]:
    result: dict[Tokens, float] = {}
    for texts, mass in law.items():
        result[texts[i]] = result.get(texts[i], 0.0) + mass
    return result


def _are_independent(law: Mapping[Any, float], models: Sequence[LanguageModel]) -> bool:
    """Return whether the probability of all texts in ``law`` is the product of those of its rows, by ``models``."""
    for texts, mass in law.items():
        for model, new in zip(models, texts, strict=True):
            for i, token in enumerate(new):
                mass /= max(float(model(new[:i])[token]), NEAR_LAW**2)  # noqa: PLW2901
        if abs(mass - 1) > NEAR_LAW:
            return False
    return True


def _target(models: Sequence[LanguageModel], horizon: int) -> LanguageModel:
    def p(text: Tokens) -> Any:
        row = models[text[0]](text[1:]) if len(text) <= horizon else np.zeros(1)
        if not row.any():
            raise UnknownRowError
        return row

    return p


def _draft(rows: RowsOfRequests) -> LanguageModel:
    def q(text: Tokens) -> Any:
        if (text[0], text[1:]) not in rows:
            raise UnknownRowError
        return np.asarray(rows[text[0], text[1:]])

    return q


def _rows_of_drafts(layout: _Layout, read: Sequence[tuple[Sequence[PathDraw], Sequence[Tokens]]]) -> RowsOfRequests:
    """Return the rows of q of each request after each text, read from paths with ``layout``; {} if they do not have it.

    ``read`` has (draws, new tokens of each request) of each path. A path is read up to the first round after which the
    number of kept drafts is not certain. All paths must agree.
    """
    result: RowsOfRequests = {}
    for drawn, texts in read:
        place, at, begin = drawn[0].place if drawn else "", 0, 0
        while at < len(drawn) and (count := min(layout.gamma, layout.horizon - begin - 1)) > 0:
            block = drawn[at : at + count * layout.rows]
            if len(block) < count * layout.rows or any(one.place != place or not one.pmf for one in block):
                return {}
            drafts = layout.drafts(block, count)
            for i, some in enumerate(drafts):
                for k, item in enumerate(some):
                    key = i, (*texts[i][:begin], *(one.outcome or 0 for one in some[:k]))
                    if not same_row(result.setdefault(key, item.pmf), item.pmf, NEAR_LAW):
                        return {}
            at = next((j for j in range(at + len(block), len(drawn)) if drawn[j].place == place), len(drawn))
            ends = [begin + kept + 1 for kept in _kept(drafts, [new[begin:] for new in texts])]
            ends = [end for end in ends if (layout.horizon - end > 1) == (at < len(drawn))]
            if not ends:
                return {}
            if len(ends) > 1:
                break
            begin = ends[0]
    return result


def _kept(drafts: Sequence[Sequence[PathDraw]], texts: Sequence[Tokens]) -> list[int]:
    """Return the numbers of kept drafts that agree with the new ``texts`` of all rows."""
    return [
        kept
        for kept in range(len(drafts[0]) + 1)
        if all(
            tuple(one.outcome for one in some[:kept]) == tuple(new[:kept])
            for some, new in zip(drafts, texts, strict=True)
        )
    ]
