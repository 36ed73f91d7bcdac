"""The table of settings: every kind of speculation of transformers' ``generate``, in every documented situation.

A row is one setting of one kind of speculation. The table does not contain expected laws: the expected law of a row is
that of the same call without speculation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

from transformers import GenerationMixin

from specverify.engines.huggingface import model_pairs as pairs
from specverify.engines.huggingface import situations, special
from specverify.engines.huggingface.ensemble import ensemble_engine, ensemble_law
from specverify.engines.huggingface.generation import Build, assisted_engine, early_exit_engine, prompt_lookup_engine
from specverify.engines.huggingface.modalities import llava_engine, qwen2_vl_engine, whisper_engine
from specverify.engines.huggingface.model_pairs import universal_pair_engine, unlike_engine
from specverify.engines.huggingface.objects import objects_call
from specverify.engines.huggingface.programs import REPLAYS, opened, plain_law
from specverify.engines.huggingface.situations import broken_off_before, used_before, with_arguments
from specverify.engines.huggingface.smaller import ProgramSource
from specverify.engines.huggingface.tiny_models import EngineSetting
from specverify.engines.huggingface.watch import watched_call
from specverify.reference import Claim, Tokens
from specverify.subjects.subject import EVERYTHING, EngineProgram, Subject

OBJECTS = frozenset({"changed"})
LawOf = Callable[[EngineSetting], Mapping[Tokens, float]]


class TableRow(NamedTuple):
    """One setting of one kind of speculation, and the documented exceptions for it.

    The exceptions are objects that a call may change, an error by which the library rejects the setting, and the law of
    a lossy mode. ``build(setting)`` returns the call of ``generate`` at this setting.
    """

    build: Build
    setting: EngineSetting
    refusal: str = ""
    """Part of the library's error message if it rejects the setting, else ""; any other error is a fault."""
    documented: tuple[str, ...] = ()
    """Names of objects that a call may change according to the documentation of the library."""
    declared: LawOf | None = None
    """The declared law of a documented lossy mode; None for a lossless one."""
    tells: frozenset[str] = EVERYTHING
    """What is observed in a run. Only ``OBJECTS`` if the prompt is not token ids, if the target also runs outside the
    decoding loop, or if float64 is not possible."""


BASE = EngineSetting("", "llama", horizon=3, vocabulary=4, prompt=(0, 1, 2, 0, 1))
SMALL = BASE._replace(vocabulary=3)
"""A smaller vocabulary, which needs a third of the runs."""


_HEARD = SMALL._replace(prompt=(0,))
_GREEDY = _HEARD._replace(sample=False)
_SEEN = SMALL._replace(
    vocabulary=4, prompt=(3, 3, 3, 3, 0, 1, 2, 0, 1), horizon=2, options=(("suppress_tokens", (3,)),)
)
"""A prompt that begins with an image, whose token is never drawn."""
_AGAIN = SMALL._replace(vocabulary=4, prompt=(0, 1, 3, 3, 3, 3, 0, 1), horizon=2)
"""A prompt that repeats after the image the tokens before it; the image token is not forbidden."""
_TWO = SMALL._replace(vocabulary=5, horizon=2)
_OWN = (("repetition_penalty", 1.7), ("suppress_tokens", (1,)))
_LONG = _TWO._replace(sample=False, horizon=8, assistant=(("assistant_lookbehind", 1), ("target_lookbehind", 1)))
DECODER = "WhisperForCausalLM"

