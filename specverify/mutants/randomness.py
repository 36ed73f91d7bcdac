"""Planted bugs, class D: random numbers are used twice, are correlated, or come from another generator.

A function with the decorator ``planted(ORIGINAL, ...)`` changes the registry algorithm ORIGINAL, and its options are
those of that algorithm.

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them. A function of ``target_logits``, ``draft_logits`` and ``draft_tokens`` verifies a round too, with p and
q that it computes from the logits by its further parameters, such as ``temperature``.

A function of ``draws``, ``target``, ``prefix`` and ``draft`` verifies the drafts ``draft`` after the text ``prefix``
and returns the tokens to emit (``reference.types.Verifier``).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np

from specverify.mutants.mutant import SHORT, correct, planted, with_verifier
from specverify.mutants.numpy_verifiers import decided, drawn, excess, planted_verifier, processed_rows, ratio
from specverify.mutants.small_engine import (
    HORIZON,
    PROMPT,
    BigramTables,
    TableEngine,
    engine_of,
    models,
    planted_engine,
)
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Round,
    Site,
    State,
    Task,
    Tokens,
    Verified,
    accept_probability,
    constant,
    flip,
    residual,
)
from specverify.reference.algorithms import gumbel_list, watermarked
from specverify.reference.edge_cloud.decoder import edge_cloud_decoder
from specverify.reference.edge_cloud.link import Link, Service, in_memory
from specverify.reference.edge_cloud.messages import VerifiedReply, Verify
from specverify.reference.edge_cloud.shared_noise import DrawnNoise, SharedNoise
from specverify.reference.edge_cloud.wire import decode
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.gumbel_coupling import draft_given_target
from specverify.subjects.forms import BATCHED
from specverify.subjects.subject import Forward


def link(draws: Draws, service: Service) -> Link:
    """Return a link between edge and cloud that loses at most one answer of the cloud, ``service``.

    Each answer that accepts no draft is lost with probability 1/2, by ``draws``, until one is lost. The edge then
    repeats its request, and the cloud draws the answer again.
    """
    lost: list[str] = []

    def send(text: str) -> Sequence[str]:
        before, request = dict(service.sessions), decode(text)
        replies = in_memory(service)(text)
        reply = decode(replies[0])
        rejected = (
            isinstance(request, Verify) and request.draft and isinstance(reply, VerifiedReply) and not reply.accepted
        )
        if rejected and not lost and flip(draws, Fraction(1, 2), ("lost",)):
            lost.append(text)
            service.sessions = before
            return ()
        return replies

    return send


@planted(
    "edge-cloud-sparse-q",
    "answers-drawn-again",
    "draws a lost answer again instead of sending the same answer",
    category="D",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def answers_drawn_again(task: Task, gamma: int = 4) -> Decoder:
    """Edge-cloud decoding in which the cloud, asked again, draws its answer again instead of repeating it.

    The link loses only answers without an accepted draft, so rejections become too rare. The edge drafts and sends q
    (mode ``sparse-q``); the cloud verifies.
    """
    return edge_cloud_decoder(task, "sparse-q", constant(gamma), link=link)


def coin_rounded_to_one_decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Verify the ``drafts`` of a round with uniforms rounded to float32, which can be exactly 1.

    Returns the accepted drafts and one more token. A uniform of 1 rejects a draft even if p = q; the token is then 0.
    ``rng`` draws the uniforms.
    """
    for i, token in enumerate(drafts):
        coin = np.float32(rng.random())
        if not coin * q[i, token] < p[i, token]:
            weights = excess(p[i], q[i])
            return [*drafts[:i], drawn(rng, weights) if weights.any() else int(weights.argmax())]
    return [*drafts, drawn(rng, p[len(drafts)])]


coin_rounded_to_one = planted_engine(
    engine_of(coin_rounded_to_one_decide),
    "coin-rounded-to-one",
    "its uniforms may be 1 after rounding",
    category="D",
    citation="SGLang PR #30822",
    killed_by="support_at_boundary_draws",
    control=engine_of(),
    decide=coin_rounded_to_one_decide,
)
"""Hashes are divided by 2^32 and rounded to float32, so the largest hashes give u = 1 and reject a draft with p/q = 1.
"""


_CALLS = count(1)


GOLDEN = 0.6180339887498949


