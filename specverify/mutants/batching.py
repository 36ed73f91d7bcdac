"""Planted bugs of batches: order of rows, mixed-up rows, rows of different lengths, shared arrays.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters. A function with the decorator ``planted_verifier`` is a whole
verifier: ``p`` and ``q`` are the rows of the target and the draft model, ``draft_tokens`` the drafts, and ``lengths``
the numbers of drafts of the rows of a batch. It returns, for each row of the batch, the accepted drafts and one more
token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specverify.mutants.mutant import planted, with_parts
from specverify.mutants.numpy_verifiers import batch, decided, drawn, excess, owed, planted_verifier
from specverify.mutants.serving.planted import engine_part
from specverify.mutants.serving.request import ExactPmf, Parameters, Request, argmax
from specverify.mutants.serving.scheduler import starts
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified
from specverify.reference.algorithms import scheduled_by_draft
from specverify.reference.drafters.block_rows import argmaxes_of_rows
from specverify.reference.models import draft_model
from specverify.reference.verifiers.sample_and_match import sample_and_match
from specverify.subjects.forms import BATCHED

_EMITTED = np.empty((8, 8), dtype=np.int64)


@planted_verifier(
    "answer-of-the-last-call",
    "returns views of one buffer, which the next call overwrites",
    category="L",
    citation="plausible",
    killed_by="outputs_are_fresh",
    form=BATCHED,
)
def answer_of_the_last_call(p: Any, q: Any, draft_tokens: Any) -> Any:
    """Speculative sampling of a batch that returns views of one buffer: a later call overwrites an earlier result."""
    rows, width = draft_tokens.shape[0], draft_tokens.shape[1] + 1
    emitted = _EMITTED[:rows, :width]
    emitted[:] = -1
    for row, tokens in enumerate(batch(p, q, draft_tokens)):
        emitted[row, : len(tokens)] = tokens
    return emitted


@planted_verifier(
    "argmax-of-candidates",
    "in greedy rows returns a rank instead of a token id",
    category="L",
    citation="vllm-ascend issue #16396, PR #16430",
    killed_by="greedy_is_argmax",
    gammas=(1,),
    form=BATCHED,
)
def argmax_of_candidates(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling of a batch that emits a wrong bonus token at temperature 0: always token 0.

    The last target row is sorted by probability, and the index of the most probable token in the sorted row is emitted
    instead of its id.
    """
    rng, result = np.random.default_rng(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        *stayed, last = decided(rng, p[row], q[row], drafts)
        if len(stayed) == len(drafts) and p[row].max(-1).min() == 1:
            last = int(np.sort(p[row, -1])[::-1].argmax())
        result.append([*stayed, last])
    return result


@planted_verifier(
    "bonus-of-the-longest-row",
    "draws the bonus token from a row of padding",
    category="L",
    citation="plausible",
    killed_by="law_is_target",
    gammas=(1,),
)
def bonus_of_the_longest_row(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling that draws each bonus token from the last target row of a request, padding included.

    The bonus row of a request with fewer drafts than the longest one is then a row of padding.
    """
    rng, result = np.random.default_rng(), []
    for row, n in enumerate(lengths):
        rows = np.concatenate([p[row, :n], p[row, -1:]])
        result.append(decided(rng, rows, q[row], draft_tokens[row, :n].tolist()))
    return result


@engine_part(
    "admit",
    "one request",
    "callers-request-written-to",
    "changes the caller's request",
    category="L",
    citation="xLLM PR #1228 (f6052f64f)",
    killed_by="inputs_unchanged",
)
def callers_request_written_to(body: dict[str, Any]) -> Request:
    """Return the request made from the caller's ``body``, and also change ``body``: the bug.

    The list ``body["stop_strings"]`` is replaced by a list that contains it.
    """
    request = Request(**{**body, "prompt": tuple(body["prompt"])})
    body["stop_strings"] = [list(request.stop_strings)]
    return request


@planted_verifier(
    "coins-of-tokens",
    "neighbouring rows of a batch share uniforms",
    category="L",
    citation="vLLM PR #35398 (review)",
    killed_by="rows_are_independent",
    gammas=(2,),
    form=BATCHED,
)
def coins_of_tokens(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling of a batch in which neighbouring rows share uniforms.

    Draft i of a row gets uniform ``row + i`` instead of ``row * gamma + i``.
    """
    rng, result = np.random.default_rng(), []
    coins = rng.random(draft_tokens.size + 1)
    for row, drafts in enumerate(draft_tokens.tolist()):
        n = next((i for i, t in enumerate(drafts) if not coins[row + i] * q[row, i, t] < p[row, i, t]), len(drafts))
        weights = excess(p[row, n], q[row, n]) if n < len(drafts) else p[row, n]
        result.append([*drafts[:n], drawn(rng, weights)])
    return result


confidence_sees_its_draft = planted(
    "scheduled-verification",
    "confidence-sees-its-draft",
    "selects the drafts to verify by q of these drafts",
    category="L",
    citation="plausible: DSpark's schedule with q(d) for its confidence head",
    killed_by="rows_are_independent",
    batch=scheduled_by_draft.batch,
)(scheduled_by_draft.build)
"""The scheduler scores the slot of a draft by q of this very draft, so likely drafts are verified more often."""


@planted(
    "d-cut",
    "bonus-behind-the-whole-block",
    "draws the bonus token after drafts that were cut from the block",
    category="L",
    citation="plausible: rows laid out by scheduled, not by admitted drafts",
    killed_by="law_is_target",
)
def bonus_behind_the_whole_block(task: Task, gamma: int = 7, **options: Any) -> Decoder:
    """D-Cut with a bug: the bonus token is drawn after the whole drafted block, including drafts that were cut from it.

    D-Cut verifies only the most promising drafts of a block. ``options`` are those of ``reference.algorithms.d_cut``.
    """
    q = draft_model(task)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        verified = sample_and_match(draws, target, prefix, draft)
        if verified.accepted < len(draft.tokens):
            return verified
        whole = argmaxes_of_rows(q, prefix, gamma).tokens
        return Verified((*draft.tokens, draws.categorical(target(prefix + whole), ("late",))), len(draft.tokens))

    return with_parts("d-cut", verifier=verify)(task, gamma, **options)


@planted_verifier(
    "lengths-counted-in-place",
    "adds 1 to the caller's array of lengths and reads it again",
    category="L",
    citation="xLLM PR #1228 (f6052f64f); mlx-lm commit 1898164b (branch)",
    killed_by="law_is_target",
    gammas=(1,),
)
def lengths_counted_in_place(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling that adds 1 to the caller's array of lengths, and reads it again as the number of drafts.

    The bonus row is therefore one too late.
    """
    rng, result = np.random.default_rng(), []
    rows = lengths
    rows += 1
    for row, n in enumerate(lengths):
        last = min(int(n), p.shape[1] - 1)
        drafts = draft_tokens[row, : rows[row] - 1].tolist()
        result.append(decided(rng, np.concatenate([p[row, : len(drafts)], p[row, last:]]), q[row], drafts))
    return result


@engine_part(
    "rows_begin",
    "ragged batch",
    "non-speculative-rows-first",
    "computes offsets as if rows without drafts came first",
    category="L",
    citation="HabanaAI/vllm-fork PR #1780",
)
def non_speculative_rows_first(
    lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]
) -> tuple[int, ...]:
    """Return the offset of each row of the batch in the flat array of a pass, as if shorter rows were stored first.

    This is wrong: rows are stored in the order of the batch. ``lengths`` has the number of tokens that each row is fed.
    The other parameters are not used.
    """
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    begins = {row: sum(lengths[before] for before in order[:place]) for place, row in enumerate(order)}
    return tuple(begins[row] for row in range(len(lengths)))


@engine_part(
    "positions",
    "batch",
    "offsets-added-in-place",
    "adds the lengths of earlier rows to the position of a row",
    category="L",
    citation="mlx-lm commit 1898164b (branch)",
)
def offsets_added_in_place(held: Sequence[int], fed: Sequence[int]) -> tuple[int, ...]:
    """Return the position of the first token that each row of the batch is fed; it is wrong from the second row on.

    The right position is the number of entries in the row's cache (``held``). Here the numbers of ``fed`` tokens of the
    rows before it are added.
    """
    return tuple(begin + sum(fed[:row]) for row, begin in enumerate(held))


@planted_verifier(
    "packed-by-another-rule",
    "reads unpadded drafts as if all rows had the same number",
    category="L",
    citation="vLLM PR #52500",
    killed_by="law_is_target",
    gammas=(1,),
)
def packed_by_another_rule(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling of a batch that reads the drafts at wrong offsets.

    The drafts are stored one row after the other, without padding. The bug: drafts are read as if each row had as many
    drafts as the longest.
    """
    rng, width = np.random.default_rng(), int(max(lengths))
    packed = np.concatenate([draft_tokens[row, :n] for row, n in enumerate(lengths)])
    packed = np.concatenate([packed, np.zeros(len(p) * width - len(packed), dtype=int)])
    result = []
    for row, n in enumerate(lengths):
        drafts = packed[row * width : row * width + n].tolist()
        result.append(decided(rng, p[row], q[row], drafts, accept=lambda p, q, t: p[t] / max(q[t], 1e-9), weights=owed))
    return result


@engine_part(
    "padding_slot",
    "padding rows",
    "padding-rows-written",
    "padding rows overwrite cache entries of requests",
    category="L",
    citation="TensorRT-LLM PR #15708",
)
def padding_rows_written(row: int) -> int | None:
    """Return slot ``row`` of the cache for the padding row ``row``, so that an entry of a request is overwritten.

    The right result is None: a padding row is not written.
    """
    return row


@engine_part(
    "parameters_at",
    "batch of different parameters",
    "parameters-by-token",
    "takes the parameters of a request by the index of a token",
    category="L",
    citation="vLLM PR #35398 (review)",
)
def parameters_by_token(batch: Sequence[Parameters], row: int, start: int) -> Parameters:
    """Return the parameters of a wrong request: ``batch[start % len(batch)]`` instead of ``batch[row]``.

    ``start`` is the offset of the row's first token in the flat array of a pass.
    """
    return batch[start % len(batch)]


@engine_part(
    "greedy",
    "greedy beside sampled",
    "place-for-id",
    "in mixed batches a greedy row takes the argmax of the reversed row",
    category="L",
    citation="vllm-ascend issue #16396, PR #16430",
)
def place_for_id(row: ExactPmf, mixed: bool) -> int:
    """Return the argmax of ``row``, or of the reversed ``row`` if other rows of the batch are sampled (``mixed``).

    The right result is always the argmax of ``row``.
    """
    return argmax(row[::-1]) if mixed else argmax(row)


@planted_verifier(
    "placeholder-verified",
    "verifies the placeholder -1 as the last token of the vocabulary",
    category="M",
    citation="vllm-ascend issue #10045, PR #10043",
    killed_by="law_is_target",
    gammas=(1,),
)
def placeholder_verified(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling of a batch that verifies the padding -1 after the drafts of a row as if it were a draft.

    As an index, -1 reads the entry of the last token of the vocabulary.
    """
    rng = np.random.default_rng()
    ids = np.where(draft_tokens < 0, p.shape[2] - 1, draft_tokens)
    result = [decided(rng, p[row], q[row], ids[row].tolist()) for row in range(len(p))]
    return [row[: n + 1] for row, n in zip(result, lengths, strict=True)]


@planted_verifier(
    "residual-of-the-first-row",
    "draws every replacement from the residual of the first row",
    category="L",
    citation="plausible",
    killed_by="law_is_target",
    gammas=(1,),
    form=BATCHED,
)
def residual_of_the_first_row(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling that draws every replacement from the residual of the first row of the batch."""
    rng, result = np.random.default_rng(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        mine = decided(rng, p[row], q[row], drafts)
        place = len(mine) - 1
        if place < len(drafts) and excess(p[0, place], q[0, place]).any():
            mine[-1] = drawn(rng, excess(p[0, place], q[0, place]))
        result.append(mine)
    return result


@planted_verifier(
    "rows-in-assumed-order",
    "returns the rows of a batch in another order",
    category="L",
    citation="HabanaAI/vllm-fork PR #1780",
    killed_by="law_is_target",
    gammas=(1,),
)
def rows_in_assumed_order(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Verify rows without drafts first and return the results in that order, so rows get each other's tokens."""
    rng = np.random.default_rng()
    order = sorted(range(len(p)), key=lambda row: lengths[row] > 0)
    result = [decided(rng, p[row], q[row], draft_tokens[row, : lengths[row]].tolist()) for row in order]
    return [row[: n + 1] for row, n in zip(result, lengths, strict=True)]


@engine_part(
    "rows_begin",
    "ragged batch, padded",
    "unpacked-by-another-rule",
    "reads padded rows as if they were not padded",
    category="L",
    citation="vLLM PR #52500",
)
def unpacked_by_another_rule(lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]) -> tuple[int, ...]:
    """Return the offset of each row of the batch in the flat array of a pass, computed without padding.

    This is wrong if rows are padded. ``lengths`` has the number of tokens that each row is fed. The other parameters
    have no effect.
    """
    return starts(lengths, False, prefilling)
