"""Planted bugs of scheduling: placeholders, prompt chunks, preemption and aborted requests.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters. A function with the decorator ``planted(ORIGINAL, ...)`` changes
the registry algorithm ORIGINAL, and its options are those of that algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specverify.mutants.mutant import planted
from specverify.mutants.serving.planted import engine_part
from specverify.mutants.serving.request import Aborted
from specverify.mutants.serving.scheduler import chunk, starts
from specverify.mutants.serving.verification import PLACEHOLDER, usable
from specverify.reference import Decoder, Draws, Round, State, Task, Tokens, commit
from specverify.reference.algorithms import spiffy
from specverify.reference.algorithms.pre_drafted import pre_drafting
from specverify.reference.any_order import Block, filled, masked_model, masked_places


@engine_part(
    "accepted_count",
    "aborted",
    "accepted-minus-one",
    "reports -1 accepted drafts for an aborted request",
    category="M",
    citation="vLLM PR #28473",
)
def accepted_minus_one(new: Tokens, accepted: int) -> int:
    """Return the number of ``new`` tokens minus one as the number of accepted drafts, whatever ``accepted`` is.

    For an aborted request without new tokens this is -1.
    """
    return len(new) - 1


@engine_part(
    "usable",
    "ragged batch",
    "loaded-before-masked",
    "uses a placeholder as an index",
    category="M",
    citation="vllm-ascend PR #8531",
)
def loaded_before_masked(drafts: Tokens) -> int:
    """Return the number of drafts before the first placeholder; raise ``Aborted`` if there is a placeholder: the bug.

    A placeholder is the number -1.
    """
    if min(drafts, default=0) < 0:
        raise Aborted(f"a read at offset {min(drafts)}")
    return usable(drafts)


@engine_part(
    "resumed",
    "preempted under a grammar",
    "old-drafts-survive-preemption",
    "a preempted request keeps its drafts as part of the text",
    category="M",
    citation="vLLM PRs #30916, #31944, #31955 (issue #31876)",
)
def old_drafts_survive_preemption(tokens: Tokens, pending: Tokens) -> Tokens:
    """Return the text that a preempted request feeds again, with ``pending``, the drafts of its last round, at the end.

    The right text has the committed ``tokens`` only.
    """
    return tokens + pending


@engine_part(
    "usable",
    "ragged batch",
    "placeholder-in-a-ragged-batch",
    "verifies padding as a draft",
    category="M",
    citation="vllm-ascend issue #10045, PR #10043",
)
def placeholder_in_a_ragged_batch(drafts: Tokens) -> int:
    """Return the length of ``drafts``, padding included, as the number of drafts: the padding -1 is verified too."""
    return len(drafts)


@engine_part(
    "chunk",
    "chunks",
    "placeholders-in-chunks",
    "feeds a placeholder after a chunk of the prompt",
    category="M",
    citation="vLLM issue #42490, PR #42519",
)
def placeholders_in_chunks(tokens: Tokens, held: int, size: int, pending: Tokens) -> Tokens:
    """Return the next chunk of the prompt with a placeholder for a draft after it: the bug.

    A chunk has at most ``size`` of the ``tokens`` after the ``held`` ones in the cache. ``pending``, the drafts of the
    request, have no effect.
    """
    own = chunk(tokens, held, size, pending)
    return (*own, PLACEHOLDER) if own else own


@engine_part(
    "rows_begin",
    "staggered prompts",
    "prefilling-rows-counted",
    "counts a chunk of a prompt as a single token",
    category="M",
    citation="exllamav3 commit 188d073",
)
def prefilling_rows_counted(lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]) -> tuple[int, ...]:
    """Return the offset of each request in the flat array of one pass; a prompt chunk counts as one token: the bug.

    ``lengths`` has the number of tokens that each request is fed. ``prefilling`` states which requests feed a chunk,
    and ``rectangular`` whether requests are padded to the longest.
    """
    counted = [1 if prefill else length for length, prefill in zip(lengths, prefilling, strict=True)]
    return starts(counted, rectangular, prefilling)


@planted(
    "pre-drafted",
    "prepared-for-another-outcome",
    "uses drafts that were prepared for another text",
    category="M",
    citation="plausible: a cache keyed by the accepted length",
    killed_by="law_is_target",
)
def prepared_for_another_outcome(task: Task, gamma: int = 4, ahead: int = 4) -> Decoder:
    """Speculative sampling that uses drafts prepared during the last round, although they may continue another text.

    The drafts were prepared for a guess of this round's text. The guess and the text are compared without their last
    tokens: the bug. ``ahead`` is the number of prepared drafts.
    """
    return pre_drafting(task, gamma, ahead, lambda prepared, text: prepared[:-1] == text[:-1])


@planted(
    "spiffy",
    "place-chosen-by-its-draw",
    "selects the position to fill by the tokens drawn there",
    category="M",
    citation="plausible: remasking by the confidence of the drawn token, as diffusion models are often sampled",
    killed_by="law_is_target",
)
def place_chosen_by_its_draw(task: Task, block: int = 4, **options: Any) -> Decoder:
    """A masked model that selects the position to fill by the tokens that it drew.

    Each step draws a token for every masked position, and keeps only the drawn token with the highest probability. The
    right rule selects the position before it draws. A round repeats the step until its ``block`` positions are filled.
    ``options`` are further ones of the original, the registry algorithm ``spiffy``.
    """
    model = masked_model(task.target)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        here: Block = (None,) * min(block, state.remaining)
        while places := masked_places(here):
            rows = [model(state.tokens, here, place) for place in places]
            drawn = [
                draws.categorical(row, ("draw", len(places), place)) for row, place in zip(rows, places, strict=True)
            ]
            best = max(range(len(places)), key=lambda i: (rows[i][drawn[i]], -i))
            here = filled(here, places[best], drawn[best])
        new, remaining = commit(tuple(token for token in here if token is not None), state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, (), 0, 0)

    return spiffy.build(task, block, **options)._replace(step=step)