OF_MODELS: dict[str, TableRow] = {
    "assisted/smaller": TableRow(unlike_engine("smaller"), SMALL),
    "assisted/by-gpt2": TableRow(unlike_engine("gpt2"), SMALL),
    "assisted/own-processors": TableRow(unlike_engine("llama"), SMALL._replace(assistant=_OWN)),
    "assisted/by-t5": TableRow(unlike_engine("t5"), SMALL, tells=OBJECTS),
    "assisted/t5-by-bart": TableRow(unlike_engine("bart"), SMALL._replace(architecture="t5"), tells=OBJECTS),
    "assisted/t5-by-llama": TableRow(
        unlike_engine("llama"), SMALL._replace(architecture="t5"), "not used by the model", tells=OBJECTS
    ),
    "whisper/assisted": TableRow(whisper_engine(), _HEARD, tells=OBJECTS),
    "whisper/greedy": TableRow(whisper_engine(), _GREEDY, tells=OBJECTS),
    "whisper/by-a-decoder": TableRow(whisper_engine(DECODER), _HEARD, tells=OBJECTS),
    "whisper/by-a-decoder-greedy": TableRow(whisper_engine(DECODER), _GREEDY, tells=OBJECTS),
    "whisper/prompt-lookup": TableRow(whisper_engine(None), _HEARD, tells=OBJECTS),
    "whisper/suppressed-at-first": TableRow(
        whisper_engine(DECODER), _GREEDY._replace(options=(("begin_suppress_tokens", (1,)),)), tells=OBJECTS
    ),
    "llava/assisted": TableRow(llava_engine("llava"), _SEEN, tells=OBJECTS),
    "llava/by-llama": TableRow(llava_engine("llama"), _SEEN, tells=OBJECTS),
    "llava/prompt-lookup": TableRow(llava_engine(None), _SEEN, tells=OBJECTS),
    "llava/image-token-drafted": TableRow(llava_engine(None), _AGAIN, tells=OBJECTS),
    "qwen2-vl/assisted": TableRow(qwen2_vl_engine("qwen2-vl"), _SEEN, tells=OBJECTS),
    "qwen2-vl/prompt-lookup": TableRow(qwen2_vl_engine(None), _SEEN, tells=OBJECTS),
    "qwen2-vl/image-token-drafted": TableRow(qwen2_vl_engine("qwen2-vl"), _AGAIN, tells=OBJECTS),
    "universal/look-behind": TableRow(universal_pair_engine(), _LONG, tells=OBJECTS),
    "universal/t5": TableRow(universal_pair_engine(architecture="t5"), _TWO, tells=OBJECTS),
    "universal/after-a-call": TableRow(universal_pair_engine(before=pairs.used_once), _TWO, tells=OBJECTS),
    "universal/after-a-broken-call": TableRow(universal_pair_engine(before=pairs.broken_once), _TWO, tells=OBJECTS),
    "mtp/after-a-call": TableRow(used_before(special.mtp_engine(1)), SMALL._replace(horizon=2), tells=OBJECTS),
    "dflash/after-a-call": TableRow(used_before(special.dflash_engine), SMALL),
    "dflash/after-a-broken-call": TableRow(broken_off_before(special.dflash_engine), SMALL),
    "gemma4-assistant/after-a-call": TableRow(used_before(special.gemma4_engine), SMALL._replace(sample=False)),
}
"""Pairs of models; the prompt of an audio model is a sound, that of an image model an image and text."""


_HOT = {"temperature": 1.5}

OPTIONS: dict[str, dict[str, Any]] = {
    "renormalized": {"options": (("renormalize_logits", True),), "top_k": 2},
    "epsilon-cutoff": {"options": (("epsilon_cutoff", 0.1),), **_HOT},
    "eta-cutoff": {"options": (("eta_cutoff", 0.1),), **_HOT},
    "top-h": {"options": (("top_h", 0.5),), **_HOT},
    "length-decay": {"options": (("exponential_decay_length_penalty", (1, 1.5)),), "eos": (0,), **_HOT},
    "encoder-repetition": {"options": (("encoder_repetition_penalty", 1.5),), **_HOT},
    "encoder-ngram": {"options": (("encoder_no_repeat_ngram_size", 2),), **_HOT},
    "min-length": {"options": (("min_length", 7),), "eos": (0,), **_HOT},
    "invalid-values": {"options": (("remove_invalid_values", True),)},
    "much-time": {"options": (("max_time", 1000.0),)},
    "prefill-chunks": {"options": (("prefill_chunk_size", 2),)},
    "dynamic-cache": {"options": (("cache_implementation", "dynamic"),)},
    "hybrid-cache": {"options": (("cache_implementation", "hybrid"),), "architecture": "gemma2"},
    "one-draft": {"gamma": 1},
    "twenty-drafts": {"gamma": 20},
    "beams": {"options": (("num_beams", 2),), "sample": False},
}
"""Name of a setting -> the fields in which it differs from ``SMALL``."""

