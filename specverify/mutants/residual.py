"""Planted bugs, class C: the token after a rejection, or after the last draft, has a wrong law.

A function with the decorator ``planted(ORIGINAL, ...)`` changes the registry algorithm ORIGINAL, and its options are
those of that algorithm.

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them.

A function of ``draws``, ``target``, ``prefix`` and ``draft`` verifies the drafts ``draft`` after the text ``prefix``
and returns the tokens to emit (``reference.types.Verifier``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.mutants.mutant import SHORT, planted, replacing_from, with_verifier
from specverify.mutants.numpy_verifiers import drawn, excess, owed, planted_verifier, ratio
from specverify.mutants.small_engine import HORIZON, PROMPT, BigramTables, TableEngine, planted_engine
from specverify.mutants.tree_mutants import PAIR, by_siblings, with_tree
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Round,
    State,
    Task,
    Tokens,
    Verified,
    accept_probability,
    commit,
    constant,
    excess_law,
    flip,
    from_parts,
    one_hot,
    overlap,
    residual,
    total_variation,
)
from specverify.reference.algorithms import cactus, fuzzy_speculative_decoding, lantern_released, reward_guided
from specverify.reference.algorithms.cactus import kept_probability
from specverify.reference.algorithms.lantern_released import nearest, together
from specverify.reference.edge_cloud.decoder import edge_cloud_decoder
from specverify.reference.edge_cloud.link import Link, Service, in_memory
from specverify.reference.edge_cloud.messages import Supply
from specverify.reference.edge_cloud.modes import as_row
from specverify.reference.edge_cloud.wire import decode, encode
from specverify.reference.models import draft_model
from specverify.reference.parameters import parameter
from specverify.reference.pmf import uniform
from specverify.reference.rounds import check_unfinished
from specverify.reference.tree_rounds import Step
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.subjects.subject import Forward


@planted(
    "speculative-sampling",
    "bonus-from-draft",
    "draws the bonus token from q",
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def bonus_from_draft(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that draws the bonus token from q instead of p."""
    draft_of = draft_model(task)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        def rows(tokens: Tokens) -> object:
            return draft_of(tokens) if tokens == prefix + draft.tokens else target(tokens)

        return speculative_sampling(draws, rows, prefix, draft)

    return with_verifier(verify)(task, gamma)


