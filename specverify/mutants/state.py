"""Planted bugs of recurrent and sliding-window state, and of state that one round leaves for the next.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters. A function with the decorator ``planted(ORIGINAL, ...)`` changes
the registry algorithm ORIGINAL, and its options are those of that algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.mutants.serving.cache import checkpoint
from specverify.mutants.serving.drafting import lookup
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import engine_part
from specverify.mutants.serving.scheduler import chunk
from specverify.reference import Decoder, Draws, Pmf, Round, State, Task, Tokens, argmax, commit, constant, flip
from specverify.reference.edge_cloud.decoder import BothSides, edge_cloud_decoder
from specverify.reference.edge_cloud.edge import EdgeState
from specverify.reference.edge_cloud.link import Link, Service, in_memory
from specverify.reference.edge_cloud.messages import Verify
from specverify.reference.edge_cloud.wire import decode


@engine_part(
    "reused",
    "recurrent conversation",
    "boundary-state-not-rewound",
    "reuses a recurrent state that has read more than the shared prefix",
    category="I",
    citation="vLLM PR #45614",
)
def boundary_state_not_rewound(held: int, boundary: int, recurrent: bool) -> int:
    """Return ``boundary``, the end of the shared whole pages, as the number of entries that a prompt reuses.

    This is wrong for a ``recurrent`` state that has read more, ``held`` tokens.
    """
    return boundary


@engine_part(
    "checkpoint",
    "recurrent, four drafts",
    "checkpoint-clamped",
    "after more than three accepted drafts, keeps the recurrent state after the third",
    category="I",
    citation="xLLM PR #2247 (c8c229639)",
)
def checkpoint_clamped(before: Tokens, states: tuple[Tokens, ...], drafts: int, accepted: int) -> Tokens:
    """Return the recurrent state after the accepted drafts, but after the third one if more than three were accepted.

    ``states`` has the state after each token of the pass, whose last ``drafts`` tokens are drafts. ``before``, the
    state before the pass, is not used.
    """
    return checkpoint(before, states, drafts, min(accepted, 3))


def link(draws: Draws, service: Service) -> Link:
    """Return a link between edge and cloud that spoils the cache of the cloud, ``service``, after each rejection.

    The last entry of the cache becomes that of the first rejected draft. ``draws`` is not used.
    """

    def send(text: str) -> Sequence[str]:
        request = decode(text)
        replies = in_memory(service)(text)
        held = service.sessions[request.session]
        if isinstance(request, Verify):
            kept = len(held.cache) - request.known
            if held.cache and 0 <= kept < len(request.draft):
                held = held._replace(cache=(*held.cache[:-1], request.draft[kept]))
                service.sessions[request.session] = held
        return replies

    return send


@planted(
    "edge-cloud-sparse-q",
    "cloud-reads-a-rejected-draft",
    "leaves the entry of a rejected draft in the cloud's cache",
    category="H",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def cloud_reads_a_rejected_draft(task: Task, gamma: int = 4) -> Decoder:
    """Edge-cloud decoding in which the cloud's cropped cache ends with the entry of a rejected draft.

    The next round reads this entry. The edge drafts and sends q (mode ``sparse-q``); the cloud verifies.
    """
    return edge_cloud_decoder(task, "sparse-q", constant(gamma), link=link)


@planted(
    "speculative-sampling",
    "crop-by-minus-zero",
    "empties the cache if no draft is rejected",
    category="H",
    citation="romsto/Speculative-Decoding utils/caching.py:51,73-74 at db7db67",
    killed_by="law_is_target",
    examples=SHORT,
)
def crop_by_minus_zero(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that crops its cache by ``[:-rejected]``, which empties it if no draft is rejected.

    ``State.drafter`` holds the tokens that are really in the cache.
    """
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        held = state.drafter if isinstance(state.drafter, tuple) else state.tokens
        after, done = inner.step(draws, state._replace(tokens=held, drafter=None))
        fed = (*held, *done.draft)
        rejected = len(done.draft) - done.accepted
        last = done.tokens[-1:] if len(done.tokens) > done.accepted else ()
        return after._replace(tokens=state.tokens + done.tokens, drafter=fed[:-rejected] + last), done

    return inner._replace(step=step)


@engine_part(
    "chunk",
    "recurrent in chunks",
    "drafts-in-prefill-chunk",
    "feeds a draft after a chunk of the prompt",
    category="I",
    citation="vLLM PR #30618",
)
def drafts_in_prefill_chunk(tokens: Tokens, held: int, size: int, pending: Tokens) -> Tokens:
    """Return the next chunk of a prompt with a draft after it, unless the chunk is the last one.

    A chunk has at most ``size`` of the ``tokens`` after the ``held`` ones that were fed. The right chunk has no draft.
    ``pending``, the drafts of the request, have no effect.
    """
    more = held + size < len(tokens) - 1
    return chunk(tokens, held, size, pending) + (lookup(tokens, tokens, 1) if more else ())


@engine_part(
    "recorded",
    "recurrent",
    "no-history-for-short-windows",
    "for one or two drafts, records only the last recurrent state",
    category="I",
    citation="exllamav3 commit 95c97bf",
)
def no_history_for_short_windows(states: tuple[Tokens, ...], drafts: int) -> tuple[Tokens, ...]:
    """Return the recurrent states that a pass records, one for each of its tokens, for a rewind after a rejection.

    ``states`` has the right ones: the state after each token. If there are at most two, the last one is recorded for
    both. ``drafts`` is not used.
    """
    return states if len(states) > 2 else states[-1:] * len(states)