@planted(
    "speculative-sampling",
    "counted-calls",
    "its random numbers depend on the number of earlier calls",
    category="D",
    citation="TensorRT-LLM PR #17599",
    killed_by="program_is_its_draws",
)
@with_verifier
def counted_calls(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling whose uniforms depend on the number of calls since the engine started.

    The same request therefore gives another result each time.
    """
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not next(_CALLS) * GOLDEN % 1 < accept_probability(p, q, token):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


_HIDDEN = np.random.default_rng(7)


@planted(
    "speculative-sampling",
    "hidden-randomness",
    "draws its acceptance uniforms from a generator of its own",
    category="D",
    citation="lattice issue #388; local-inference-lab/vllm PR #98",
    killed_by="program_is_its_draws",
    examples=SHORT,
)
@with_verifier
def hidden_randomness(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that draws its acceptance uniforms from its own generator, so runs cannot be replayed."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not _HIDDEN.random() < accept_probability(p, q, token):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


class _OneKey:
    """Draws in which the replacement of a draft uses the watermark key of the draft again.

    A watermark key is a random number that reweights a pmf. All other draws are made by the inner ``Draws``.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws, self._keys = draws, dict[object, int]()

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[:2] == ("key", "residual"):
            return self._keys[site[2]]
        outcome = self._draws.categorical(pmf, site)
        if site[:2] == ("key", "draft"):
            self._keys[site[2]] = outcome
        return outcome


@planted(
    "watermarked",
    "key-of-the-draft-again",
    "uses the key of a draft again for the replacement",
    category="D",
    citation="plausible: one key a place",
    killed_by="law_is_target",
    examples=({"keep": "efficiency", "gamma": 1},),
)
def key_of_the_draft_again(task: Task, keep: str = "efficiency", gamma: int = 4) -> Decoder:
    """Watermarked speculative decoding that uses the watermark key of a rejected draft again for its replacement.

    A key is a random number that reweights p and q at a position. ``keep`` is "efficiency": the mode that keeps the
    acceptance of the drafts.
    """
    decoder = watermarked.build(task, keep, gamma)
    return decoder._replace(step=lambda draws, state: decoder.step(_OneKey(draws), state))


@planted(
    "gumbel-list",
    "list-believed",
    "emits the first draft of the list if no draft matches",
    category="D",
    citation="plausible",
    killed_by="law_is_target",
)
def list_believed(task: Task, **options: Any) -> Decoder:
    """Gumbel list sampling with a bug: if no draft of the list equals the target's token, the first draft is emitted.

    Drafts and target share Gumbel noise, so that their tokens often agree. The target's own token should be emitted.
    ``options`` are those of the registry algorithm.
    """
    decoder = gumbel_list.build(task, **options)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        if not done.draft or done.accepted:
            return after, done
        tokens = state.tokens + done.draft[:1]
        ended = done.draft[0] in task.eos
        return State(tokens, 0 if ended else state.remaining - 1), done._replace(tokens=done.draft[:1], accepted=1)

    return decoder._replace(step=step)


@planted_verifier(
    "noise-never-filled",
    "draws a token by noise that was never filled with random numbers",
    category="D",
    citation="vLLM issue #9441, PR #10863",
    killed_by="law_is_target",
    gammas=(1,),
    form=BATCHED,
)
def noise_never_filled(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling by an exponential race whose noise stays 1, so that the argmax is emitted.

    The random noise is written into a copy of the noise array, and is lost.
    """
    rng, gamma = np.random.default_rng(), draft_tokens.shape[1]
    noise = np.ones((len(p), p.shape[2]))
    unseeded = np.arange(len(p))
    noise[unseeded][:] = 2.0  # the rows' own noise, lost at once
    result = []
    for row, drafts in enumerate(draft_tokens.tolist()):
        coins = [rng.random() < ratio(p[row, i], q[row, i], token) for i, token in enumerate(drafts)]
        n = coins.index(False) if False in coins else gamma
        weights = excess(p[row, n], q[row, n]) if n < gamma else p[row, n]
        result.append([*drafts[:n], int((weights / noise[row]).argmax())])
    return result


class _OneRace:
    """Draws in which all positions of a round use the same Gumbel noise: the bug.

    At each position a token is drawn from one pmf, and then a second token from the other pmf with the same noise. The
    first token is drawn here from its law given the token of the position before. The second, at a site that ends in
    ``other``, is drawn by the inner draws, as in the correct program.
    """

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._before: tuple[Pmf, int] | None = None

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[-1] == "other":
            return self._draws.categorical(pmf, site)
        law = pmf if self._before is None else draft_given_target(self._before[0], pmf, self._before[1])
        token = self._draws.categorical(law, site)
        self._before = pmf, token
        return token


def noise(draws: Draws) -> SharedNoise:
    """Return the Gumbel noise that edge and cloud share in a round; it is the same at all positions: the bug."""
    return DrawnNoise(_OneRace(draws))


@planted(
    "edge-cloud-gumbel",
    "noise-of-the-round",
    "uses the same noise for all positions of a round",
    category="D",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def noise_of_the_round(task: Task, gamma: int = 4) -> Decoder:
    """Edge-cloud decoding that indexes the shared noise by round instead of by position.

    Edge and cloud draw their tokens with the same noise, so that the tokens often agree. Here all tokens of a round use
    the same noise.
    """
    return edge_cloud_decoder(task, "gumbel", constant(gamma), noise=noise)


class _Paired:
    """Draws in which an odd position uses the noise of the position before it again.

    The other draws are made by the inner ``Draws``.
    """

    def __init__(self, draws: Draws, state: State, task: Task) -> None:
        self._draws, self._task = draws, task
        self._text = list(state.tokens)

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[0] != "noise":
            return self._draws.categorical(pmf, site)
        position: Any = site[1]
        if position % 2 and position > 1:
            before = self._task.target(tuple(self._text[: position - 1]))
            pmf = draft_given_target(before, pmf, self._text[position - 1])
        drawn = self._draws.categorical(pmf, site)
        self._text[position:] = [drawn]
        return drawn


@planted(
    "gumbel-coupling",
    "noise-of-two-positions",
    "uses the same noise for two successive positions",
    category="D",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def noise_of_two_positions(task: Task, gamma: int = 4) -> Decoder:
    """Gumbel coupling that indexes its noise by position // 2, so two successive tokens use the same noise.

    In Gumbel coupling, draft model and target choose their tokens with the same Gumbel noise.
    """
    inner = correct("gumbel-coupling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        return inner.step(_Paired(draws, state, task), state)

    return inner._replace(step=step)


@planted_verifier(
    "one-stream-for-all-rows",
    "uses one uniform for the bonus tokens of all rows",
    category="D",
    citation="TensorRT-LLM issue #19487",
    killed_by="rows_are_independent",
    gammas=(1,),
    form=BATCHED,
)
def one_stream_for_all_rows(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling of a batch with one uniform for the bonus tokens of all rows.

    Each row has the right law, but the rows are not independent.
    """
    rng = np.random.default_rng()
    uniform, result = rng.random(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        *stayed, last = decided(rng, p[row], q[row], drafts)
        if len(stayed) == len(drafts):
            cumulative = p[row, -1].cumsum()
            last = int(np.searchsorted(cumulative / cumulative[-1], uniform, side="right"))
        result.append([*stayed, last])
    return result


@planted_verifier(
    "one-uniform-a-round",
    "tests all drafts of a round with one uniform",
    category="D",
    citation="plausible",
    killed_by="draws_are_independent",
)
def one_uniform_a_round(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that tests all drafts of a block with one uniform."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    coin = rng.random()
    for i, token in enumerate(drafts):
        if not coin < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


recovery_noise_of_the_draft = planted(
    "speculative-sampling",
    "recovery-noise-of-the-draft",
    "draws the replacement with the noise that drew the draft",
    category="D",
    citation="vLLM PRs #54282, #47386; local-inference-lab/vllm #205, #653",
    killed_by="law_is_target",
    examples=SHORT,
)(
    with_verifier(
        accept_or_replace(
            lambda prefix, p, q, token: accept_probability(p, q, token),
            lambda p, q, token: draft_given_target(q, residual(p, q), token),
        )
    )
)
"""The replacement reuses the draft's Gumbel noise. Given that the draft won with this noise, the noise of the other
tokens is not fresh. Both come from one counter-based generator at (seed, position). ``verifiers.gumbel_coupling`` has
the exact law of the second winner given the first."""


@planted_verifier(
    "rejecting-coin-used-again",
    "draws the replacement with the uniform that rejected the draft",
    category="D",
    citation="plausible",
    killed_by="law_is_target",
)
def rejecting_coin_used_again(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that draws the replacement with the uniform that rejected the draft, which is large."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        coin = rng.random()
        if not coin < ratio(p[i], q[i], token):
            cumulative = excess(p[i], q[i]).cumsum()
            result = int(np.searchsorted(cumulative / cumulative[-1], coin, side="right"))
            return [*drafts[:i], min(result, p.shape[1] - 1)]
    return [*drafts, drawn(rng, p[-1])]


ROWS_OF_ONE_SEED_SEED = 7
ONE_STREAM = np.random.default_rng(ROWS_OF_ONE_SEED_SEED)


def looked_up(uniform: Any, weights: Any) -> int:
    """Return the token that ``uniform`` selects by inverse CDF from ``weights``."""
    cumulative = weights.cumsum() / weights.sum()
    return min(int(np.searchsorted(cumulative, uniform, side="right")), int(np.flatnonzero(weights)[-1]))


def rows_of_one_seed_decide(rng: Any, p: Any, q: Any, drafts: list[int]) -> list[int]:
    """Verify the ``drafts`` of one row by speculative sampling; return the accepted drafts and one more token.

    The rule is correct. ``p`` and ``q`` are the rows of target and draft model, and ``rng`` draws all uniforms.
    """
    for i, token in enumerate(drafts):
        if not rng.random() < ratio(p[i], q[i], token):
            return [*drafts[:i], looked_up(rng.random(), excess(p[i], q[i]))]
    return [*drafts, looked_up(rng.random(), p[len(drafts)])]


def control(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Verify all rows of a batch with one stream of uniforms from one seed, which all calls continue.

    It is the correct counterpart of ``rows_of_one_seed``, in which each row begins the stream again.
    """
    rows = zip(p, q, draft_tokens.tolist(), strict=True)
    return [rows_of_one_seed_decide(ONE_STREAM, *row) for row in rows]


@planted_verifier(
    "rows-of-one-seed",
    "gives every row of a batch a generator with the same seed",
    category="D",
    citation="vLLM issue #6038, PR #6034",
    killed_by="rows_are_independent",
    control=control,
    gammas=(1,),
    form=BATCHED,
)
def rows_of_one_seed(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Verify each row of a batch with a generator made from the same seed, so all rows use equal uniforms."""
    rows = zip(p, q, draft_tokens.tolist(), strict=True)
    return [rows_of_one_seed_decide(np.random.default_rng(ROWS_OF_ONE_SEED_SEED), *row) for row in rows]


SEEDED_BEFORE_EVERY_COIN_SEED = 7


@planted_verifier(
    "seeded-before-every-coin",
    "seeds the generator before each acceptance test",
    category="D",
    citation="feifeibear/LLMSpeculativeSampling commit ec08458, sampling/speculative_sampling.py line 60",
    killed_by="draws_are_independent",
)
def seeded_before_every_coin(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that seeds the generator before each acceptance test, so all tests use one uniform."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not np.random.default_rng(SEEDED_BEFORE_EVERY_COIN_SEED).random() < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


SEEDED_EVERY_CALL_SEED = 0


@planted_verifier(
    "seeded-every-call",
    "seeds its generator again in each call",
    category="D",
    citation="plausible",
    killed_by="draws_are_independent",
    setting=(("temperature", 1.0),),
)
def seeded_every_call(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling of processed logits with a generator that is seeded anew in each call.

    One round has the right law, but every round uses the random numbers of the first.
    """
    p, q = (processed_rows(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(SEEDED_EVERY_CALL_SEED), p, q, draft_tokens.tolist())


SEEDED_EVERY_ROUND_SEED = 7


def seeded_every_round_decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Verify the ``drafts`` of a round by speculative sampling; return the accepted drafts and one more token.

    The acceptance tests of every round use the same uniforms: the bug. The last token is drawn by ``rng``.
    """
    coins = np.random.default_rng(SEEDED_EVERY_ROUND_SEED)
    for i, token in enumerate(drafts):
        if not coins.random() < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[len(drafts)])]


seeded_every_round = planted_engine(
    engine_of(seeded_every_round_decide),
    "seeded-every-round",
    "seeds the generator of the acceptance tests again in each round",
    category="D",
    citation="plausible",
    killed_by="law_is_target",
    control=engine_of(),
)
"""The generator is seeded with the request's seed at the start of every round, so the first uniforms of all rounds are
equal."""


STREAM_OF_THE_POSITION_SEED = 7


def tables() -> BigramTables:
    """Return models in which a rejected draft can be replaced by either of two tokens: the replacement is random."""
    target, draft = models()
    target[0], draft[0] = (0.25, 0.375, 0.375), (0.625, 0.125, 0.25)
    return BigramTables(target, draft)


def stream_of_the_position_engine_of(offset: int) -> TableEngine:
    """Return the engine with gamma 1 that draws a replacement from the random stream of another position.

    Each position has its own stream. The replacement uses that of ``offset`` positions after the draft's; 0 is correct.
    """

    def raced(weights: Any, stream: int) -> int:
        return int(
            (
                weights / np.random.default_rng([STREAM_OF_THE_POSITION_SEED, stream]).exponential(size=len(weights))
            ).argmax()
        )

    def engine(tables: BigramTables, forwards: list[Forward]) -> list[int]:
        coins, text = np.random.default_rng(), list(PROMPT)
        for position in range(HORIZON):
            p, q = tables.target[text[-1]], tables.draft[text[-1]]
            draft = raced(q, position)
            forwards.append(Forward(len(text) - 1, (text[-1], draft)))
            kept = coins.random() < p[draft] / q[draft]
            text.append(draft if kept else raced(excess(p, q), position + offset))
        return text[len(PROMPT) :]

    return engine


stream_of_the_position = planted_engine(
    stream_of_the_position_engine_of(0),
    "stream-of-the-position",
    "makes two generators from the same seed and position",
    category="D",
    citation="vLLM PRs #54282, #47386; local-inference-lab/vllm #205, #653",
    killed_by="law_is_target",
    control=stream_of_the_position_engine_of(HORIZON),
    tables=tables,
)
"""Draft and replacement each create a generator from (seed, position), so the same numbers decide both."""