@planted(
    "speculative-sampling",
    "bonus-from-row-before",
    "draws the bonus token from the row that verified the last draft",
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def bonus_from_row_before(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that draws the bonus token from the row that verified the last draft."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified(
        (*draft.tokens, draws.categorical(target(prefix + draft.tokens[:-1]), ("bonus",))), len(draft.tokens)
    )


@planted(
    "cactus",
    "cactus-residual-of-target",
    "accepts by a changed p, but replaces from the residual of the original p",
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
@from_parts
def cactus_residual_of_target(task: Task, delta: Any = 1, gamma: int = 10) -> Parts:
    """Cactus with a bug: a rejected draft is replaced from ``norm((p - q)+)`` of the original p.

    Cactus raises p at the draft before the test; ``delta`` limits this change. The residual should use the changed p
    too.
    """
    parts = cactus.build.parts(task, delta, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(
        verifier=accept_or_replace(
            lambda prefix, p, q, token: kept_probability(p, q, token, delta),
            lambda p, q, token: residual(p, q),
        )
    )


@planted(
    "fuzzy-speculative-decoding",
    "fuzzy-residual",
    "replaces a rejected draft from p without the draft; the rule draws from the whole p",
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
@from_parts
def fuzzy_residual(task: Task, threshold: Any = 0, gamma: int = 5) -> Parts:
    """Fuzzy speculative decoding that replaces a rejected draft by a draw from p without the draft.

    Fuzzy decoding drafts the argmax of q, and rejects a draft if the total variation of p and q is above ``threshold``.
    The replacement should be drawn from the whole p.
    """
    draft = draft_model(task)
    verify = accept_or_replace(
        lambda prefix, p, q, token: int(total_variation(p, draft(prefix)) <= parameter(threshold, p)),
        lambda p, q, token: residual(p, q),
    )
    parts = fuzzy_speculative_decoding.build.parts(task, threshold, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(verifier=verify)


def without(p: Pmf, token: int, neighbours: int) -> Pmf:
    """Return p without ``token`` and the ``neighbours`` tokens whose ids are nearest to it, renormalised."""
    left = p
    for code in (token, *nearest(token, len(p))[:neighbours]):
        left = left * (1 - one_hot(code, p))
    mass = left.sum()
    return left / mass if mass > 0 else uniform(len(p), p)


@planted(
    "lantern-released",
    "neighbours-excluded-as-added",
    "excludes one neighbour code too few from the replacement",
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
@from_parts
def neighbours_excluded_as_added(task: Task, neighbours: int = 1, delta: Any = 0, gamma: int = 4) -> Parts:
    """LANTERN, as released, with a bug: one image code too few is excluded from the replacement of a rejected draft.

    LANTERN accepts a draft, an image code, with its own p plus the p of its ``neighbours`` nearest codes. These are
    added as long as their sum is at most ``delta``. A replacement should exclude the draft and its ``neighbours`` + 1
    nearest codes; here it excludes the draft and ``neighbours`` codes.
    """
    parts = lantern_released.build.parts(task, neighbours, delta, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(
        verifier=accept_or_replace(
            lambda prefix, p, q, token: together(p, token, neighbours, delta),
            lambda p, q, token: without(p, token, neighbours),
        )
    )


def engine_of(*, copied: bool) -> TableEngine:
    """Return the engine that drafts the argmax of q and replaces a rejected draft by a draw from p without it.

    If not ``copied``, the draft's entry is set to 0 in the caller's table: the bug.
    """

    def engine(tables: BigramTables, forwards: list[Forward]) -> list[int]:
        rng, text = np.random.default_rng(), list(PROMPT)
        for _ in range(HORIZON):
            draft = int(tables.draft[text[-1]].argmax())
            forwards.append(Forward(len(text) - 1, (text[-1], draft)))
            p = tables.target[text[-1]].copy() if copied else tables.target[text[-1]]
            if rng.random() < p[draft]:
                text.append(draft)
                continue
            p[draft] = 0
            text.append(drawn(rng, p))
        return text[len(PROMPT) :]

    return engine


recovery_in_place = planted_engine(
    engine_of(copied=False),
    "recovery-in-place",
    "sets p of the rejected draft to 0 in the caller's table",
    category="C",
    citation="vllm-ascend PR #2881 (b499417ad9)",
    killed_by="inputs_unchanged",
    control=engine_of(copied=True),
)
"""The recovery of an n-gram draft sets the draft's entry to 0 in the caller's table of p, which is read again later."""


@planted(
    "speculative-sampling",
    "residual-absolute",
    "replaces a rejected draft from |p - q|",
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@replacing_from
def residual_absolute(p: Pmf, q: Pmf) -> Pmf:
    """Return the wrong residual ``norm(|p - q|)`` instead of ``norm((p - q)+)``."""
    return abs(p - q) / abs(p - q).sum()


residual_exchanged = planted(
    "speculative-sampling",
    "residual-exchanged",
    "replaces a rejected draft from (q - p)+",
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)(replacing_from(lambda p, q: residual(q, p)))
"""The residual is (q - p)+ instead of (p - q)+, so replacements are tokens that q already draws too often."""


FLOOR = Fraction(1, 2**23)


@planted(
    "speculative-sampling",
    "residual-floor",
    "bounds the residual below by a small positive number instead of 0",
    category="C",
    citation="ScaleLLM PR #202 (6dd58279)",
    killed_by="tokens_are_supported",
    examples=SHORT,
)
@replacing_from
def residual_floor(p: Pmf, q: Pmf) -> Pmf:
    """Return (p - q)+ with a small positive floor, normalised: tokens with p = 0 are emitted now and then."""
    excess = np.maximum(p - q, p * 0 + FLOOR if p.dtype == object else float(FLOOR))
    return excess / excess.sum()


residual_from_target = planted(
    "speculative-sampling",
    "residual-from-target",
    "replaces a rejected draft from p instead of the residual",
    category="C",
    citation="rtp-llm commit 2d9860463; romsto/Speculative-Decoding commits 53922df, 0b1fa52 (skip_sample_adjustment)",
    killed_by="law_is_target",
    examples=({"gamma": 1}, {"gamma": 2}),
)(replacing_from(lambda p, q: p))
"""After a rejection the token is drawn from p instead of norm((p - q)+), so the output law is min(p, q) + TV(p, q) p.
"""


@planted_verifier(
    "residual-not-scaled",
    "draws from a residual that is not normalised",
    category="C",
    citation="plausible",
    killed_by="law_is_target",
)
def residual_not_scaled(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling by inverse CDF of a residual that is not normalised.

    The last token gets the missing mass.
    """
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not rng.random() < ratio(p[i], q[i], token):
            result = int(np.searchsorted(excess(p[i], q[i]).cumsum(), rng.random(), side="right"))
            return [*drafts[:i], min(result, p.shape[1] - 1)]
    return [*drafts, drawn(rng, p[-1])]


@planted(
    "speculative-sampling",
    "residual-of-first-row",
    "replaces a draft at any position from the residual of position 0",
    category="C",
    citation="FlashInfer PR #425 (04e753c77)",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def residual_of_first_row(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that replaces a draft at any position from the residual of position 0."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified(
                (*draft.tokens[:i], draws.categorical(residual(target(prefix), draft.pmfs[0]), ("residual", i))),
                accepted=i,
            )
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


@planted(
    "speculative-sampling",
    "residual-of-last-row",
    "replaces a rejected draft with p of the last row in the residual",
    category="C",
    citation="romsto/Speculative-Decoding commit 53922df",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def residual_of_last_row(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that replaces any rejected draft from (p - q)+ with p of the last row."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified(
                (*draft.tokens[:i], draws.categorical(residual(target(prefix + draft.tokens), q), ("residual", i))),
                accepted=i,
            )
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


@planted(
    "edge-cloud-two-phase",
    "row-of-another-position",
    "sends the row of q of position 0, whichever row is requested",
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def row_of_another_position(task: Task, gamma: int = 4) -> Decoder:
    """Edge-cloud decoding in which the edge sends the wrong row of q after a rejection: always that of position 0.

    In the mode ``two-phase`` the cloud requests the row of the rejected position, to compute the residual.
    """
    q = draft_model(task)

    def link(draws: Draws, service: Service) -> Link:
        def send(text: str) -> Sequence[str]:
            request = decode(text)
            if isinstance(request, Supply):
                held = service.sessions[request.session]
                row, token = as_row(q(held.tokens)), request.draft[request.position]
                if held.pending and token in row.tokens:
                    pending = held.pending._replace(mass=row.masses[row.tokens.index(token)])
                    service.sessions[request.session] = held._replace(pending=pending)
                    text = encode(request._replace(row=row))
            return in_memory(service)(text)

        return send

    return edge_cloud_decoder(task, "two-phase", constant(gamma), link=link)


TOLERANCE = Fraction(1, 10**6)


@planted(
    "speculative-sampling",
    "small-residual-dropped",
    "draws from p if the residual sums to less than 1e-6",
    category="E",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@replacing_from
def small_residual_dropped(p: Pmf, q: Pmf) -> Pmf:
    """Return norm((p - q)+), or p if the mass of (p - q)+ is at most ``TOLERANCE``: the bug."""
    return residual(p, q) if 1 - overlap(p, q) > TOLERANCE else p


@planted(
    "reward-guided",
    "step-rewritten-without-the-draft",
    "replaces a rejected step from p without this step; the rule draws from the whole p",
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
def step_rewritten_without_the_draft(task: Task, rewarded: Any = ()) -> Decoder:
    """Reward-guided decoding that replaces a rejected step by a draw from p without this step.

    A drafted step (here one token) is kept if its reward is high enough. If not, a step should be drawn from the whole
    p. ``rewarded`` has the pairs (token before, drafted step) for which the draft is kept.
    """
    decoder = reward_guided.build(task, rewarded)
    draft = draft_model(task)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        drafted, p = draws.categorical(draft(state.tokens), ("draft", 0)), task.target(state.tokens)
        stays = (state.tokens[-1], drafted) in rewarded
        token = drafted if stays else draws.categorical(residual(p, one_hot(drafted, p)), ("target", 0))
        new, remaining = commit((token,), state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, (drafted,), int(stays), 1)

    return decoder._replace(step=step)


@planted_verifier(
    "target-row-left-without-draft",
    "sets p of a rejected draft to 0 in the caller's array",
    category="C",
    citation="vllm-ascend PR #2881 (b499417ad9)",
    killed_by="inputs_unchanged",
)
def target_row_left_without_draft(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Speculative sampling of a batch that sets p of each rejected draft to 0 in the caller's array ``p``.

    The entry is not restored.
    """
    rng, result = np.random.default_rng(), []
    for row, count in enumerate(lengths.tolist()):
        drafts = draft_tokens[row, :count].tolist()
        kept = [rng.random() < ratio(p[row, i], q[row, i], token) for i, token in enumerate(drafts)]
        n = kept.index(False) if False in kept else count
        weights = owed(p[row, n], q[row, n]) if n < count else p[row, n]
        result.append([*drafts[:n], drawn(rng, weights)])
        if n < count:
            p[row, n, drafts[n]] = 0
    return result


def try_in_turn(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Recursive rejection of siblings that subtracts q only at the rejected draft, instead of the whole q.

    ``p`` is the target row of the node, ``tokens`` are the siblings, ``pmfs`` their q, and ``depth`` is the depth of
    the node.
    """
    owed = p
    for k, (token, q) in enumerate(zip(tokens, pmfs, strict=True)):
        if flip(draws, accept_probability(owed, q, token), ("accept", depth, k)):
            return Step(token, accepted=True)
        owed = excess_law(owed, one_hot(token, q) * q[token])
    return Step(draws.categorical(owed, ("residual", depth)), accepted=False)


tree_subtracts_one_entry = planted(
    "rsd",
    "tree-subtracts-one-entry",
    "after a rejection lowers p only at the rejected token",
    category="C",
    citation="EAGLE issue #20, commit 2f982e2",
    killed_by="law_is_target",
    examples=PAIR,
)(with_tree(by_siblings(try_in_turn)))
"""After a sibling is rejected, q is subtracted from the residual of p only at that sibling's token instead of at every
token."""
