"""``generate`` without speculation, under every option that changes its law, compared with the documented law.

The law of a row is computed from the model's logits, without a cache and without ``generate``, by steps that follow the
documentation of the options (``stated_options``). So an error that exists without speculation is found separately.

The parameter ``setting`` of the functions here is the configuration of the call: model, sampling parameters, stopping
and prompt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple

import torch

from specverify.engines.huggingface import situations
from specverify.engines.huggingface import stated_options as stated
from specverify.engines.huggingface.generation import Build, GenerateCall, call_of, one_thread
from specverify.engines.huggingface.objects import objects_call
from specverify.engines.huggingface.programs import REPLAYS, opened
from specverify.engines.huggingface.rows import BASE, OBJECTS
from specverify.engines.huggingface.situations import with_arguments
from specverify.engines.huggingface.stated_options import Step
from specverify.engines.huggingface.tiny_models import TARGET_SEED, EngineSetting, build_model, build_target
from specverify.laws.law import target_law
from specverify.reference import Claim, Pmf, Task, Tokens
from specverify.reference.warpers import softmax
from specverify.subjects.subject import EngineProgram, Subject

HOT = 1.5
SHORT = BASE._replace(horizon=2)
ENDING = BASE._replace(eos=(0,))


class AloneRow(NamedTuple):
    """One setting of ``generate`` without speculation, and the documented effect of its options on logits and stopping.

    ``situation`` maps a builder of the call to a builder of a changed call, for example one with padding before the
    prompt. By default the call is unchanged.
    """

    setting: EngineSetting
    steps: tuple[Step, ...] = ()
    """Changes of the logits, in the order of the library."""
    situation: Callable[[Build], Build] = lambda build: build
    hidden: int = 0
    """Number of padding tokens before the prompt."""
    stops: tuple[Tokens, ...] = ()
    """Stop strings, each as its tokens."""


def hot(setting: EngineSetting, *options: tuple[str, Any]) -> EngineSetting:
    """Return ``setting`` with a high temperature, so that no token is nearly certain, and with further ``options``."""
    return setting._replace(temperature=HOT, options=options)


def next_logits(setting: EngineSetting, tokens: Tokens) -> Any:
    """Return the float64 logits ``[vocabulary]`` of the token after ``tokens``, by one pass without a cache.

    The model is the target of ``setting``.
    """
    with torch.no_grad(), one_thread():
        return (
            _model(setting.architecture, setting.vocabulary)(torch.tensor([tokens]), use_cache=False)
            .logits[0, -1]
            .double()
            .numpy()
        )


@lru_cache(maxsize=4)
def _model(architecture: str, vocabulary: int) -> Any:
    return build_model(architecture, vocabulary, TARGET_SEED)


_WARM = stated.temperature(HOT)
_NEGATIVE = stated.guided(1.5, partial(next_logits, BASE), (2, 2))
_UNAIDED = stated.guided(1.5, partial(next_logits, BASE))
_PADDED = BASE._replace(prompt=(3, 1, 2, 0, 1), temperature=HOT)
"""A prompt padded with a token that does not occur in it."""
_MASKED = partial(with_arguments, arguments=situations.with_padding, prompt=True)
_EMBEDDED = partial(with_arguments, arguments=situations.of_embeddings, prompt=True, echoed=False)
_PADDED_EMBEDDED = partial(with_arguments, arguments=situations.of_padded_embeddings, prompt=True, echoed=False)
_LETTERS = partial(with_arguments, arguments=situations.with_a_tokenizer)

OPTIONS: dict[str, AloneRow] = {
    "plain": AloneRow(BASE),
    "greedy": AloneRow(BASE._replace(sample=False), (stated.greedy(),)),
    "temperature": AloneRow(SHORT._replace(temperature=0.7), (stated.temperature(0.7),)),
    "top-k": AloneRow(SHORT._replace(top_k=2), (stated.most_likely(2),)),
    "top-p": AloneRow(SHORT._replace(top_p=0.8, temperature=HOT), (_WARM, stated.nucleus(0.8))),
    "top-k, top-p": AloneRow(
        SHORT._replace(top_k=3, top_p=0.8, temperature=HOT), (_WARM, stated.most_likely(3), stated.nucleus(0.8))
    ),
    "min-p": AloneRow(hot(SHORT, ("min_p", 0.2)), (_WARM, stated.near_the_top(0.2))),
    "typical-p": AloneRow(hot(SHORT, ("typical_p", 0.8)), (_WARM, stated.typical(0.8))),
    "epsilon-cutoff": AloneRow(hot(SHORT, ("epsilon_cutoff", 0.1)), (_WARM, stated.above(0.1))),
    "eta-cutoff": AloneRow(hot(SHORT, ("eta_cutoff", 0.3)), (_WARM, stated.above_either(0.3))),
    "top-h": AloneRow(hot(SHORT, ("top_h", 0.5)), (_WARM, stated.within_entropy(0.5))),
    "renormalized": AloneRow(hot(SHORT, ("renormalize_logits", True)), (_WARM,)),
    "repetition-penalty": AloneRow(hot(BASE, ("repetition_penalty", 1.7)), (stated.repeated(1.7), _WARM)),
    "encoder-repetition": AloneRow(hot(BASE, ("encoder_repetition_penalty", 1.5)), (stated.of_the_prompt(1.5), _WARM)),
    "no-repeat-ngram": AloneRow(hot(BASE, ("no_repeat_ngram_size", 2)), (stated.no_repeated_ngram(2), _WARM)),
    "encoder-ngram": AloneRow(
        hot(BASE, ("encoder_no_repeat_ngram_size", 2)), (stated.no_repeated_ngram(2, of_prompt=True), _WARM)
    ),
    "bad-words": AloneRow(hot(BASE, ("bad_words_ids", ((3,), (1, 2)))), (stated.forbidden((3,), (1, 2)), _WARM)),
    "bad-words, an end": AloneRow(hot(ENDING, ("bad_words_ids", ((3,), (0,)))), (stated.forbidden((3,), (0,)), _WARM)),
    "sequence-bias": AloneRow(
        hot(BASE, ("sequence_bias", (((2,), -1.5), ((0, 1), 2.0)))), (stated.biased(((2,), -1.5), ((0, 1), 2.0)), _WARM)
    ),
    "suppressed": AloneRow(
        hot(SHORT, ("suppress_tokens", (1,)), ("begin_suppress_tokens", (2,))),
        (stated.forbidden((1,)), stated.at_first(stated.forbidden((2,))), _WARM),
    ),
    "forced-end": AloneRow(BASE._replace(options=(("forced_eos_token_id", 2),)), (stated.end_at(3, 2),)),
    "several-ends": AloneRow(hot(BASE._replace(eos=(0, 3))), (_WARM,)),
    "min-new-tokens": AloneRow(hot(ENDING, ("min_new_tokens", 2)), (stated.no_end_before((0,), new_tokens=2), _WARM)),
    "min-length": AloneRow(hot(ENDING, ("min_length", 7)), (stated.no_end_before((0,), length=7), _WARM)),
    "length-decay": AloneRow(
        hot(ENDING, ("exponential_decay_length_penalty", (1, 1.5))), (stated.sooner_ended(1, 1.5, 0), _WARM)
    ),
    "stop-strings": AloneRow(hot(BASE, ("stop_strings", ("bc", "dd"))), (_WARM,), _LETTERS, stops=((1, 2), (3, 3))),
    "guidance": AloneRow(hot(BASE, ("guidance_scale", 1.5)), (_UNAIDED, _WARM)),
    "guidance, no cache": AloneRow(hot(BASE, ("guidance_scale", 1.5), ("use_cache", False)), (_UNAIDED, _WARM)),
    "negative-prompt": AloneRow(
        hot(BASE, ("guidance_scale", 1.5)),
        (_NEGATIVE, _WARM),
        partial(with_arguments, arguments=situations.with_a_negative_prompt),
    ),
}
"""Name -> row of one option each."""

SITUATIONS: dict[str, AloneRow] = {
    "cache-passed-in": AloneRow(BASE, (), partial(with_arguments, arguments=situations.with_filled_cache)),
    "static-cache": AloneRow(SHORT._replace(options=(("cache_implementation", "static"),))),
    "no-cache": AloneRow(SHORT._replace(options=(("use_cache", False),))),
    "prefill-chunks": AloneRow(SHORT._replace(options=(("prefill_chunk_size", 2),))),
    "embeddings": AloneRow(BASE, (), _EMBEDDED),
    "embeddings, min-length": AloneRow(
        hot(ENDING, ("min_length", 7)), (stated.no_end_before((0,), length=7), _WARM), _EMBEDDED
    ),
    "embeddings, repetition-penalty": AloneRow(
        hot(BASE, ("repetition_penalty", 1.7)), (stated.of_new_tokens(stated.repeated(1.7)), _WARM), _EMBEDDED
    ),
    "embeddings, suppressed-at-first": AloneRow(
        hot(SHORT, ("begin_suppress_tokens", (2,))), (stated.at_first(stated.forbidden((2,))), _WARM), _EMBEDDED
    ),
    "embeddings, forced-end": AloneRow(
        BASE._replace(options=(("forced_eos_token_id", 2),)), (stated.end_at(3, 2),), _EMBEDDED
    ),
    "padded embeddings": AloneRow(_PADDED, (_WARM,), _PADDED_EMBEDDED, 1),
    "padded embeddings, repetition-penalty": AloneRow(
        hot(_PADDED, ("repetition_penalty", 1.7)),
        (stated.of_new_tokens(stated.repeated(1.7)), _WARM),
        _PADDED_EMBEDDED,
        1,
    ),
    "padding": AloneRow(_PADDED, (_WARM,), _MASKED, 1),
    "padding, repetition-penalty": AloneRow(
        hot(_PADDED, ("repetition_penalty", 1.7)), (stated.repeated(1.7), _WARM), _MASKED, 1
    ),
    "padding, encoder-repetition": AloneRow(
        hot(_PADDED, ("encoder_repetition_penalty", 1.5)), (stated.of_the_prompt(1.5), _WARM), _MASKED, 1
    ),
    "padding, no-repeat-unigram": AloneRow(
        hot(_PADDED._replace(vocabulary=5, horizon=1), ("no_repeat_ngram_size", 1)),
        (stated.no_repeated_ngram(1), _WARM),
        _MASKED,
        1,
    ),
    "padding, min-length": AloneRow(
        hot(_PADDED._replace(eos=(0,)), ("min_length", 6)), (stated.no_end_before((0,), length=6), _WARM), _MASKED, 1
    ),
    "padding, guidance": AloneRow(hot(_PADDED, ("guidance_scale", 1.5)), (_UNAIDED, _WARM), _MASKED, 1),
    **{name: AloneRow(SHORT._replace(architecture=name)) for name in ("gpt2", "qwen2", "mistral", "gemma2", "gemma3")},
    **{name: AloneRow(SHORT._replace(architecture=name)) for name in ("lfm2", "mamba2", "falcon_h1")},
}
"""Name -> row with a special cache, padding or model. The windows of Mistral and Gemma are shorter than a text."""


def rows_alone() -> dict[str, AloneRow]:
    """Return name -> setting of ``generate`` without speculation, for each of ``OPTIONS`` and ``SITUATIONS``."""
    return {name: row._replace(setting=row.setting._replace(name=name)) for name, row in (OPTIONS | SITUATIONS).items()}


def alone_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call of ``generate`` for ``setting`` by the target alone, without speculation."""
    return call_of(setting, build_target(setting))


