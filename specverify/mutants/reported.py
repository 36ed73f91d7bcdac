"""Planted bugs of the values that are returned with the tokens, such as log-probabilities.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from specverify.mutants.serving.output import Top, most_probable, of_prompt
from specverify.mutants.serving.planted import engine_part
from specverify.mutants.serving.request import ONE, ZERO, ExactPmf
from specverify.reference import Tokens


@engine_part(
    "probability",
    "reported probabilities",
    "accepted-reported-as-certain",
    "reports probability 1 for accepted drafts",
    category="O",
    citation="llama.cpp issue #27972",
)
def accepted_reported_as_certain(
    rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int
) -> Fraction:
    """Return the probability to report for ``token``, the new token at ``index`` of a round: 1 for an accepted draft.

    The first ``accepted`` new tokens are accepted drafts. For other tokens the result is right: the probability in the
    row of ``rows`` at ``index``. ``chunks`` is not used.
    """
    return ONE if index < accepted else rows[index][token]


@engine_part(
    "listed",
    "reported probabilities, each step waiting",
    "converted-twice",
    "converts probabilities twice, which raises",
    category="O",
    citation="vllm-ascend PR #7861",
)
def converted_twice(probabilities: Sequence[Any], waits: bool) -> tuple[Fraction, ...]:
    """Return the ``probabilities`` of the new tokens; but raise ``TypeError`` if ``waits``: the bug.

    ``waits`` states that each step of the engine waits for the results of the step before.
    """
    return tuple(row[0] for row in map(tuple, probabilities)) if waits else tuple(probabilities)


@engine_part(
    "probability",
    "reported probabilities, in chunks",
    "discarded-samples-not-counted",
    "reads probabilities from a row that is too early",
    category="O",
    citation="vLLM PR #29216",
)
def discarded_samples_not_counted(
    rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int
) -> Fraction:
    """Return the probability of ``token`` in a row that is too early by ``chunks``, the number of prompt chunks.

    ``rows`` are the rows of the round. The right row is that at ``index``, the position of the token in the round.
    ``accepted`` is not used.
    """
    return rows[max(index - chunks, 0)][token]


@engine_part(
    "probability",
    "reported probabilities of lookup",
    "logarithms-of-lookup-are-zero",
    "with lookup reports log-probability 0 for every token",
    category="O",
    citation="vLLM issue #17876 (symptom; its cause was not established)",
)
def logarithms_of_lookup_are_zero(
    rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int
) -> Fraction:
    """Return probability 1 (logarithm 0) for every token of a request with a lookup drafter.

    This is the probability of the proposal, not the target's. The parameters are not used.
    """
    return ONE


@engine_part(
    "most_probable",
    "reports",
    "one-list-a-request",
    "reports the most probable tokens of one row for all tokens of a round",
    category="O",
    citation="text-generation-inference PR #1497 (43393451)",
    killed_by="scores_match",
)
def one_list_a_request(rows: Sequence[ExactPmf], index: int, count: int) -> Top:
    """Return the ``count`` most probable tokens of the first of ``rows``, the rows of a round.

    The right row is the one at ``index``, the position of the token in the round.
    """
    return most_probable(rows, 0, count)


@engine_part(
    "of_prompt",
    "reports",
    "prompt-rows-shifted-by-drafts",
    "reads the prompt's probabilities from rows that are too late",
    category="O",
    citation="vLLM issue #53488 (symptom; its cause was not established)",
    killed_by="scores_match",
)
def prompt_rows_shifted_by_drafts(rows: Sequence[ExactPmf], prompt: Tokens, drafts: int) -> tuple[Fraction, ...]:
    """Return the probability of each token of ``prompt``, read from a row that is too late.

    ``rows`` has the pmf after each fed token. The row that is read is ``drafts`` positions after the right one.
    """
    return of_prompt(rows[drafts:], prompt, drafts)


@engine_part(
    "of_prompt",
    "reports",
    "prompt-rows-uninitialised",
    "reports prompt probabilities that were never computed",
    category="O",
    citation="vLLM PR #8047",
    killed_by="scores_match",
)
def prompt_rows_uninitialised(rows: Sequence[ExactPmf], prompt: Tokens, drafts: int) -> tuple[Fraction, ...]:
    """Return zeros as the probabilities of the tokens of ``prompt``, as uninitialised memory may hold.

    The other parameters are not used.
    """
    return (ZERO,) * len(prompt)
