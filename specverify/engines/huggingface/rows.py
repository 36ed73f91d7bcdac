"""The table of settings: every way in which transformers' ``generate`` speculates, in every situation it documents.

A row is one setting. What it must do is never written down here: it is what the same call does without speculation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from specverify.engines.huggingface import situations, special
from specverify.engines.huggingface.ensemble import ensemble_engine, ensemble_law
from specverify.engines.huggingface.generation import Build, assisted_engine, early_exit_engine, prompt_lookup_engine
from specverify.engines.huggingface.objects import objects_call
from specverify.engines.huggingface.programs import REPLAYS, opened, plain_law
from specverify.engines.huggingface.row import BASE, OBJECTS, SMALL, TableRow
from specverify.engines.huggingface.rows_of_models import OF_MODELS
from specverify.engines.huggingface.rows_of_options import ARGUMENTS, OPTIONS
from specverify.engines.huggingface.situations import with_arguments
from specverify.engines.huggingface.smaller import ProgramSource
from specverify.engines.huggingface.tiny_models import EngineSetting
from specverify.engines.huggingface.watch import watched_call
from specverify.reference import Claim
from specverify.subjects.subject import EVERYTHING, EngineProgram, Subject

SAMPLING: dict[str, dict[str, Any]] = {
    "plain": {},
    "greedy": {"sample": False},
    "temperature": {"temperature": 0.7},
    "top-k": {"top_k": 2},
    "top-p": {"top_p": 0.8, "temperature": 1.3},
    "min-p": {"options": (("min_p", 0.2),), "temperature": 1.5},
    "typical-p": {"options": (("typical_p", 0.8),), "temperature": 1.5},
    "repetition-penalty": {"options": (("repetition_penalty", 1.7),)},
    "no-repeat-ngram": {"options": (("no_repeat_ngram_size", 2),), "temperature": 1.5},
    "bad-words": {"options": (("bad_words_ids", ((3,), (1, 2))),), "temperature": 1.5},
    "forced-end": {"options": (("forced_eos_token_id", 2),)},
    "suppressed": {"options": (("suppress_tokens", (1,)), ("begin_suppress_tokens", (2,))), "temperature": 1.5},
    "sequence-bias": {"options": (("sequence_bias", (((2,), -1.5), ((0, 1), 2.0))),), "temperature": 1.5},
    "guidance": {"options": (("guidance_scale", 1.5),), "temperature": 2.0},
    "min-new-tokens": {"eos": (0,), "options": (("min_new_tokens", 2),), "temperature": 1.5},
    "several-ends": {"eos": (0, 3), "temperature": 1.5},
    "one-token": {"horizon": 1},
    "two-tokens": {"horizon": 2},
}
"""What differs from ``BASE``; examined with a draft model and with prompt lookup."""

SITUATIONS: dict[str, tuple[Callable[[Build], Build], dict[str, Any]]] = {
    "embeddings": (partial(with_arguments, arguments=situations.of_embeddings, prompt=True, echoed=False), {}),
    "padding": (partial(with_arguments, arguments=situations.with_padding, prompt=True), {}),
    "hole-in-mask": (partial(with_arguments, arguments=situations.with_a_hole, prompt=True), {}),
    "cache-passed-in": (partial(with_arguments, arguments=situations.with_filled_cache), {}),
    "stop-strings": (
        partial(with_arguments, arguments=situations.with_a_tokenizer),
        {"options": (("stop_strings", ("bc", "dd")),), "temperature": 2.0},
    ),
    "counting-processor": (partial(with_arguments, arguments=situations.with_a_counting_processor), {}),
    "last-token-criterion": (
        partial(with_arguments, arguments=situations.with_a_last_token_criterion),
        {},
    ),
    "after-a-broken-call": (situations.broken_off_before, {}),
    "after-a-call": (situations.used_before, {}),
}
"""Situations, each with what differs from ``BASE``; examined with every way to speculate that can be in them."""

BATCHES = "assisted generate is only supported for batch_size = 1"
STATIC = "assisted generate is not supported with Static cache classes"
REFUSED: dict[str, tuple[Callable[[Build], Build], dict[str, Any], str]] = {
    "two-prompts": (partial(with_arguments, arguments=situations.two_prompts, prompt=True), {}, BATCHES),
    "two-answers": (lambda build: build, {"options": (("num_return_sequences", 2),)}, "num_return_sequences"),
    "static-cache": (lambda build: build, {"options": (("cache_implementation", "static"),)}, STATIC),
    "no-cache": (lambda build: build, {"options": (("use_cache", False),)}, "use_cache"),
}
"""Settings that the library refuses, and what it says."""

SCHEDULE = "the assistant's generation_config.num_assistant_tokens"
_LONGER: dict[str, Any] = {"horizon": 4, "vocabulary": 3}
DRAFTING: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "heuristic": ({"assistant": (("num_assistant_tokens_schedule", "heuristic"),), **_LONGER}, (SCHEDULE,)),
    "heuristic-transient": (
        {"assistant": (("num_assistant_tokens_schedule", "heuristic_transient"),), **_LONGER},
        (),
    ),
    "confidence": ({"assistant": (("assistant_confidence_threshold", 0.4),), "gamma": 3, **_LONGER}, ()),
    "own-temperature": ({"assistant": (("do_sample", True), ("temperature", 2.0), ("top_k", 2))}, ()),
}
"""Schedules and an assistant with a generation config of its own; and what is documented to change."""

OTHER_ARCHITECTURES = ("gpt2", "qwen2", "mistral", "gemma2", "gemma3", "t5", "bart", "lfm2")
"""Beside Llama. Mistral and Gemma have windows shorter than a run, T5 and BART an encoder, LFM2 layers with a state."""
STATEFUL = {
    "mamba2": "not supported with stateful models, such as Mamba2ForCausalLM",
    "falcon_h1": "not supported with stateful models, such as FalconH1ForCausalLM",
}
"""A state-space model and a hybrid, and what the library says to them."""

SPECIAL: dict[str, TableRow] = {
    "assisted/by-a-copy": TableRow(special.twin_engine, BASE),
    "mtp/one-layer": TableRow(special.mtp_engine(1), BASE, tells=OBJECTS),
    "mtp/two-layers": TableRow(special.mtp_engine(2), BASE._replace(vocabulary=3), tells=OBJECTS),
    "mtp/greedy": TableRow(special.mtp_engine(2), BASE._replace(sample=False), tells=OBJECTS),
    "mtp/several-ends": TableRow(special.mtp_engine(1), BASE._replace(eos=(0, 3), temperature=1.5), tells=OBJECTS),
    "dflash/plain": TableRow(special.dflash_engine, BASE),
    "dflash/top-k": TableRow(special.dflash_engine, BASE._replace(top_k=2)),
    "dflash/greedy": TableRow(special.dflash_engine, BASE._replace(sample=False)),
    "gemma4-assistant/plain": TableRow(special.gemma4_engine, BASE),
    "gemma4-assistant/temperature": TableRow(special.gemma4_engine, BASE._replace(temperature=0.7)),
    "gemma4-assistant/greedy": TableRow(special.gemma4_engine, BASE._replace(sample=False)),
    "universal/in-order": TableRow(
        special.universal_engine(special.IN_ORDER), BASE._replace(vocabulary=5), tells=OBJECTS
    ),
    "universal/reversed": TableRow(
        special.universal_engine(special.REVERSED), BASE._replace(vocabulary=5), tells=OBJECTS
    ),
    "universal/as-it-comes": TableRow(special.universal_engine(None), BASE._replace(vocabulary=5), tells=OBJECTS),
    "universal/greedy": TableRow(
        special.universal_engine(special.IN_ORDER), BASE._replace(vocabulary=5, sample=False), tells=OBJECTS
    ),
    "table/assisted": TableRow(special.table_engine, BASE),
    "table/prompt-lookup": TableRow(special.table_lookup_engine, BASE),
    "ensemble/plain": TableRow(ensemble_engine, BASE, declared=ensemble_law),
    "ensemble/greedy": TableRow(ensemble_engine, BASE._replace(sample=False), declared=ensemble_law),
}
"""Drafters that need a model of their own kind; tables, whose cache audits itself; the documented lossy mode."""


WAYS: dict[str, Build] = {
    "assisted": assisted_engine,
    "prompt-lookup": prompt_lookup_engine,
    "early-exit": early_exit_engine,
}
EARLY = ("plain", "greedy", "top-k", "several-ends")
"""What of ``SAMPLING`` is examined with early exit, which is assisted generation but for its drafts."""


def rows() -> dict[str, TableRow]:
    """Return name -> row."""
    listed = {f"{way}/{name}": row for way in WAYS for name, row in _rows_of(way).items()} | SPECIAL | OF_MODELS
    return {name: row._replace(setting=row.setting._replace(name=name)) for name, row in listed.items()}


def _rows_of(way: str) -> dict[str, TableRow]:
    build, draft_model = WAYS[way], way == "assisted"
    sampling = {name: SAMPLING[name] for name in (EARLY if way == "early-exit" else SAMPLING)}
    result = {
        name: TableRow(build, BASE._replace(**more), tells=OBJECTS if name == "guidance" else EVERYTHING)
        for name, more in sampling.items()
    }
    result |= {
        name: TableRow(situation(build), BASE._replace(**more), tells=OBJECTS if name == "embeddings" else EVERYTHING)
        for name, (situation, more) in SITUATIONS.items()
    }
    if way != "early-exit":
        result |= {name: TableRow(build, SMALL._replace(architecture=name)) for name in OTHER_ARCHITECTURES}
        result |= _of_options(build) | _of_arguments(build)
        result |= {
            name: TableRow(build, BASE._replace(architecture=name), said, tells=OBJECTS)
            for name, said in STATEFUL.items()
        }
    if draft_model:
        result |= {
            name: TableRow(build, BASE._replace(**more), documented=documented)
            for name, (more, documented) in DRAFTING.items()
        }
        result |= {
            name: TableRow(situation(build), BASE._replace(**more), said, tells=OBJECTS)
            for name, (situation, more, said) in REFUSED.items()
        }
    return result


def _of_options(build: Build) -> dict[str, TableRow]:
    return {name: TableRow(build, SMALL._replace(**more)) for name, more in OPTIONS.items()}


def _of_arguments(build: Build) -> dict[str, TableRow]:
    return {
        name: TableRow(situation(build), SMALL._replace(**more), said, tells=tells)
        for name, (situation, more, said, tells) in ARGUMENTS.items()
    }


def row_subject(name: str, row: TableRow) -> Subject:
    """Return one row as a subject that claims to be lossless, or to have its declared law."""
    build = partial(row.build, row.setting)
    promised = partial(plain_law, build)
    return Subject(
        name=f"hf:all/{name}",
        summary=f"generate() of transformers {version('transformers')}, unmodified: {name}",
        claims=frozenset() if row.declared else frozenset(Claim),
        programs=(
            EngineProgram(
                name=name,
                open=partial(opened, build, refusal=row.refusal),
                law=partial(row.declared, row.setting) if row.declared else promised,
                plain=partial(opened, build, speculative=False, refusal=row.refusal),
                replays=REPLAYS,
                target=promised if row.declared else None,
                watch=partial(objects_call if row.tells == OBJECTS else watched_call, build),
                tells=row.tells,
                documented=row.documented,
                source=ProgramSource(build, row.setting, partial(_row_program, name, row)),
            ),
        ),
        rational=False,
        paper="Hugging Face transformers, src/transformers/generation",
    )


def _row_program(name: str, row: TableRow, setting: EngineSetting) -> EngineProgram:
    return row_subject(name, row._replace(setting=setting)).programs[0]