@engine_part(
    "state_slot",
    "recurrent, rounds without drafts",
    "plain-state-elsewhere",
    "stores the recurrent state in another slot after rounds without drafts",
    category="I",
    citation="vLLM issue #40875, PR #56531",
)
def plain_state_elsewhere(drafts: int) -> int:
    """Return slot 1 for the recurrent state after a round without drafts, and the right slot, 0, after other rounds.

    The round after one without drafts then reads an old state from slot 0.
    """
    return 0 if drafts else 1


@planted(
    "speculative-sampling",
    "prefix-fed-twice",
    "feeds the whole text in each round into a cache that already has it",
    category="H",
    citation="romsto/Speculative-Decoding base_decoding.py:52, speculative_decoding.py:113-133 at db7db67",
    killed_by="law_is_target",
    examples=SHORT,
)
def prefix_fed_twice(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that feeds the whole text in each round into a cache that already holds it.

    From round 2 on the target reads every token twice.
    """
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        held = () if state.remaining == task.horizon else state.tokens[:-1]

        def doubled(tokens: Tokens) -> Pmf:
            return task.target(held + tokens)

        return correct("speculative-sampling").build(task._replace(target=doubled), gamma=gamma).step(draws, state)

    return inner._replace(step=step)


@planted(
    "edge-cloud-sparse-q",
    "reply-taken-twice",
    "commits a repeated reply a second time",
    category="M",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def reply_taken_twice(task: Task, gamma: int = 4) -> Decoder:
    """Edge-cloud decoding in which the edge commits the tokens of a repeated reply a second time.

    One reply of the cloud in four is repeated. The mode is ``sparse-q``: the edge sends its rows of q.
    """
    inner = correct("edge-cloud-sparse-q").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        if not after.remaining or not flip(draws, Fraction(1, 4), ("repeated",)):
            return after, done
        again, remaining = commit(done.tokens, after.remaining, task.eos)
        tokens = after.tokens + again
        sides = BothSides(EdgeState(tokens, remaining, after.length))
        return State(tokens, remaining, sides, after.length), done._replace(tokens=done.tokens + again)

    return inner._replace(step=step)


@engine_part(
    "fed_when_full",
    "recurrent to the end of the context",
    "stale-drafts-at-the-end",
    "feeds drafts of the last round when the context is nearly full",
    category="I",
    citation="vLLM PR #38711",
)
def stale_drafts_at_the_end(pending: Tokens) -> Tokens:
    """Return the tokens that a request feeds when its context is nearly full, so that no new drafts fit.

    Here this is the first of ``pending``, the drafts of the last round; the right engine feeds none.
    """
    return pending[:1]


@engine_part(
    "checkpoint",
    "recurrent",
    "state-after-last-draft",
    "keeps the recurrent state after all drafts, rejected ones included",
    category="I",
    citation="tpu-inference PRs #3178, #3057",
)
def state_after_last_draft(before: Tokens, states: tuple[Tokens, ...], drafts: int, accepted: int) -> Tokens:
    """Return the recurrent state after all fed tokens, rejected drafts included.

    ``states`` has the state after each token of the pass; the right one is that after the last accepted draft. The
    other parameters are not used.
    """
    return states[-1]


@engine_part(
    "fresh_state",
    "one after the other, recurrent",
    "state-carried-between-requests",
    "begins a request with the recurrent state of the previous one",
    category="I",
    citation="exllamav3 commit b2dd4ea",
)
def state_carried_between_requests(before: Tokens, rejected: int) -> Tokens:
    """Return ``before``, the recurrent state of the previous request, as the initial state of the next one.

    The right initial state is empty. ``rejected`` is not used.
    """
    return before


class _Forgotten:
    def __init__(self, rejected: bool) -> None:
        self.rejected = rejected

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Forgotten)

    def __hash__(self) -> int:
        return 0


@planted(
    "speculative-sampling",
    "state-forgets-its-round",
    "its next round depends on a flag that is not part of the state",
    category="I",
    citation="class of exllamav3 commit b2dd4ea: a count carried over between rounds",
    killed_by="merging_is_sound",
    examples=SHORT,
)
def state_forgets_its_round(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose next token depends on a flag that the comparison of two states ignores.

    If the last round rejected a draft, the next token is the target's argmax. So equal states have different futures,
    and merging them would compute a wrong law.
    """
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        if isinstance(state.length, _Forgotten) and state.length.rejected:
            new, remaining = commit((argmax(task.target(state.tokens)),), state.remaining, task.eos)
            return State(state.tokens + new, remaining, None, _Forgotten(False)), Round(new, (), 0, 0)
        after, done = inner.step(draws, state._replace(length=None))
        return after._replace(length=_Forgotten(done.accepted < len(done.draft))), done

    return inner._replace(init=lambda prompt: inner.init(prompt)._replace(length=_Forgotten(False)), step=step)


@engine_part(
    "visible",
    "window",
    "window-shows-spare-entries",
    "attends to the oldest stored entries instead of the newest",
    category="I",
    citation="transformers PR #48280 (regression of #47447)",
)
def window_shows_spare_entries(entries: Sequence[Entry], window: int, spare: int) -> Sequence[Entry]:
    """Return ``window`` entries, counted from the oldest stored entry instead of the newest; all if ``window`` is 0.

    ``spare`` entries older than the window are stored too, and should not be visible.
    """
    return entries[-window - spare :][:window] if window else entries
