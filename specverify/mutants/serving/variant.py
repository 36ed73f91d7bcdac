"""The serving engine as a decoder of one text whose law is enumerated, and whose acceptance rate can be checked."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

from specverify.mutants.serving.cache import fragmented, grown, pages_for, read, slots, written
from specverify.mutants.serving.drafting import DraftCache, draft_write, lookup
from specverify.mutants.serving.engine import started_engine, step
from specverify.mutants.serving.model import models_of
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.request import Parameters
from specverify.mutants.serving.situations import Setup
from specverify.mutants.serving.state import EngineState, Kept
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Pmf, Round, State, Task, Tokens, argmax, chain
from specverify.subjects.subject import Variant
from specverify.subjects.warped_tasks import Processed, bare

GAMMA = 2
PENALTY = Parameters(repetition=Fraction(1, 2))


def decoder_variant(
    parts: EngineParts, drafting: str = "argmax", *, warm: bool = False, penalised: bool = False
) -> Variant:
    """Return the engine made of ``parts`` as a ``Variant``: a decoder of one text whose law is enumerated.

    ``drafting`` is the drafter: "argmax", "sampled" or "lookup". ``warm``: the caches hold an earlier text that differs
    only in its end. ``penalised``: target and draft have a repetition penalty.
    """
    label = f"gamma={GAMMA}{' warm' if warm else ''}{' penalised' if penalised else ''}"
    build = partial(_decoder, parts, drafting, warm, penalised)
    return Variant(label, build, process=_penalised if penalised else None)


def _penalised(task: Task) -> Task:
    """Return the task with a repetition penalty on the target and on the draft model."""
    assert task.draft is not None
    return task._replace(target=_under_penalty(task.target), draft=_under_penalty(task.draft))


def _under_penalty(model: LanguageModel) -> Processed:
    def pmf(tokens: Tokens) -> Pmf:
        masses = [mass / 2 if token in tokens else mass for token, mass in enumerate(model(tokens).tolist())]
        return np.array([mass / sum(masses) for mass in masses], dtype=object)

    return Processed(model, pmf)


def _decoder(parts: EngineParts, drafting: str, warm: bool, penalised: bool, task: Task) -> Decoder:
    """Return the engine as a decoder of ``task``, with the drafter ``drafting`` (a value of ``Setup.drafting``).

    If ``warm``, the caches hold an earlier text that differs only in its end. If ``penalised``, the engine gets the
    models of ``task`` without their repetition penalty, and applies it itself.
    """
    assert task.draft is not None
    draft = task.draft
    models = models_of(bare(task.target), bare(draft)) if penalised else models_of(task.target, draft)
    setup = Setup((), drafting=drafting, gammas=(GAMMA,), draft_processed=penalised)

    def setup_of(prompt: Tokens) -> Setup:
        body = {"prompt": prompt, "max_new": task.horizon, "eos": task.eos, "max_context": 99}
        body["parameters"] = PENALTY if penalised else Parameters()
        return setup._replace(bodies=(body,), vocabulary=len(task.target(prompt)))

    def init(prompt: Tokens) -> State:
        if task.horizon == 0:
            return State(prompt, 0)
        return State(prompt, task.horizon, started_engine(parts, setup_of(prompt), _earlier(prompt) if warm else None))

    def stepped(draws: Draws, state: State) -> tuple[State, Round]:
        engine = state.drafter
        assert isinstance(engine, EngineState)
        prompt = state.tokens if not engine.running else engine.running[0].request.prompt
        after = step(parts, setup_of(prompt), models, draws, engine)
        running = after.running[0]
        new = running.tokens[len(state.tokens) :]
        remaining = 0 if running.finished else state.remaining - len(new)
        after = _without_traces(setup, after)
        accepted = min(running.accepted, len(new))
        result = Round(new, running.pending, accepted, min(accepted + 1, len(running.pending), len(new)))
        return State(running.tokens, remaining, None if running.finished else after), result

    def propose(draws: Draws, state: State) -> Draft:
        count = min(GAMMA, state.remaining - 1)
        if drafting == "lookup":
            tokens = lookup(state.tokens, state.tokens, count) if count else ()
            return chain(tokens, (None,) * len(tokens))
        tokens = ()
        for _ in range(count):
            tokens += (argmax(draft(state.tokens + tokens)),)
        return chain(tokens, (None,) * count)

    return Decoder(init, stepped, propose)


def _without_traces(setup: Setup, engine: EngineState) -> EngineState:
    """Return the engine with all state reset that has no effect on later steps; ``setup`` is its situation.

    Engines with equal futures are then equal.
    """
    running, size = engine.running[0], setup.page_size
    entries = read(engine.memory, running.pages, size, running.held)
    pages, free = grown((), fragmented(setup.pages), pages_for(running.held, size))
    memory = written((None,) * len(engine.memory), slots(pages, size, 0, len(entries)), entries)
    bare = running._replace(pages=pages, pending=(), accepted=0, rounds=min(running.rounds, 1))
    return EngineState(memory, free, (bare,), ())


def _earlier(prompt: Tokens) -> Kept:
    """Return the caches left by an earlier text that differs from ``prompt`` only in its end."""
    tokens = (*prompt[:-1], 1 - min(prompt[-1], 1), 0, 1)
    return Kept(tokens, len(tokens) - 1, draft=draft_write(DraftCache(), tokens[:-1]))
