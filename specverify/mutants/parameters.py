"""Planted bugs of sampling parameters, and of logits processors on the rows that verify drafts.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters.

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them. A function of ``target_logits``, ``draft_logits`` and ``draft_tokens`` verifies a round too, with p and
q that it computes from the logits by its further parameters, such as ``temperature``. A function that returns two
arrays only computes p and q from the logits; they are then verified by speculative sampling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from specverify.mutants.numpy_verifiers import (
    TRUNCATED,
    at_large,
    decided,
    decided_by_rows,
    drawn,
    excess,
    likeliest,
    nucleus,
    owed,
    planted_verifier,
    processed_rows,
    restricted,
    softmax_rows,
)
from specverify.mutants.serving.planted import engine_part
from specverify.mutants.serving.processors import blocked, permitted, truncated
from specverify.mutants.serving.request import ONE, ZERO, ExactPmf, Parameters
from specverify.reference import Tokens


@engine_part(
    "permitted",
    "allowed tokens",
    "allowed-tokens-need-penalties",
    "raises if allowed tokens are set and no penalty is",
    category="F",
    citation="vLLM PR #35654",
)
def allowed_tokens_need_penalties(parameters: Parameters, size: int) -> frozenset[int]:
    """Return the tokens that may be generated: ``parameters.allowed``, or all ``size`` tokens if it is empty.

    Raises ``IndexError`` if tokens are listed in ``parameters.allowed`` and no penalty is set: the bug.
    """
    penalties = [size] if (parameters.repetition, parameters.frequency) != (ONE, ONE) else []
    return permitted(parameters, penalties[0] if parameters.allowed else size)


@engine_part(
    "blocked",
    "bad words",
    "bad-words-off-by-one",
    "ignores the last token of the text when it matches forbidden phrases",
    category="F",
    citation="vLLM PR #52311; vllm-ascend PR #14433 (744bdce6e7)",
)
def bad_words_off_by_one(words: tuple[Tokens, ...], prefix: Tokens, drafts: Tokens, row: int) -> frozenset[int]:
    """Return the tokens that would complete one of the forbidden phrases ``words``; the bug: one token is not read.

    ``row`` is the index of a target row. ``prefix`` is the text before this row, which ends with ``drafts[:row]``. If
    ``row`` is positive, the last token of ``prefix`` is ignored.
    """
    return blocked(words, prefix[:-1] if row else prefix, drafts, row)


@engine_part(
    "row_parameters",
    "bias",
    "bias-ignored-with-drafts",
    "ignores the logit bias if there are drafts",
    category="F",
    citation="vLLM issue #38202, PR #38467",
)
def bias_ignored_with_drafts(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return ``parameters`` without the logit bias if the number of drafts is positive, else unchanged.

    ``row`` is not used.
    """
    return parameters._replace(bias=()) if drafts else parameters