def stated_law(row: AloneRow) -> dict[Tokens, float]:
    """Return the law of the new tokens that the row must have, computed from the documentation of its options."""
    prompt, setting = row.setting.prompt[row.hidden :], row.setting

    def pmf(tokens: Tokens) -> Pmf:
        logits = next_logits(setting, tokens)
        for step in row.steps:
            logits = step(logits, tokens, len(tokens) - len(prompt))
        return softmax(logits)

    law = target_law(Task(target=pmf, horizon=setting.horizon, eos=setting.eos), prompt)
    result = defaultdict[Tokens, float](float)
    for text, mass in law.items():
        result[_stopped(prompt, text, row.stops)] += float(mass)
    return dict(result)


def _stopped(prompt: Tokens, text: Tokens, stops: tuple[Tokens, ...]) -> Tokens:
    """Return ``text``, the new tokens, up to and including the first token that completes one of ``stops``.

    Return ``text`` itself if no token does. A stop sequence may begin in ``prompt``.
    """
    for end in range(1, len(text)):
        said = prompt + text[:end]
        if any(said[-len(stop) :] == stop for stop in stops):
            return text[:end]
    return text


def alone_subject(name: str, row: AloneRow) -> Subject:
    """Return one row without speculation as the subject ``name``, whose expected law is the documented one."""
    build = partial(row.situation(alone_engine), row.setting)
    return Subject(
        name=f"hf:alone/{name}",
        summary=f"generate() of transformers {version('transformers')} without speculation: {name}",
        claims=frozenset({Claim.LOSSLESS, Claim.SUPPORTED}),
        rational=False,
        paper="Hugging Face transformers, src/transformers/generation",
        situations=(
            EngineProgram(
                name=name,
                open=partial(opened, build),
                law=partial(stated_law, row),
                replays=REPLAYS,
                watch=partial(objects_call, build),
                tells=OBJECTS,
            ),
        ),
    )