ARGUMENTS: dict[str, tuple[Callable[[Build], Build], dict[str, Any], str, frozenset[str]]] = {
    "token-types": (
        partial(with_arguments, arguments=situations.of_two_types, prompt=True),
        {"architecture": "gpt2"},
        "",
        EVERYTHING,
    ),
    "positions-passed": (
        partial(with_arguments, arguments=situations.at_other_positions, prompt=True),
        {},
        "",
        EVERYTHING,
    ),
    "last-position": (situations.at_the_last_position, {"architecture": "gpt2", "gamma": 4}, "", EVERYTHING),
    "allowed-by-prefix": (partial(with_arguments, arguments=situations.with_allowed_tokens), _HOT, "", EVERYTHING),
    "negative-prompt": (
        partial(with_arguments, arguments=situations.with_a_negative_prompt),
        {"options": (("guidance_scale", 1.5),), "temperature": 2.0},
        "",
        OBJECTS,
    ),
    "ends-and-strings": (
        partial(with_arguments, arguments=situations.with_a_tokenizer),
        {"options": (("stop_strings", ("bc",)),), "eos": (0,), "temperature": 2.0},
        "",
        EVERYTHING,
    ),
    "fp8-cache": (situations.with_a_cache_of_bytes, {}, "", OBJECTS),
    "streamer": (situations.streamed, {}, "", OBJECTS),
    "healed-prompt": (situations.with_healed_tokens, {"vocabulary": 4}, "", OBJECTS),
    "own-loop": (
        partial(with_arguments, arguments=lambda engine: {"custom_generate": GenerationMixin._sample}),  # noqa: SLF001
        {},
        "",
        OBJECTS,
    ),
    "eager-attention": (situations.with_eager_attention, {}, "", OBJECTS),
    "float16": (partial(situations.in_low_precision, dtype="float16"), {}, "", OBJECTS),
    "bfloat16": (partial(situations.in_low_precision, dtype="bfloat16"), {}, "", OBJECTS),
}
"""Name of a setting with special arguments, models or caches -> (function that changes the call, differences from
``SMALL``, part of the error message with which the library rejects it, what is observed)."""


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
"""Name of a setting -> the fields in which it differs from ``BASE``. They are examined with a draft model and with
prompt lookup."""

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
"""Name -> (situation, fields that differ from ``BASE``); examined with every kind of speculation that supports them."""

BATCHES = "assisted generate is only supported for batch_size = 1"
STATIC = "assisted generate is not supported with Static cache classes"
REFUSED: dict[str, tuple[Callable[[Build], Build], dict[str, Any], str]] = {
    "two-prompts": (partial(with_arguments, arguments=situations.two_prompts, prompt=True), {}, BATCHES),
    "two-answers": (lambda build: build, {"options": (("num_return_sequences", 2),)}, "num_return_sequences"),
    "static-cache": (lambda build: build, {"options": (("cache_implementation", "static"),)}, STATIC),
    "no-cache": (lambda build: build, {"options": (("use_cache", False),)}, "use_cache"),
}
"""Settings that the library rejects, each with a part of its error message."""

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
"""Name of a setting -> how it differs from ``SMALL``, and the objects that such a call may change by the library's
documentation. The settings have draft schedules, or an assistant with its own generation config."""

OTHER_ARCHITECTURES = ("gpt2", "qwen2", "mistral", "gemma2", "gemma3", "t5", "bart", "lfm2")
"""Architectures other than Llama. Mistral and Gemma have windows shorter than a text, T5 and BART an encoder, LFM2
layers with a state."""
STATEFUL = {
    "mamba2": "not supported with stateful models, such as Mamba2ForCausalLM",
    "falcon_h1": "not supported with stateful models, such as FalconH1ForCausalLM",
}
"""Architecture with a recurrent state -> part of the error message with which the library rejects it."""

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
"""Name -> row: drafters that need a special model, table models (whose cache checks its contents), and the lossy mode
that the library documents (``ensemble``)."""


WAYS: dict[str, Build] = {
    "assisted": assisted_engine,
    "prompt-lookup": prompt_lookup_engine,
    "early-exit": early_exit_engine,
}
EARLY = ("plain", "greedy", "top-k", "several-ends")
"""The settings of ``SAMPLING`` that are examined with early exit, which differs from assisted generation only in
drafting."""


def rows() -> dict[str, TableRow]:
    """Return name -> setting of ``generate`` to examine; a name is ``SPECULATION/SETTING``."""
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
    """Return one row of the table as the subject ``name``, which claims to be lossless or to have its declared law."""
    build = partial(row.build, row.setting)
    promised = partial(plain_law, build)
    return Subject(
        name=f"hf:all/{name}",
        summary=f"generate() of transformers {version('transformers')}, unmodified: {name}",
        claims=frozenset() if row.declared else frozenset(Claim),
        rational=False,
        paper="Hugging Face transformers, src/transformers/generation",
        situations=(
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
    )


def _row_program(name: str, row: TableRow, setting: EngineSetting) -> EngineProgram:
    return row_subject(name, row._replace(setting=setting)).programs[0]
