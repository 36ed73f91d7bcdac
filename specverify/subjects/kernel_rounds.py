"""The rows for a kernel whose uniforms are arguments, and their evaluation.

A *case* is one sequence of drafts in a situation (a target, a draft model and a number of drafts); each row has one
case. A *table* is a pair of models. The rows of all drafts of all situations share one launch, in random order, so that
a row has neighbours with other drafts, lengths and pmfs. In a large vocabulary only three or four tokens have positive
probability. They lie on both sides of the edges of blocks: with 1025 tokens, for example, 511, 512 and 1024.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from specverify.base.host_arrays import host_array
from specverify.laws.draws import Tape
from specverify.laws.grid import GridCell, cells_between, chain_breakpoints, drafted, rows_of
from specverify.reference import Draws, Site, Tokens, Verified, chain
from specverify.reference.verifiers.block_verification import block_verification
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_calls import KernelBatch, as_given, called, given_batch
from specverify.subjects.kernel_tables import (
    KERNEL_GAMMA,
    PROMPT,
    SIZE,
    Situation,
    deep_situations,
    situations_of,
    small_weight_situation,
    three_left_situations,
)

Placement = Literal["edge", "block", "far", "ends", "thirds"]
"""Which ids get positive probability in a large vocabulary (``ids_of``)."""
RULES = {"token": speculative_sampling, "block": block_verification}
TABLES = 12
"""The largest number of tables (pairs of models)."""
ENTRIES = 2**24
"""The most entries of p and q together in one launch."""
LAUNCHED = 4099
"""The most rows in one launch; a prime, so that no block size divides it."""


class DraftCase(NamedTuple):
    """One possible sequence of drafts for a pair of models, with its pmfs p and q.

    ``situation`` has the models (target and draft model) and the number of drafts.
    """

    situation: Situation
    draft: Tokens
    p: Sequence[Any]
    """``length + 1`` rational pmfs."""
    q: Sequence[Any]
    weight: Any
    """The probability that these drafts are drawn from q."""


class KernelRounds(NamedTuple):
    """Draft cases as rows of a batch for a kernel, and the cells of their uniforms.

    A draft case is a pair of models with one sequence of at most ``gamma`` drafts. A cell is a box of uniforms in which
    the reference rule, such as speculative sampling, emits the same tokens for one case. The uniforms of a row decide
    its drafts and its last token. If the last token is drawn by a race (the largest weight / noise), there is one more
    uniform, which gives the noise of the third token.
    """

    kernel: Kernel
    gamma: int
    ids: tuple[int, ...]
    """The ids, in the kernel's vocabulary, of the three or four tokens with positive probability."""
    cases: tuple[DraftCase, ...]
    batch: KernelBatch
    cells: tuple[GridCell, ...]

    @property
    def vocabulary(self) -> int:
        """Return the size of the kernel's vocabulary."""
        return int(self.batch.p.shape[-1])

    @property
    def most(self) -> int:
        """Return the largest number of rows in one launch of the kernel."""
        return max(1, min(LAUNCHED, ENTRIES // ((2 * self.gamma + 1) * self.vocabulary)))


def rounds_of(kernel: Kernel, gamma: int, vocabulary: int, budget: int, placement: Placement = "edge") -> KernelRounds:
    """Return the kernel's rows for as many pairs of models as ``budget``, the most rows of one evaluation, allows.

    Rows have up to ``gamma`` drafts and a vocabulary of ``vocabulary`` tokens. ``placement`` selects the ids of the
    three tokens with positive probability (see ``ids_of``). Raises ``ValueError`` if no pair fits into the budget.
    """
    of_weight = [(small_weight_situation(),)] if gamma == 2 and kernel.convention.rule == "block" else []
    tables = (*of_weight, *(situations_of(kernel, gamma, i) for i in range(TABLES)))
    return _of_tables(kernel, gamma, vocabulary, budget, tables, placement)


def three_left_rounds_of(
    kernel: Kernel, gamma: int, vocabulary: int, budget: int, placement: Placement
) -> KernelRounds:
    """Return the kernel's rows in which a rejected draft is replaced by one of three tokens.

    Rows have ``gamma`` drafts and a vocabulary of ``vocabulary`` tokens. ``placement`` selects the ids of the four
    tokens with positive probability (see ``ids_of``). ``budget`` is the largest number of rows of one evaluation. The
    kernel must not draw by a race, whose law is computed only between two tokens.
    """
    tables = ((situation,) for situation in three_left_situations(gamma))
    return _of_tables(kernel, gamma, vocabulary, budget, tables, placement)


def deep_rounds_of(kernel: Kernel, budget: int) -> KernelRounds:
    """Return the rows with many drafts for the kernel: as many ``deep_situations`` as the budget permits.

    ``budget`` is the largest number of rows of one evaluation.
    """
    tables = ((situation,) for situation in deep_situations(kernel))
    return _of_tables(kernel, KERNEL_GAMMA, SIZE, budget, tables)


def runs_on(rounds: KernelRounds) -> bool:
    """Return whether the kernel runs without an error on the first row of ``rounds``; it may raise for many drafts."""
    try:
        decided(rounds, np.zeros(1, dtype=np.int64), np.full((1, rounds.gamma + 1 + rounds.kernel.race), 0.5))
    except Exception:  # noqa: BLE001 - it may refuse this number of drafts in any way
        return False
    return True


def _of_tables(
    kernel: Kernel,
    gamma: int,
    vocabulary: int,
    budget: int,
    tables: Iterable[Sequence[Situation]],
    placement: Placement = "edge",
) -> KernelRounds:
    cases, cells, least = list[DraftCase](), list[GridCell](), float("inf")
    for situations in tables:
        new = [case for situation in situations for case in _cases(situation)]
        parts = [cells_between(_breakpoints(kernel, gamma, case), len(cases) + i) for i, case in enumerate(new)]
        wanted = sum(map(rows_of, parts))
        least = min(least, wanted)
        if rows_of(cells) + wanted <= budget:
            cases += new
            cells += [cell for part in parts for cell in part]
    if not cases:
        raise ValueError(f"rows leave {budget} for gamma={gamma}, expected at least {least}, which one table takes")
    ids = ids_of(vocabulary, placement)
    return KernelRounds(kernel, gamma, ids, tuple(cases), _batch(kernel, cases, gamma, ids, vocabulary), tuple(cells))


def ids_of(vocabulary: int, placement: Placement = "edge") -> tuple[int, ...]:
    """Return the ids of the tokens that get positive probability in a kernel's ``vocabulary`` (its size).

    Kernels process a vocabulary in blocks, whose sizes are powers of two. Let b be the second largest power of two
    below the vocabulary size. The ids depend on ``placement``:

    * "edge": b - 1, b and the last id, on both sides of a block's edge.
    * "block": b, b + 1 and the last id.
    * "far": 0 and the last two ids that are in one block of every size; between them and 0 there may be blocks without
      probability, which a kernel must count when it adds up the blocks before.
    * "ends": four ids, the first two and the last two that are in one block of every size.
    * "thirds": four ids, the first and the last one and those after one and two thirds of the vocabulary, so that each
      is in a block of its own if blocks are small.

    In a vocabulary of three tokens they are 0, 1 and 2.
    """
    if vocabulary == SIZE:
        return (0, 1, 2)
    last = vocabulary // 2 * 2 - 1
    if placement == "far":
        return (0, last - 1, last)
    if placement == "ends":
        return (0, 1, last - 1, last)
    if placement == "thirds":
        return (0, vocabulary // 3, 2 * vocabulary // 3, vocabulary - 1)
    edge = 1 << (vocabulary - 1).bit_length() - 2
    first = edge if placement == "block" else edge - 1
    return (first, first + 1, vocabulary - 1)


def _cases(situation: Situation) -> list[DraftCase]:
    models = situation.target, situation.draft
    return [DraftCase(situation, *result) for result in drafted(models, PROMPT, situation.length)]


def _breakpoints(kernel: Kernel, gamma: int, case: DraftCase) -> list[Any]:
    *coins, last = chain_breakpoints(case.p, case.q, case.draft, RULES[kernel.convention.rule])
    return [*coins, *[()] * (gamma - len(coins)), last, *([()] if kernel.race else [])]


def _batch(
    kernel: Kernel, cases: Sequence[DraftCase], gamma: int, ids: tuple[int, ...], vocabulary: int
) -> KernelBatch:
    """Return a batch for ``kernel`` with one row for each of ``cases``, in a vocabulary of ``vocabulary`` tokens.

    A row has room for ``gamma`` drafts; the padding after its drafts must not affect the result. ``ids`` are the ids of
    the tokens with positive probability.
    """
    p = np.zeros((len(cases), gamma + 1, vocabulary))
    q = np.zeros((len(cases), gamma, vocabulary))
    p[..., ids[0]], q[..., ids[0]], q[..., ids[-1]] = 1, 0.75, 0.25
    drafts = np.full((len(cases), gamma), kernel.convention.draft_padding)
    for row, case in enumerate(cases):
        count = case.situation.length
        p[row, : count + 1], q[row, :count] = 0, 0
        p[row, : count + 1, ids] = np.array(case.p, dtype=np.float64).T
        q[row, :count, ids] = np.array(case.q, dtype=np.float64).reshape(count, len(ids)).T
        drafts[row, :count] = [ids[token] for token in case.draft]
    return KernelBatch(p, q, drafts, np.array([case.situation.length for case in cases]))


def launched(rounds: KernelRounds, cases: Any, uniforms: Any, seed: int = 0) -> Any:
    """Return the kernel's tokens ``[rows, gamma + 1]`` from a few launches, whose order of rows ``seed`` selects.

    ``cases`` ``[rows]`` has the index of each row's case in ``rounds.cases``, and ``uniforms`` ``[rows, k]`` its
    uniforms. The result is in the order of ``cases``, in the numbering of ``in_small``.
    """
    order = np.random.default_rng(seed).permutation(len(cases))
    starts = [*range(0, len(cases), rounds.most), len(cases)]
    parts = [decided(rounds, cases[order[a:b]], uniforms[order[a:b]]) for a, b in pairwise(starts)]
    return np.concatenate(parts)[np.argsort(order)]


def decided(rounds: KernelRounds, cases: Any, uniforms: Any, size: float = 1.0) -> Any:
    """Return the kernel's tokens ``[rows, gamma + 1]`` from one launch, with the rows in the order of ``cases``.

    ``cases`` ``[rows]`` has the index of each row's case in ``rounds.cases``, and ``uniforms`` ``[rows, k]`` its
    uniforms. The noise of a race is multiplied by ``size``. The result is in the numbering of ``in_small``.
    """
    batch = KernelBatch(*(values[cases] for values in rounds.batch))
    answer = called(rounds.kernel, given_batch(rounds.kernel, batch), random_of(rounds, cases, uniforms, size))
    return in_small(rounds, host_array(answer))


def in_small(rounds: KernelRounds, answer: Any) -> Any:
    """Return the tokens ``answer`` in a small numbering, which does not depend on the vocabulary of the kernel.

    The n tokens with positive probability, whose ids are in ``rounds``, become 0 to n - 1, and any other token becomes
    its id plus n. Negative tokens stay unchanged.
    """
    small = np.where(answer >= 0, answer.astype(np.int64) + len(rounds.ids), answer)
    for token, identity in enumerate(rounds.ids):
        small[answer == identity] = token
    return small


def in_ids(rounds: KernelRounds, tokens: Sequence[int]) -> Tokens:
    """Return the token ids, in the kernel's vocabulary, of ``tokens`` in a numbering that suits messages.

    This numbering is that of ``in_small``, the inverse.
    """
    size = len(rounds.ids)
    return tuple(
        rounds.ids[token] if 0 <= token < size else token - size if token >= size else token for token in tokens
    )


def random_of(rounds: KernelRounds, cases: Any, uniforms: Any, size: float = 1.0) -> tuple[Any, Any]:
    """Return the uniforms of the drafts and the random argument of the last draw, in the kernel's library.

    The second is the uniform of the last draw, or the noise ``[rows, V]`` of a race. ``cases`` ``[rows]`` has the index
    of each row's case in ``rounds.cases``. ``uniforms`` ``[rows, k]`` has gamma uniforms for the drafts, then those of
    the last draw. The noise of a race is multiplied by ``size``.
    """
    kernel, gamma = rounds.kernel, rounds.gamma
    last = uniforms[:, gamma]
    if kernel.race:
        last = size * noise_of(rounds, cases, last, uniforms[:, gamma + 1])
        last = -np.log(last) if kernel.convention.recovery == "gumbel" else last
    return given_random(kernel, uniforms[:, :gamma], last)


def given_random(kernel: Kernel, coins: Any, last: Any) -> tuple[Any, Any]:
    """Return the random numbers ``coins`` of the drafts and ``last`` of the last draw in the kernel's library."""
    return as_given(kernel, coins, kernel.of_uniforms), as_given(kernel, last, kernel.of_uniforms)


def noise_of(rounds: KernelRounds, cases: Any, share: Any, rest: Any) -> Any:
    """Return the exponential noise ``[rows, V]`` with which a race draws the last token of each row.

    * ``cases`` ``[rows]``: The index of each row's case in ``rounds.cases``; a case has two tokens between which the
      race decides.
    * ``share`` ``[rows]``: The noise of the first of the two tokens; that of the second is 1 - ``share``.
    * ``rest`` ``[rows]``: Uniforms that determine the noise of the third token with positive probability.

    All other tokens have the same noise in every row.
    """
    rng, rows = np.random.default_rng(rounds.vocabulary), np.arange(len(cases))
    noise = np.broadcast_to(rng.exponential(size=rounds.vocabulary), (len(cases), rounds.vocabulary)).copy()
    pairs = np.array([case.situation.pair for case in rounds.cases])[cases]
    ids, whole = np.array(rounds.ids), np.sqrt(rest)
    noise[rows, ids[pairs[:, 0]]], noise[rows, ids[pairs[:, 1]]] = share, 1 - share
    noise[rows, ids[SIZE - pairs.sum(axis=1)]] = (1 - whole) / whole
    return noise


def by_rule(rounds: KernelRounds, case: DraftCase, uniforms: Sequence[float]) -> Tokens:
    """Return the tokens that a right kernel emits for ``case`` at these uniforms.

    They are computed by the rule that the kernel's convention names: speculative sampling or block verification. The
    last token is drawn by inverse CDF, or by the kernel's race if it has one. ``rounds`` has the kernel and its cases.
    """
    last = float(uniforms[rounds.gamma])
    answers: dict[tuple[Site, int], float] = {(("bonus",), 0): last}
    for i in range(len(case.draft)):
        answers |= {(("accept", i), 0): float(uniforms[i]), (("residual", i), 0): last}
    tape = Tape(0, answers)
    return verified(rounds.kernel, case.draft, case.p, case.q, tape).tokens


def verified(kernel: Kernel, draft: Tokens, p: Sequence[Any], q: Sequence[Any], draws: Draws) -> Verified:
    """Return the result for ``draft`` under the rule that the kernel's convention names; ``draws`` makes the draws.

    The rule is speculative sampling or block verification. ``p[i]`` and ``q[i]`` are the pmfs at position i.
    """
    return RULES[kernel.convention.rule](draws, lambda tokens: p[len(tokens)], (), chain(draft, tuple(q)))
