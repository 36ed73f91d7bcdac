"""Explain a wrong law of a batch by a rule that lets one row decide about another.

Each hypothesis is a decoder that serves all rows round by round and has one fault. Its law is enumerated, and the fault
is named only if this law equals that of the engine. Faults of a single row are explained elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.queried_rounds import in_another_order
from specverify.checks.explaining.round_rules import Row, excess, mean, ratio
from specverify.laws.enumeration import program_law
from specverify.laws.paths import Path
from specverify.laws.tables import as_dtype
from specverify.reference import Draws, LanguageModel, Tokens

NEAR = 1e-6
NO_WEIGHT = 1e-12
"""A path of at most this probability may exist by rounding alone."""
MOST_RUNS = 1500
"""A hypothesis with more paths is not tried."""
MOST_ROWS = 4
"""The largest number of rows whose order is examined."""


class RequestBatch(NamedTuple):
    """The requests that an engine serves, with their target ``p`` and draft model ``q``.

    ``prompts`` has the prompt of each request, and ``horizon`` is the largest number of new tokens of each.
    """

    p: LanguageModel
    q: LanguageModel
    prompts: tuple[Tokens, ...]
    horizon: int
    sizes: tuple[int, ...]
    """The number of requests of each batch."""
    gammas: tuple[int, ...] = (1, 2, 3, 4)
    """The numbers of drafts a round that the engine may make."""


class _RowRound(NamedTuple):
    """One round of one request of a batch: its drafts, and the pmfs ``p`` and ``q`` along them.

    ``passed`` states for each draft whether it passes its test. Drafts after the first rejection are tested too,
    because a wrong decoder may use these results.
    """

    drafts: Tokens
    p: tuple[Row, ...]
    q: tuple[Row, ...]
    passed: tuple[bool, ...]
    left: tuple[tuple[Row, Row], ...]
    """The rows of p and q whose residual replaces each draft."""

    @property
    def accepted(self) -> int:
        """The number of accepted drafts."""
        return self.passed.index(False) if False in self.passed else len(self.passed)

    def last(self, count: int) -> Row:
        """Return the pmf of the token that follows ``count`` accepted drafts.

        If all drafts are accepted, this is p after the last one; otherwise it is the residual at the rejected draft.
        """
        return self.p[count] if count == len(self.drafts) else excess(*self.left[count])

    def cut(self, count: int) -> Row:
        """Return the pmf of the last token of the row if ``count`` drafts are kept, whatever their tests give.

        A wrong decoder needs this pmf if it keeps the same number of drafts in every row of a batch. If the row has
        fewer than ``count`` drafts, all are kept.
        """
        return self.last(min(count, len(self.drafts)))


Ending = tuple[int, Row]
"""The number of kept drafts of a row, and the row from which the token after them is drawn."""
EndingRule = Callable[[Sequence[_RowRound], int], Ending]
"""``rule(rows, b)`` returns the ending of row ``b`` in a round of all ``rows``."""


def _right(rows: Sequence[_RowRound], b: int) -> Ending:
    return rows[b].accepted, rows[b].last(rows[b].accepted)


def _bonus_for_all_or_none(rows: Sequence[_RowRound], b: int) -> Ending:
    here, gamma = rows[b], len(rows[b].drafts)
    if not gamma or here.accepted < gamma or all(row.accepted == len(row.drafts) for row in rows):
        return _right(rows, b)
    return here.accepted, excess(here.p[gamma - 1], here.q[gamma - 1])


def _no_bonus_but_p(rows: Sequence[_RowRound], b: int) -> Ending:
    count, row = _bonus_for_all_or_none(rows, b)
    return count, row if row is rows[b].p[-1] or count < len(rows[b].drafts) else rows[b].p[count - 1]


def _bonus_for_any(rows: Sequence[_RowRound], b: int) -> Ending:
    some = any(row.accepted == len(row.drafts) for row in rows)
    return (rows[b].accepted, rows[b].p[-1]) if some else _right(rows, b)


def _count_of(choose: Callable[[list[int]], int], rows: Sequence[_RowRound], b: int) -> Ending:
    count = min(choose([row.accepted for row in rows]), len(rows[b].drafts))
    return count, rows[b].cut(count)


def _any_passes(rows: Sequence[_RowRound], b: int) -> Ending:
    some = [any(row.passed[i : i + 1] == (True,) for row in rows) for i in range(len(rows[b].drafts))]
    count = some.index(False) if False in some else len(some)
    return count, rows[b].cut(count)


def _place_of(choose: Callable[[list[int]], int], rows: Sequence[_RowRound], b: int) -> Ending:
    return rows[b].accepted, rows[b].cut(choose([row.accepted for row in rows]))


def _cut_to_least(by_p: bool, rows: Sequence[_RowRound], b: int) -> Ending:
    least = min(row.accepted for row in rows)
    if rows[b].accepted == least:
        return _right(rows, b)
    return least, rows[b].p[least] if by_p else excess(rows[b].p[least], rows[b].q[least])


def _residual_of_first(rows: Sequence[_RowRound], b: int) -> Ending:
    count = rows[b].accepted
    if count == len(rows[b].drafts) or count >= len(rows[0].drafts):
        return _right(rows, b)
    return count, excess(rows[0].p[count], rows[0].q[count])


RowsOfTest = Callable[[Sequence[tuple[Row, Row]], int], tuple[Row, Row]]
"""``rows(pairs, b)`` returns the rows of p and q in the test of row ``b``; ``pairs`` has them for all rows."""


def _own(pairs: Sequence[tuple[Row, Row]], b: int) -> tuple[Row, Row]:
    return pairs[b]


def _mean_p(pairs: Sequence[tuple[Row, Row]], b: int) -> tuple[Row, Row]:
    return mean([p for p, _ in pairs]), pairs[b][1]


def _p_of(by: int, pairs: Sequence[tuple[Row, Row]], b: int) -> tuple[Row, Row]:
    return pairs[(b + by) % len(pairs)][0], pairs[b][1]


def _q_of(by: int, pairs: Sequence[tuple[Row, Row]], b: int) -> tuple[Row, Row]:
    return pairs[b][0], pairs[(b + by) % len(pairs)][1]


class _Hypothesis(NamedTuple):
    """A fault of a batch, as the differences from the right decoder; ``words`` name the fault.

    The defaults of the fields are those of the right decoder. ``ending`` determines, for each row, how many drafts are
    kept and from which pmf the token after them is drawn.
    """

    words: str
    ending: EndingRule = _right
    drafts_by_place: bool = False
    """Whether drafts are made for all rows, also for finished ones, and assigned to the unfinished rows in order."""
    p_by_place: bool = False
    """Whether p is computed for all rows and assigned to the unfinished rows in order."""
    one_coin: bool = False
    """Whether one random number tests the drafts of all rows at a position."""
    in_test: RowsOfTest = _own
    """The rows with which a draft is tested."""
    in_residual: RowsOfTest = _own
    """The rows from which the residual is computed."""
    least_gamma: int = 1
    """The least number of drafts with which this fault differs from another one."""
    instead: str = ""
    """The words if another hypothesis with the same ``instead`` fits too; "" if there are no such words."""


_OF_OTHERS = (
    "after a row of the batch has ended, the drafts or p of other rows are used: they are computed for all rows, and "
    "assigned in order to those that have not ended"
)
_FIRST, _LAST = (lambda counts: counts[0]), (lambda counts: counts[-1])
HYPOTHESES = (
    *(
        _Hypothesis(
            "a row whose drafts are all accepted gets its bonus only if all rows of the batch accept all drafts; "
            "otherwise its last token is drawn at the position of its last draft once more",
            rule,
        )
        for rule in (_bonus_for_all_or_none, _no_bonus_but_p)
    ),
    _Hypothesis(
        "a row that rejects a draft gets the bonus row, p after all its drafts, if another row accepts all drafts",
        _bonus_for_any,
    ),
    _Hypothesis(
        "every row keeps as many drafts as the row of the batch that accepts the most, also rejected ones",
        partial(_count_of, max),
    ),
    _Hypothesis("every row keeps as many drafts as the first row of the batch accepts", partial(_count_of, _FIRST)),
    _Hypothesis("every row keeps as many drafts as the last row of the batch accepts", partial(_count_of, _LAST)),
    _Hypothesis(
        "a draft is kept if the draft of any row of the batch at its position is accepted", _any_passes, least_gamma=2
    ),
    _Hypothesis(
        "the last token of every row is drawn at the position at which the first row of the batch rejects",
        partial(_place_of, _FIRST),
    ),
    _Hypothesis(
        "the last token of every row is drawn at the first position at which any row of the batch rejects",
        partial(_place_of, min),
        least_gamma=2,
    ),
    _Hypothesis(
        "the last token of every row is drawn at the last position at which any row of the batch rejects",
        partial(_place_of, max),
        least_gamma=2,
    ),
    _Hypothesis(
        "a row that accepts more drafts than another row of the batch is cut to as many, and the accepted draft is "
        "replaced by a draw from p",
        partial(_cut_to_least, True),
    ),
    _Hypothesis(
        "a row that accepts more drafts than another row of the batch is cut to as many, and the accepted draft is "
        "replaced by a draw from norm(max(p - q, 0))",
        partial(_cut_to_least, False),
    ),
    _Hypothesis(
        "a rejected draft is replaced by a draw from the residual of the first row of the batch", _residual_of_first
    ),
    _Hypothesis(
        "after a row of the batch has ended, the drafts of other rows are used: they are made for all rows, and "
        "assigned in order to those that have not ended",
        drafts_by_place=True,
        instead=_OF_OTHERS,
    ),
    _Hypothesis(
        "after a row of the batch has ended, p of other rows is used: it is computed for all rows, and assigned in "
        "order to those that have not ended",
        p_by_place=True,
        instead=_OF_OTHERS,
    ),
    *(
        _Hypothesis(
            f"p is averaged over the rows of the batch {where}",
            in_test=test,
            in_residual=residual,
            instead="p is averaged over the rows of the batch",
        )
        for where, test, residual in (
            ("in the test of a draft", _mean_p, _own),
            ("in the residual", _own, _mean_p),
            ("in the test and in the residual", _mean_p, _mean_p),
        )
    ),
    *(
        _Hypothesis(
            f"{model} of another row of the batch is used {where}",
            in_test=test,
            in_residual=residual,
            instead=f"{model} of another row of the batch is used",
        )
        for model, change in (("p", _p_of), ("q", _q_of))
        for by in (1, -1)
        for where, test, residual in (
            ("in the test of a draft", partial(change, by), _own),
            ("in the residual", _own, partial(change, by)),
            ("in the test and in the residual", partial(change, by), partial(change, by)),
        )
    ),
    _Hypothesis("one random number tests the drafts of all rows of the batch at a position", one_coin=True),
)


def rule_of_batch(batch: RequestBatch, law: Mapping[Tokens, Any]) -> str:
    """Return the sentence about the only fault that gives a batch the law ``law``; "" if none or several do.

    ``law`` maps the concatenated new tokens of all requests to their probability.
    """
    cached = batch._replace(p=as_dtype(batch.p, np.float64), q=as_dtype(batch.q, np.float64))
    fitting = [one for one in HYPOTHESES if _explains(one, cached, law)]
    words = {one.words for one in fitting}
    if len(words) > 1:
        words = {one.instead for one in fitting}
    return words.pop() if len(words) == 1 else "" if fitting else _other_order(cached, law)


def _explains(hypothesis: _Hypothesis, batch: RequestBatch, law: Mapping[Tokens, Any]) -> bool:
    return any(
        _has_law(partial(_decode, hypothesis, batch, gamma, shortened, stays, bonus), law)
        for shortened in (False, True)
        for gamma, stays, bonus in product(_gammas(batch, shortened), (False, True), (True, False))
        if gamma >= hypothesis.least_gamma and (bonus or hypothesis.ending is _right)
    )


def _gammas(batch: RequestBatch, shortened: bool) -> tuple[int, ...]:
    """Return the gammas that differ: if rounds are ``shortened``, none makes more than horizon - 1 drafts."""
    most = min((gamma for gamma in batch.gammas if gamma >= batch.horizon - 1), default=max(batch.gammas))
    return tuple(gamma for gamma in batch.gammas if not shortened or gamma <= most)


def _has_law(decode: Callable[[Draws], Tokens], law: Mapping[Tokens, Any]) -> bool:
    """Return whether the program ``decode`` has the law ``law``, a mapping from texts to probabilities.

    The enumeration stops as soon as a text has a larger probability than in ``law``, or is not in it: if almost all
    rows are one-hot, a fault that mixes rows has many texts, all improbable.
    """
    left = {text: float(mass) for text, mass in law.items()}

    def take(path: Path[Tokens]) -> None:
        left[path.outcome] = left.get(path.outcome, 0.0) - float(path.weight)
        if left[path.outcome] < -NEAR or (path.outcome not in law and path.weight > NO_WEIGHT):
            raise _TooProbableError

    try:
        other = program_law(decode, MOST_RUNS, on_path=take)
    except (_TooProbableError, UnknownRowError):
        return False
    return not other.missing and all(mass < NEAR for mass in left.values())


class UnknownRowError(Exception):
    """Raised by a model of a batch whose row after a text is not known; a fault that needs this row is not named."""


class _TooProbableError(Exception):
    """Raised if a decoder with a supposed fault emits a text that the engine emits less often, or never."""


def _decode(
    hypothesis: _Hypothesis, batch: RequestBatch, gamma: int, shortened: bool, stays: bool, bonus: bool, draws: Draws
) -> Tokens:
    """Decode ``batch`` with the fault ``hypothesis``; return the concatenated new tokens of all requests.

    Args:
        hypothesis: The fault.
        batch: The requests and the models.
        gamma: The number of drafts of a round.
        shortened: Whether fewer drafts are made near the end of a text, so that no round exceeds it.
        stays: Whether a row that has ended stays in the batch.
        bonus: Whether a token follows the last draft if all drafts are accepted.
        draws: Supplies the random outcomes.
    """
    result: Tokens = ()
    begin = 0
    for size in batch.sizes:
        prompts = batch.prompts[begin : begin + size]
        begin += size
        texts, ends = list(prompts), [len(prompt) + batch.horizon for prompt in prompts]
        while any(len(text) < end for text, end in zip(texts, ends, strict=True)):
            live = [i for i in range(size) if stays or len(texts[i]) < ends[i]]
            counts = [max(min(gamma, ends[i] - len(texts[i]) - 1), 0) if shortened else gamma for i in live]
            rows = list(_rows(hypothesis, batch, texts, live, counts, draws))
            for b, i in enumerate(live):
                kept, row = hypothesis.ending(rows, b)
                last = (_drawn(draws, row),) if bonus or kept < len(rows[b].drafts) or not kept else ()
                texts[i] += (*rows[b].drafts[:kept], *last)
        for prompt, text, end in zip(prompts, texts, ends, strict=True):
            result += text[len(prompt) : end]
    return result


def _drawn(draws: Draws, row: Row) -> int:
    return int(draws.categorical(np.asarray(row, dtype=np.float64), ("token",)))


def _rows(
    hypothesis: _Hypothesis, batch: RequestBatch, texts: list[Tokens], live: list[int], counts: list[int], draws: Draws
) -> Iterator[_RowRound]:
    """Yield one round of each row that still decodes, with the fault ``hypothesis``.

    Args:
        hypothesis: The fault.
        batch: The requests and the models.
        texts: The text of every row so far.
        live: The indices of the rows that still decode.
        counts: The number of drafts of each of these rows.
        draws: Supplies the random outcomes.
    """
    drafted: list[Tokens] = []
    makers = range(len(live)) if hypothesis.drafts_by_place else live
    for i, count in zip(makers, counts, strict=True):
        drafts: Tokens = ()
        for _ in range(count):
            drafts += (_drawn(draws, batch.q(texts[i] + drafts)),)
        drafted.append(drafts)
    rounds = []
    for place, (i, drafts) in enumerate(zip(live, drafted, strict=True)):
        begun = texts[place] if hypothesis.p_by_place else texts[i]
        p = tuple(batch.p(begun + drafts[:k]) for k in range(len(drafts) + 1))
        rounds.append((drafts, p, tuple(batch.q(texts[i] + drafts[:k]) for k in range(len(drafts)))))
    tests = _tests(hypothesis, rounds, draws)
    left = _pairs(rounds, hypothesis.in_residual)
    for (drafts, p, q), passed, pairs in zip(rounds, tests, left, strict=True):
        yield _RowRound(drafts, p, q, passed, pairs)


def _pairs(rounds: Sequence[tuple[Any, ...]], change: RowsOfTest) -> list[tuple[tuple[Row, Row], ...]]:
    """Return, for each row of a batch, the pair (row of p, row of q) with which a wrong decoder tests each draft.

    ``rounds`` has (drafts, rows of p, rows of q) for each row of the batch. ``change(pairs, place)`` returns the pair
    that the wrong decoder uses for row ``place``; ``pairs`` are the right pairs of all batch rows with a draft at this
    position.
    """
    result: list[list[tuple[Row, Row]]] = [[] for _ in rounds]
    for k in range(max((len(drafts) for drafts, _, _ in rounds), default=0)):
        drafting = [b for b, (drafts, _, _) in enumerate(rounds) if k < len(drafts)]
        pairs = [(rounds[b][1][k], rounds[b][2][k]) for b in drafting]
        for place, b in enumerate(drafting):
            result[b].append(change(pairs, place))
    return [tuple(pairs) for pairs in result]


def _tests(hypothesis: _Hypothesis, rounds: Sequence[tuple[Any, ...]], draws: Draws) -> list[tuple[bool, ...]]:
    """Return, for each row of a batch, whether each of its drafts passes its test.

    ``rounds`` has (drafts, rows of p, rows of q) for each row, and ``draws`` supplies the random outcomes. With
    ``hypothesis.one_coin``, all rows share one random number at each position.
    """
    tested = _pairs(rounds, hypothesis.in_test)
    bounds = [
        [float(ratio(p[token], q[token])) for token, (p, q) in zip(drafts, pairs, strict=True)]
        for (drafts, _, _), pairs in zip(rounds, tested, strict=True)
    ]
    if not hypothesis.one_coin:
        return [tuple(_drawn(draws, (bound, 1 - bound)) == 0 for bound in row) for row in bounds]
    passed: list[list[bool]] = [[] for _ in rounds]
    for k in range(max(map(len, bounds))):
        edges = sorted({0.0, 1.0, *(row[k] for row in bounds if k < len(row))})
        low = edges[_drawn(draws, [high - low for low, high in pairwise(edges)])]
        for row, results in zip(bounds, passed, strict=True):
            if k < len(row):
                results.append(low < row[k])
    return list(map(tuple, passed))


def _other_order(batch: RequestBatch, law: Mapping[Tokens, Any]) -> str:
    """Return the sentence that the texts of ``batch`` are right but belong to other rows; "" if this is not so.

    ``law`` is the law of the concatenated texts of the engine.
    """
    if len(batch.prompts) != sum(batch.sizes[:1]) or not 2 <= len(batch.prompts) <= MOST_ROWS:
        return ""

    def plain(order: Sequence[int], draws: Draws) -> Tokens:
        new: Tokens = ()
        for i in order:
            text = batch.prompts[i]
            for _ in range(batch.horizon):
                text += (_drawn(draws, batch.p(text)),)
            new += text[len(batch.prompts[i]) :]
        return new

    places = range(len(batch.prompts))
    for order in permutations(places):
        if list(order) != list(places) and _has_law(partial(plain, order), law):
            return in_another_order([(place, i) for place, i in enumerate(order) if place != i], "row")
    return ""
