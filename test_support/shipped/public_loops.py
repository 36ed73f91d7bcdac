"""Whole decoders and verifiers of public repositories that belong to no paper and no engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from specverify.testing import EngineScenario, Made
from test_support.shipped.networks import MOST_POSITIONS, Cached, Positions, Tables, Uncached, logits_of
from test_support.shipped.shipped import BOUNDARY, LAW, STOPS, Shipped
from test_support.shipped.sources import Mend, functions_of, replaced_each

LITGPT = "litgpt/generate/speculative_decoding.py"
FIRST_TOKEN = ("    tokens = []\n    total_generated", "    tokens = list(token)\n    total_generated")
"""What LitGPT leaves out: the token that the target gives after the prompt."""
POINT_MASS = (
    "keepdim=True), F.softmax(logits, dim=-1)",
    "keepdim=True), F.one_hot(logits.argmax(), len(logits)).float()",
)
"""What LitGPT says of an argmax, that it was drawn from a softmax, and what is so."""
CONTEXT = ("list(prompt_tokens) + generated + draft_tokens[:i]", "list(prompt_tokens) + generated")
"""Where a row of p is asked for after the drafts that were accepted twice over, and where it belongs."""


def litgpt(scenario: EngineScenario, *, mended: tuple[str, str] | Mend | None = None, **options: Any) -> Any:
    """``generate`` of LitGPT with a draft model, gamma 1; its networks remember the tokens of the positions fed."""
    names = ("multinomial_num_samples_1", "sample_top_p", "sample", "next_token")
    own = functions_of("litgpt", "litgpt/generate/base.py", *names, torch=torch)
    given = {name: getattr(own, name) for name in ("multinomial_num_samples_1", "sample_top_p", "next_token")}
    functions = torch.nn.functional
    decode = functions_of(
        "litgpt", LITGPT, "sample", "speculative_decoding", "generate", mended=mended, torch=torch, F=functions, **given
    ).generate

    class Network:
        max_seq_length = MOST_POSITIONS

        def __init__(self, tables: Tables) -> None:
            self.answer = Positions(tables, self.max_seq_length)

        def modules(self) -> list[Any]:
            return []

        def __call__(self, idx: Any, input_pos: Any, **_: Any) -> Any:
            return self.answer(idx, input_pos)

    def speculative() -> Any:
        nets = Network(scenario.draft), Network(scenario.target)
        prompt = torch.tensor(scenario.prompt)
        length = len(scenario.prompt) + scenario.horizon
        made, _ = decode(*nets, prompt, length, speculative_k=1, include_prompt=False, **options)
        return made.tolist()

    return speculative


def litgpt_greedy(scenario: EngineScenario, more: tuple[tuple[str, str], ...] = ()) -> Any:
    """LitGPT at ``temperature=0`` with its first token and ``more`` mended, beside its own decoding without a draft."""
    functions = functions_of("litgpt", "litgpt/generate/base.py", "sample", torch=torch)

    def plain() -> list[int]:
        text = list(scenario.prompt)
        for _ in range(scenario.horizon):
            text.append(int(functions.sample(logits_of(scenario.target, [text]), temperature=0.0)))
        return text[len(scenario.prompt) :]

    return Made(litgpt(scenario, mended=replaced_each(FIRST_TOKEN, *more), temperature=0.0), plain)


def llama_ssp(scenario: EngineScenario) -> Any:
    """``ssp`` of llama-ssp, gamma 1."""
    path, names = "lssp/ssp.py", ("_draft_sample_k", "_target_sample_from_distribution", "_ssp_iteration", "ssp")
    silent = dict(debug=lambda said: None, stream_token_if_required=lambda *_, **__: None)
    words = SimpleNamespace(decode=lambda *_, **__: "")
    parts = ("get_temperature_distribution", "sample_fn")
    own = functions_of("llama-ssp", "lssp/base.py", *parts, torch=torch, TEMPERATURE=1.0)
    given = {name: getattr(own, name) for name in parts}
    decode = functions_of("llama-ssp", path, *names, torch=torch, tokenizer=words, **silent, **given).ssp

    def speculative() -> Any:
        prompt = torch.tensor([scenario.prompt])
        made = decode(Uncached(scenario.target), Uncached(scenario.draft), scenario.horizon, prompt, K=1)
        return made[0, len(scenario.prompt) :][: scenario.horizon].tolist()

    return speculative


def self_speculative(scenario: EngineScenario, **options: Any) -> Any:
    """``self_speculative_sample`` of self-speculative decoding; while it drafts, its network answers with the draft."""

    class Network:
        device, config = torch.device("cpu"), SimpleNamespace(vocab_size=scenario.vocabulary)

        def __init__(self) -> None:
            self.whole, self.part, self.drafting = Cached(scenario.target), Cached(scenario.draft), False

        @contextmanager
        def self_draft(self) -> Iterator[None]:
            self.drafting = True
            yield
            self.drafting = False

        def __call__(self, **fed: Any) -> Any:
            answer = (self.part if self.drafting else self.whole)(**fed)
            return dict(logits=answer.logits.float(), past_key_values=answer.past_key_values)

    path, names = "decoding.py", ("sample", "max_fn", "self_speculative_sample")
    unfiltered = dict(top_k_top_p_filtering=lambda logits, **_: logits)
    decode = functions_of("self-speculative-decoding", path, *names, torch=torch, **unfiltered).self_speculative_sample
    given = dict(max_step_draft=2, do_sample=True, top_k=0, top_p=1.0, temperature=1.0, **options)

    def speculative() -> Any:
        made = decode(Network(), None, torch.tensor([scenario.prompt]), scenario.horizon, **given)
        return made["generate_ids"][0].tolist()

    return speculative


def levvius(scenario: EngineScenario, *, mended: tuple[str, str] | None = None) -> Any:
    """``speculative_sample`` of adaptive-speculative-decoding, gamma 2."""
    path, names = "sp_samp/sampling.py", ("SamplingStats", "_weighted_choice", "speculative_sample")
    given = dict(random=random, dataclass=dataclass)
    decode = functions_of("adaptive-speculative-decoding", path, *names, mended=mended, **given).speculative_sample

    def network(tables: Tables) -> Any:
        return SimpleNamespace(vocab_size=scenario.vocabulary, next_token_probs=lambda text: list(tables(tuple(text))))

    def speculative() -> Any:
        nets = network(scenario.target), network(scenario.draft)
        return decode(*nets, scenario.prompt, scenario.horizon, 2, rng=random.Random())

    return speculative


def levvius_chain() -> Any:
    """``verify_draft_chain`` of adaptive-speculative-decoding at T = 1."""
    path = "jointadaspec/core/verification.py"
    names = ("_sample_from", "_normalise_probs", "fuzzy_verification", "verify_draft_chain")
    verify_chain = functions_of("adaptive-speculative-decoding", path, *names, torch=torch).verify_draft_chain
    generator = torch.Generator()

    def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
        rows = [torch.tensor(np.asarray(row)) for row in p], [torch.tensor(np.asarray(row)) for row in q]
        accepted, last = verify_chain(*rows, list(draft_tokens), 1.0, generator)
        return [*draft_tokens[:accepted], last]

    return verify


def thermo() -> Any:
    """``accept_correct_step`` of Thermo-Speculative-Decoding, draft by draft; its proposer declares q as it is."""
    path, names = "src/tsd/verifier/accept_correct.py", ("_normalise_log_probs", "accept_correct_step")
    given = dict(np=np, logq_full=lambda logq: logq)
    step = functions_of("Thermo-Speculative-Decoding", path, *names, **given).accept_correct_step
    rng = np.random.default_rng()

    def verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
        new: list[int] = []
        with np.errstate(divide="ignore"):
            for target, draft, token in zip(np.log(p), np.log(q), draft_tokens, strict=False):
                emitted, accepted = step(target, draft, token, float(draft[token]), rng)
                new.append(emitted)
                if not accepted:
                    return new
        return [*new, int(rng.choice(len(p[-1]), p=p[-1]))]

    return verify


ROWS = (
    Shipped(
        "LitGPT, `generate` with a draft model",
        lambda: litgpt,
        litgpt,
        expected=frozenset({LAW, STOPS, BOUNDARY}),
        engine=True,
    ),
    Shipped("LitGPT with its first token", lambda: partial(litgpt, mended=FIRST_TOKEN), litgpt, engine=True),
    Shipped(
        "LitGPT with its first token, `temperature=0`",
        lambda: litgpt_greedy,
        litgpt_greedy,
        expected=frozenset({LAW, BOUNDARY}),
        engine=True,
    ),
    Shipped(
        "LitGPT with its first token and its argmaxes as point masses, `temperature=0`",
        lambda: partial(litgpt_greedy, more=(POINT_MASS,)),
        litgpt_greedy,
        engine=True,
    ),
    Shipped("llama-ssp, `ssp`", lambda: llama_ssp, llama_ssp, engine=True),
    Shipped(
        "self-speculative decoding, `self_speculative_sample`, `do_sample=True`",
        lambda: partial(self_speculative, do_sample_draft=False),
        self_speculative,
        expected=frozenset({LAW}),
        engine=True,
    ),
    Shipped(
        "self-speculative decoding with `do_sample_draft=True`",
        lambda: partial(self_speculative, do_sample_draft=True),
        self_speculative,
        engine=True,
    ),
    Shipped(
        "self-speculative decoding with `do_sample_draft=True`, `th_random_draft=0.5`",
        lambda: partial(self_speculative, do_sample_draft=True, th_random_draft=0.5, th_stop_draft=0.6),
        self_speculative,
        engine=True,
        unanswered=True,
    ),
    Shipped(
        "levvius, `speculative_sample`",
        lambda: levvius,
        levvius,
        expected=frozenset({LAW, BOUNDARY}),
        engine=True,
    ),
    Shipped(
        "levvius, `speculative_sample` with each draft once in the context",
        lambda: partial(levvius, mended=CONTEXT),
        levvius,
        expected=frozenset({BOUNDARY}),
        engine=True,
    ),
    Shipped("levvius, `verify_draft_chain` at T = 1", levvius_chain, levvius_chain, dict(form="row")),
    Shipped("Thermo-Speculative-Decoding, `accept_correct_step`", thermo, thermo, dict(form="row")),
)
