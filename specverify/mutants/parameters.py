"""Planted bugs of sampling parameters and logits processors on verify rows."""

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
    "allowed tokens without penalties crash",
    category="F",
    citation="vLLM PR #35654",
)
def allowed_tokens_need_penalties(parameters: Parameters, size: int) -> frozenset[int]:
    """Return the allowed tokens; raises ``IndexError`` if there are some, and no penalties.

    The size of the batch is read off a list that is empty unless some request has a penalty.
    """
    penalties = [size] if (parameters.repetition, parameters.frequency) != (ONE, ONE) else []
    return permitted(parameters, penalties[0] if parameters.allowed else size)


@engine_part(
    "blocked",
    "bad words",
    "bad-words-off-by-one",
    "phrases are matched one token back",
    category="F",
    citation="vLLM PR #52311; vllm-ascend PR #14433 (744bdce6e7)",
)
def bad_words_off_by_one(words: tuple[Tokens, ...], prefix: Tokens, drafts: Tokens, row: int) -> frozenset[int]:
    """Return what would complete a phrase if the draft before the row were not there.

    Drafts are read with an offset of one, as if position 0 were the last committed token: phrases in drafts pass.
    """
    return blocked(words, prefix[:-1] if row else prefix, drafts, row)


@engine_part(
    "row_parameters",
    "bias",
    "bias-ignored-with-drafts",
    "no bias where there are drafts",
    category="F",
    citation="vLLM issue #38202, PR #38467",
)
def bias_ignored_with_drafts(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without their bias if anything was drafted.

    The bias has no form for several rows of one request, so it is dropped without a word where there are drafts.
    """
    return parameters._replace(bias=()) if drafts else parameters


@planted_verifier(
    "bonus-at-temperature-one",
    "does not process the bonus row",
    category="F",
    citation="EAGLE before commit bfeb532",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def bonus_at_temperature_one(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling whose bonus row is not processed.

    The token after the last draft is sampled from the raw logits.
    """
    p, q = (processed_rows(logits, *processing) for logits in (target_logits, draft_logits))
    p[-1:] = softmax_rows(target_logits[-1:])
    return p, q


CANDIDATES = 1024


def candidates_cut_at_1024_likeliest(p: Any, q: Any) -> Any:
    """Return the weights of a replacement, 0 for all but the heaviest."""
    weights = owed(p, q)
    return np.where(weights >= np.sort(weights)[-min(CANDIDATES, len(weights))], weights, 0.0)


@planted_verifier(
    "candidates-cut-at-1024",
    "replaces by the 1024 likeliest tokens alone",
    category="F",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
def candidates_cut_at_1024(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that replaces by one of 1024 candidates.

    A kernel sorts at most 1024 candidates, and draws among these for every top-k.
    """
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=candidates_cut_at_1024_likeliest)


@planted_verifier(
    "draft-unprocessed",
    "processes p alone",
    category="F",
    citation="transformers issue #47932, PR #47961",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def draft_unprocessed(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling with the raw q in the ratio.

    q is left at temperature 1 and whole, while drafts come from the processed one.
    """
    return processed_rows(target_logits, *processing), softmax_rows(draft_logits)


@engine_part(
    "resolved",
    "penalties",
    "first-token-repeated-in-history",
    "a full round repeats its first token",
    category="F",
    citation="mlx-lm commit 79441dc2 (branch), first of three errors",
    killed_by="processors_see_their_prefix",
)
def first_token_repeated_in_history(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with the first token of a fully accepted round twice.

    When every draft is accepted, the history gets the round's first token once more in front of the extra one.
    """
    again = new[:1] if drafts and len(new) == reserved else ()
    return history[: len(history) - reserved] + again + new


@engine_part(
    "row_parameters",
    "penalties",
    "frequency-not-on-verify-rows",
    "no frequency penalty under speculation",
    category="F",
    citation="vLLM issue #18902",
)
def frequency_not_on_verify_rows(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without the frequency penalty.

    The speculative path applies no frequency penalty.
    """
    return parameters._replace(frequency=ONE)


@planted_verifier(
    "greedy-by-soft-ratio",
    "decides T = 0 by soft p/q",
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
    """Greedy decoding as sampling with an argmax at the end.

    At temperature 0 the argmax draft is verified by soft p and q, and replaced by the argmax of p - q.
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
    "the last token is counted twice",
    category="F",
    citation="vLLM PR #33251 (review)",
)
def last_token_penalised_twice(prefix: Tokens, row: int) -> Mapping[int, int]:
    """Return the counts with the last committed token once more behind a draft.

    The last sampled token is in the base counts and again in the counts of the drafts, from the second row on.
    """
    return Counter(prefix + (prefix[-1 - row : len(prefix) - row] if row else ()))


@engine_part(
    "row_parameters",
    "min-p",
    "min-p-for-bonus-only",
    "min-p holds for the extra token alone",
    category="F",
    citation="vLLM PR #42802",
    killed_by="support_at_boundary_draws",
)
def min_p_for_bonus_only(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without min-p where a draft is judged.

    Rows that judge a draft run only the processors that can change an argmax, and min-p is none of them.
    """
    return parameters if row == drafts else parameters._replace(min_p=ZERO)


@planted_verifier(
    "min-p-for-the-bonus-alone",
    "applies min-p to the last row alone",
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
    """Speculative sampling with min-p on the last row.

    min-p is honoured by the token after the last draft alone: verify rows go through other processors.
    """
    p = processed_rows(target_logits, temperature, top_k, top_p, 0.0)
    p[-1:] = processed_rows(target_logits[-1:], temperature, top_k, top_p, min_p)
    return p, processed_rows(draft_logits, temperature, top_k, top_p, min_p)


@engine_part(
    "new_before",
    "minimum length",
    "minimum-length-from-first-row",
    "all rows count as the round's first",
    category="F",
    citation="plausible: position-dependent processors at the round's first position",
)
def minimum_length_from_first_row(new: int, row: int, rounds: int) -> int:
    """Return the number of new tokens before the round.

    Every verify row takes the position of the round's first row, so the end of sequence is masked one draft too long.
    """
    return new


@engine_part(
    "new_before",
    "minimum length",
    "minimum-length-in-rounds",
    "the minimum length counts rounds",
    category="F",
    citation="SGLang PR #33643",
)
def minimum_length_in_rounds(new: int, row: int, rounds: int) -> int:
    """Return the number of rounds for the number of tokens.

    The minimum length counts steps of the engine instead of tokens: end-of-sequence tokens stay masked for too long.
    """
    return rounds


def nucleus_before_temperature_rows_of(
    logits: Any, temperature: float, top_k: float, top_p: float, min_p: float
) -> Any:
    """Return rows truncated at T = 1 and tempered afterwards."""
    mask = nucleus(likeliest(softmax_rows(logits), top_k), top_p)
    rows = restricted(likeliest(softmax_rows(logits, temperature), top_k), mask)
    return restricted(rows, rows >= rows.max(-1, keepdims=True) * min_p)


@planted_verifier(
    "nucleus-before-temperature",
    "computes top-p at temperature 1",
    category="F",
    citation="romsto/Speculative-Decoding utils/logits_processor.py:13-15, 73-81, 98-103 at db7db67",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def nucleus_before_temperature(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling with the order of two warpers exchanged.

    The nucleus is computed on the untempered logits, and temperature applied to what it keeps.
    """
    return nucleus_before_temperature_rows_of(target_logits, *processing), nucleus_before_temperature_rows_of(
        draft_logits, *processing
    )


def nucleus_of_the_whole_law_rows_of(logits: Any, temperature: float, top_k: float, top_p: float, min_p: float) -> Any:
    """Return rows cut to top-k and to the nucleus of the whole law."""
    rows = softmax_rows(logits, temperature)
    cut = restricted(likeliest(rows, top_k), nucleus(rows, top_p))
    return restricted(cut, cut >= cut.max(-1, keepdims=True) * min_p)


@planted_verifier(
    "nucleus-of-the-whole-law",
    "cuts top-p on another law than the sampler",
    category="F",
    citation="SGLang PR #36173",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def nucleus_of_the_whole_law(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling with truncations that do not follow each other.

    The nucleus is computed on another law than the ordinary sampler's: before top-k instead of on its result.
    """
    return nucleus_of_the_whole_law_rows_of(target_logits, *processing), nucleus_of_the_whole_law_rows_of(
        draft_logits, *processing
    )


@engine_part(
    "resolved",
    "penalties",
    "only-last-token-counted",
    "one token a round enters the history",
    category="F",
    citation="SGLang PR #33643",
    killed_by="processors_see_their_prefix",
)
def only_last_token_counted(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with one token of the round.

    The penalty state takes in the last token of a round: penalties weaken the more drafts are accepted.
    """
    return history[: len(history) - reserved] + new[-1:]


@engine_part(
    "row_parameters",
    "first token alone",
    "penalty-on-first-token-only",
    "only the prompt's row is penalised",
    category="F",
    citation="mlx-node PR #11 (review)",
)
def penalty_on_first_token_only(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without the repetition penalty if anything was drafted.

    The repetition penalty is applied to the row behind the prompt, not to those of drafts.
    """
    return parameters._replace(repetition=ONE) if drafts else parameters


@engine_part(
    "resolved",
    "penalties",
    "placeholders-in-history",
    "placeholders stay in the history",
    category="F",
    citation="vLLM PRs #26467, #30122",
    killed_by="processors_see_their_prefix",
)
def placeholders_in_history(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with its last placeholder replaced.

    The history holds a placeholder for every token in flight, and only the last one is replaced when they arrive.
    """
    return history[:-1] + new[-1:]


@engine_part(
    "resolved",
    "penalties",
    "rejected-drafts-in-history",
    "rejected drafts stay in the history",
    category="F",
    citation="MLC-LLM PR #2810 (2d63553f); mlx-lm commit 79441dc2 (branch), third error",
    killed_by="processors_see_their_prefix",
)
def rejected_drafts_in_history(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with every draft and the last token of the round.

    Drafts enter the state that penalties are computed from, and those that are rejected never leave it.
    """
    return history[: len(history) - reserved] + drafts + new[-1:]


@engine_part(
    "row_prefix",
    "penalties",
    "rows-see-every-draft",
    "every row is shown all drafts",
    category="F",
    citation="plausible: one prefix for all rows of a round",
    killed_by="processors_see_their_prefix",
)
def rows_see_every_draft(history: Tokens, drafts: Tokens, row: int) -> Tokens:
    """Return the history and every draft.

    Processors run once over all rows, and are shown the whole window at each of them, drafts behind the row included.
    """
    return history + drafts


@planted_verifier(
    "target-unprocessed",
    "processes q alone",
    category="F",
    citation="vLLM issue #9834, PR #10198",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def target_unprocessed(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Speculative sampling of the raw target.

    The target is scored with default parameters while q is filtered.
    """
    return softmax_rows(target_logits), processed_rows(draft_logits, *processing)


@planted_verifier(
    "temperature-in-place",
    "tempers later rows several times",
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
    """Speculative sampling whose later rows are tempered again and again.

    Each position divides the logits by the temperature in place, through a view of them all.
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
    "verifies at temperature 1",
    category="F",
    citation="lattice issue #388",
    killed_by="law_is_target",
    gammas=(1,),
    setting=TRUNCATED,
)
@decided_by_rows
def temperature_left_out(target_logits: Any, draft_logits: Any, _: float, *truncations: float) -> tuple[Any, Any]:
    """Speculative sampling of processed drafts by pmfs at T = 1.

    The verification takes no temperature: ratio and residual are those of T = 1.
    """
    return processed_rows(target_logits, 1.0, *truncations), processed_rows(draft_logits, 1.0, *truncations)


@engine_part(
    "truncated",
    "top-k and top-p",
    "top-k-before-top-p",
    "the nucleus is that of the top k alone",
    category="F",
    citation="SGLang PR #36173",
)
def top_k_before_top_p(row: ExactPmf, parameters: Parameters) -> ExactPmf:
    """Return the row cut by top-k, then by the nucleus of what is left.

    Top-k cuts and renormalises first, so top-p keeps fewer tokens than it does in plain sampling; min-p is left out.
    """
    few = truncated(row, parameters._replace(top_p=ONE, min_p=ZERO))
    return truncated(few, parameters._replace(top_k=0, min_p=ZERO))


@engine_part(
    "row_parameters",
    "temperature",
    "verify-at-temperature-one",
    "drafts are judged at temperature 1",
    category="F",
    citation="lattice issue #388 (first part)",
)
def verify_at_temperature_one(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without the temperature where a draft is judged.

    Verification takes the softmax of the raw logits: the temperature is not one of its arguments.
    """
    return parameters if row == drafts else parameters._replace(temperature=1)


@engine_part(
    "row_parameters",
    "everything",
    "verify-rows-with-defaults",
    "verify rows know no parameters",
    category="F",
    citation="vLLM issue #9834, PR #10198",
)
def verify_rows_with_defaults(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the request's parameters for the extra token alone.

    Rows that judge a draft are scored at temperature 1 without truncation; only the extra token's row is processed.
    """
    return parameters if row == drafts else Parameters()