@planted_verifier(
    "bonus-at-temperature-one",
    "does not apply temperature and truncation to the bonus row",
    category="F",
    citation="EAGLE before commit bfeb532",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def bonus_at_temperature_one(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling that draws the bonus token from the raw logits, without temperature or truncation.

    ``processing`` has temperature, top-k, top-p and min-p, in this order.
    """
    p, q = (processed_rows(logits, *processing) for logits in (target_logits, draft_logits))
    p[-1:] = softmax_rows(target_logits[-1:])
    return p, q


CANDIDATES = 1024


def candidates_cut_at_1024_likeliest(p: Any, q: Any) -> Any:
    """Return max(p - q, 0), not normalised, with the entries below the 1024th largest set to 0.

    ``p`` and ``q`` are one row each, ``[vocabulary]``.
    """
    weights = owed(p, q)
    return np.where(weights >= np.sort(weights)[-min(CANDIDATES, len(weights))], weights, 0.0)


@planted_verifier(
    "candidates-cut-at-1024",
    "replaces a draft only by one of 1024 tokens",
    category="F",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
def candidates_cut_at_1024(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that draws a replacement only from the 1024 tokens of the largest residual.

    The other tokens of the residual are never drawn, although no top-k excludes them.
    """
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=candidates_cut_at_1024_likeliest)


@planted_verifier(
    "draft-unprocessed",
    "applies temperature and truncation to p, but not to the declared q",
    category="F",
    citation="transformers issue #47932, PR #47961",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def draft_unprocessed(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling whose ratio uses the raw q, although drafts come from the processed q.

    ``processing`` has temperature, top-k, top-p and min-p, in this order.
    """
    return processed_rows(target_logits, *processing), softmax_rows(draft_logits)


@engine_part(
    "resolved",
    "penalties",
    "first-token-repeated-in-history",
    "if all drafts are accepted, counts the first token of the round twice",
    category="F",
    citation="mlx-lm commit 79441dc2 (branch), first of three errors",
    killed_by="processors_see_their_prefix",
)
def first_token_repeated_in_history(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the tokens that the penalties count, with the round's first token twice if all drafts were accepted.

    The ``new`` tokens replace the last ``reserved`` entries of ``history``, which are placeholders. Without ``drafts``
    no token is repeated.
    """
    again = new[:1] if drafts and len(new) == reserved else ()
    return history[: len(history) - reserved] + again + new


@engine_part(
    "row_parameters",
    "penalties",
    "frequency-not-on-verify-rows",
    "ignores the frequency penalty with speculation",
    category="F",
    citation="vLLM issue #18902",
)
def frequency_not_on_verify_rows(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without the frequency penalty, for every row; ``row`` and ``drafts`` have no effect."""
    return parameters._replace(frequency=ONE)


@planted_verifier(
    "greedy-by-soft-ratio",
    "at temperature 0 tests drafts by p/q at temperature 1",
    category="F",
    citation="romsto/Speculative-Decoding speculative_decoding.py:121-168 at db7db67 (its default)",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 0.0),),
)
def greedy_by_soft_ratio(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling that at temperature 0 tests drafts by p/q of the rows at temperature 1.

    A rejected draft is replaced by the argmax of (p - q)+. Other temperatures are treated correctly.
    """
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    if temperature > 0:
        p, q = (processed_rows(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
        return decided(rng, p, q, drafts)
    p, q = softmax_rows(target_logits), softmax_rows(draft_logits)
    for i, token in enumerate(drafts):
        if not rng.random() * q[i, token] < p[i, token]:
            return [*drafts[:i], int(excess(p[i], q[i]).argmax())]
    return [*drafts, int(p[-1].argmax())]


@engine_part(
    "occurrences",
    "penalties",
    "last-token-penalised-twice",
    "penalties count the last committed token twice",
    category="F",
    citation="vLLM PR #33251 (review)",
)
def last_token_penalised_twice(prefix: Tokens, row: int) -> Mapping[int, int]:
    """Return how often the penalties of a row count each token; the last committed token counts once too often.

    ``prefix`` has the tokens before the row; the last ``row`` of them are drafts. The counts for row 0 are right.
    """
    return Counter(prefix + (prefix[-1 - row : len(prefix) - row] if row else ()))


@engine_part(
    "row_parameters",
    "min-p",
    "min-p-for-bonus-only",
    "applies min-p only to the row of the bonus token",
    category="F",
    citation="vLLM PR #42802",
    killed_by="support_at_boundary_draws",
)
def min_p_for_bonus_only(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without min-p on rows that verify a draft.

    Rows count from 0, and row number ``drafts`` is the row of the bonus token, which keeps min-p.
    """
    return parameters if row == drafts else parameters._replace(min_p=ZERO)


@planted_verifier(
    "min-p-for-the-bonus-alone",
    "applies min-p only to the row of the bonus token",
    category="F",
    citation="vLLM PR #42802",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.5), ("min_p", 0.4)),
)
@decided_by_rows
def min_p_for_the_bonus_alone(
    target_logits: Any, draft_logits: Any, temperature: float, top_k: float, top_p: float, min_p: float
) -> tuple[Any, Any]:
    """Speculative sampling that applies min-p only to the bonus row."""
    p = processed_rows(target_logits, temperature, top_k, top_p, 0.0)
    p[-1:] = processed_rows(target_logits[-1:], temperature, top_k, top_p, min_p)
    return p, processed_rows(draft_logits, temperature, top_k, top_p, min_p)


@engine_part(
    "new_before",
    "minimum length",
    "minimum-length-from-first-row",
    "counts no drafts of the round for the minimum length",
    category="F",
    citation="plausible: position-dependent processors at the round's first position",
)
def minimum_length_from_first_row(new: int, row: int, rounds: int) -> int:
    """Return ``new``, the number of new tokens before the round, as the number before row ``row``.

    The right number also counts the drafts of this round before the row. ``rounds`` is not used.
    """
    return new


@engine_part(
    "new_before",
    "minimum length",
    "minimum-length-in-rounds",
    "counts rounds instead of tokens for the minimum length",
    category="F",
    citation="SGLang PR #33643",
)
def minimum_length_in_rounds(new: int, row: int, rounds: int) -> int:
    """Return ``rounds``, the number of earlier rounds, as the number of new tokens before a row.

    A round may have several tokens. The other parameters are not used.
    """
    return rounds


def nucleus_before_temperature_rows_of(
    logits: Any, temperature: float, top_k: float, top_p: float, min_p: float
) -> Any:
    """Return pmfs whose top-p set is computed at temperature 1; the temperature is applied afterwards.

    ``logits`` are rows ``[rows, vocabulary]``. The top-p set should be computed after the temperature.
    """
    mask = nucleus(likeliest(softmax_rows(logits), top_k), top_p)
    rows = restricted(likeliest(softmax_rows(logits, temperature), top_k), mask)
    return restricted(rows, rows >= rows.max(-1, keepdims=True) * min_p)


@planted_verifier(
    "nucleus-before-temperature",
    "applies top-p before the temperature instead of after it",
    category="F",
    citation="romsto/Speculative-Decoding utils/logits_processor.py:13-15, 73-81, 98-103 at db7db67",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def nucleus_before_temperature(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling that applies top-p before the temperature instead of after it.

    ``processing`` has temperature, top-k, top-p and min-p, in this order.
    """
    return nucleus_before_temperature_rows_of(target_logits, *processing), nucleus_before_temperature_rows_of(
        draft_logits, *processing
    )


def nucleus_of_the_whole_law_rows_of(logits: Any, temperature: float, top_k: float, top_p: float, min_p: float) -> Any:
    """Return rows cut to the tokens in both top-k and the nucleus, where the nucleus is computed on the whole row.

    The rows are the softmax of ``logits``. The nucleus should be computed after the cut by top-k.
    """
    rows = softmax_rows(logits, temperature)
    cut = restricted(likeliest(rows, top_k), nucleus(rows, top_p))
    return restricted(cut, cut >= cut.max(-1, keepdims=True) * min_p)


@planted_verifier(
    "nucleus-of-the-whole-law",
    "computes top-p on the whole row; plain sampling computes it after top-k",
    category="F",
    citation="SGLang PR #36173",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def nucleus_of_the_whole_law(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Return the processed rows (p, q), with top-p computed on the whole row; plain sampling computes it after top-k.

    ``processing`` has temperature, top-k, top-p and min-p, in this order.
    """
    return nucleus_of_the_whole_law_rows_of(target_logits, *processing), nucleus_of_the_whole_law_rows_of(
        draft_logits, *processing
    )


@engine_part(
    "resolved",
    "penalties",
    "only-last-token-counted",
    "penalties count only the last token of each round",
    category="F",
    citation="SGLang PR #33643",
    killed_by="processors_see_their_prefix",
)
def only_last_token_counted(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the tokens that the penalties count, to which only the last of the round's ``new`` tokens is added.

    All ``new`` tokens should replace the last ``reserved`` entries of ``history``, which are placeholders. ``drafts``
    is not used.
    """
    return history[: len(history) - reserved] + new[-1:]


@engine_part(
    "row_parameters",
    "first token alone",
    "penalty-on-first-token-only",
    "ignores the repetition penalty in rounds with drafts",
    category="F",
    citation="mlx-node PR #11 (review)",
)
def penalty_on_first_token_only(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return ``parameters`` without the repetition penalty if the round has drafts (``drafts`` > 0), else unchanged.

    ``row`` has no effect.
    """
    return parameters._replace(repetition=ONE) if drafts else parameters


@engine_part(
    "resolved",
    "penalties",
    "placeholders-in-history",
    "penalties count placeholders as tokens",
    category="F",
    citation="vLLM PRs #26467, #30122",
    killed_by="processors_see_their_prefix",
)
def placeholders_in_history(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the tokens that the penalties count, with only the last placeholder replaced by its token.

    ``history`` ends with ``reserved`` placeholders, all of which the ``new`` tokens should replace. ``drafts`` is not
    used.
    """
    return history[:-1] + new[-1:]


@engine_part(
    "resolved",
    "penalties",
    "rejected-drafts-in-history",
    "penalties count rejected drafts",
    category="F",
    citation="MLC-LLM PR #2810 (2d63553f); mlx-lm commit 79441dc2 (branch), third error",
    killed_by="processors_see_their_prefix",
)
def rejected_drafts_in_history(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the tokens that the penalties count, with all ``drafts`` of the round in them, also the rejected ones.

    Only the ``new`` tokens should replace the last ``reserved`` entries of ``history``, which are placeholders.
    """
    return history[: len(history) - reserved] + drafts + new[-1:]


@engine_part(
    "row_prefix",
    "penalties",
    "rows-see-every-draft",
    "processors of a row get all drafts, also those after the row",
    category="F",
    citation="plausible: one prefix for all rows of a round",
    killed_by="processors_see_their_prefix",
)
def rows_see_every_draft(history: Tokens, drafts: Tokens, row: int) -> Tokens:
    """Return the tokens passed to the processors of a row: the history and all drafts, also those after the row."""
    return history + drafts


@planted_verifier(
    "target-unprocessed",
    "applies temperature and truncation to q, but not to p",
    category="F",
    citation="vLLM issue #9834, PR #10198",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def target_unprocessed(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling with the raw p of the target, although the drafts come from a processed q.

    ``processing`` has temperature, top-k, top-p and min-p, in this order.
    """
    return softmax_rows(target_logits), processed_rows(draft_logits, *processing)


@planted_verifier(
    "temperature-in-place",
    "divides later rows by the temperature several times",
    category="F",
    citation="romsto/Speculative-Decoding utils/logits_processor.py:62,95 at db7db67",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
def temperature_in_place(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling that divides the logits of all positions by the temperature once for each position.

    Later rows are therefore divided several times.
    """
    logits, scale, rng = target_logits.copy(), temperature or 1.0, np.random.default_rng()
    q, drafts = processed_rows(draft_logits, temperature, top_k, top_p, min_p), draft_tokens.tolist()
    for i, token in enumerate([*drafts, -1]):
        logits /= scale
        p = processed_rows(logits[i : i + 1], 1.0 if temperature else 0.0, top_k, top_p, min_p)[0]
        if token < 0:
            break
        if not rng.random() * q[i, token] < p[token]:
            return [*drafts[:i], drawn(rng, owed(p, q[i]))]
    return [*drafts, drawn(rng, p)]


@planted_verifier(
    "temperature-left-out",
    "tests drafts and replaces them at temperature 1",
    category="F",
    citation="lattice issue #388",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def temperature_left_out(target_logits: Any, draft_logits: Any, _: float, *truncations: float) -> tuple[Any, Any]:
    """Speculative sampling whose ratio and residual use temperature 1, although drafts come from the tempered q.

    ``truncations`` has top-k, top-p and min-p, in this order.
    """
    return processed_rows(target_logits, 1.0, *truncations), processed_rows(draft_logits, 1.0, *truncations)


@engine_part(
    "truncated",
    "top-k and top-p",
    "top-k-before-top-p",
    "computes top-p after top-k; plain sampling computes it on the whole row",
    category="F",
    citation="SGLang PR #36173",
)
def top_k_before_top_p(row: ExactPmf, parameters: Parameters) -> ExactPmf:
    """Return the row cut by the top-k of ``parameters``, renormalised, and then cut by their top-p.

    Plain sampling applies top-p to the whole row. min-p is not applied.
    """
    few = truncated(row, parameters._replace(top_p=ONE, min_p=ZERO))
    return truncated(few, parameters._replace(top_k=0, min_p=ZERO))


@engine_part(
    "row_parameters",
    "temperature",
    "verify-at-temperature-one",
    "tests drafts at temperature 1",
    category="F",
    citation="lattice issue #388 (first part)",
)
def verify_at_temperature_one(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters with temperature 1 on rows that verify a draft.

    Rows count from 0, and row number ``drafts`` is the row of the bonus token, which keeps the temperature.
    """
    return parameters if row == drafts else parameters._replace(temperature=1)


@engine_part(
    "row_parameters",
    "everything",
    "verify-rows-with-defaults",
    "rows that verify drafts use default parameters",
    category="F",
    citation="vLLM issue #9834, PR #10198",
)
def verify_rows_with_defaults(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return default parameters on rows that verify a draft; only the bonus row gets the request's parameters.

    Rows count from 0, and row number ``drafts`` is the row of the bonus token.
    """
    return parameters if row == drafts else Parameters()
