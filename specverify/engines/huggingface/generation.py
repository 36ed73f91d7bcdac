"""Calls of transformers' ``generate``: with a draft model, with prompt lookup, with early exit.

A ``GenerateCall`` holds the models and one call of ``generate``, which can be made with and without speculation. The
two calls are equal in all other respects, so their results must have one law. Each call sets every option and relies on
no default of the library. ``real_generate`` lists requirements that only the source of the library states.

The parameter ``setting`` of the functions here is the configuration of the call: models, sampling parameters, draft
length, stopping and prompt.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from specverify.engines.huggingface.install import INSTALL
from specverify.engines.huggingface.tiny_models import EngineSetting, build_assistant, build_target
from specverify.intercept.torch.passes import Passes
from specverify.reference.types import Tokens

try:
    import torch
    from transformers import GenerationConfig
    from transformers.utils import logging as transformers_logging
except ImportError as error:
    raise ImportError(f"the Hugging Face subject needs torch and transformers: {INSTALL}") from error


class GenerateCall(NamedTuple):
    """One call of ``generate``, made with and without speculation, and its models. The first model is the target."""

    models: tuple[Any, ...]
    generate: Callable[..., Any]
    """``generate(speculative=True, **extra)`` returns the library's result; ``extra`` are further keyword arguments."""
    start: Tokens
    """The tokens before the new ones in the returned sequences."""
    inputs: Mapping[str, Any]
    """The prompt as keyword arguments of ``generate``."""
    configs: tuple[Any, ...]
    """A copy of each model's original generation config; None if it has none."""
    hidden_states: bool = True
    """Whether the library can return hidden states with this kind of speculation."""
    before: Callable[[], None] = lambda: None
    """Called before the speculative call; it may make an earlier call with the same objects, or copy them anew."""
    beside: Mapping[str, Any] = {}
    """Further objects of the caller, by name, that may be reused: tokenizers, generation configs."""
    newest: tuple[list[GenerateCall], Callable[[], None]] | None = None
    """For a call that changes its models for good: a list with this call on the latest copies of the models, and a
    function that copies them anew. None for other calls."""

    @property
    def target(self) -> Any:
        """Return the target model, whose law the call must have."""
        return self.models[0]

    @property
    def now(self) -> GenerateCall:
        """Return the call to use now: this call, or the newest copy that ``renew`` made, if it made one.

        Copies are necessary if calls of ``generate`` change the models permanently.
        """
        return self if self.newest is None else self.newest[0][0]

    def renew(self) -> None:
        """Copy the models anew, if calls of ``generate`` change them permanently; otherwise do nothing."""
        if self.newest is not None:
            self.newest[1]()

    def new_tokens(self, speculative: bool = True) -> Any:
        """Return a tensor ``[number]`` of the new token ids of one call.

        ``speculative`` states whether the call speculates.
        """
        return self.generate(speculative)[0, len(self.start) :]

    def restore(self) -> None:
        """Reset the generation config of every model to its original, because some calls write to it."""
        for model, config in zip(self.models, self.configs, strict=True):
            if config is not None:
                model.generation_config = copy.deepcopy(config)

    def draw(self) -> Tokens:
        """Return the new tokens of one call as a tuple."""
        return tuple(self.new_tokens().tolist())


Build = Callable[[EngineSetting], GenerateCall]


def layers_of(model: Any) -> Any:
    """Return the number of layers that the next forward pass of ``model`` will use.

    With early exit it is lower while the library drafts. None: the config does not state it.
    """
    return getattr(model.config, "num_hidden_layers", None)


PASSES = Passes("past_key_values", layers_of)
"""The data on which forward passes of the library's models depend, so that they can be cached."""


def assisted_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call of ``generate`` for ``setting`` that drafts by a second model, the assistant."""
    assistant = build_assistant(setting)
    drafts_as(assistant, setting)
    return call_of(setting, build_target(setting), (assistant,), call={"assistant_model": assistant})


def prompt_lookup_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call of ``generate`` for ``setting`` whose drafts are copied from the prompt and the new tokens."""
    drafting = {"prompt_lookup_num_tokens": setting.gamma, "max_matching_ngram_size": 2}
    return call_of(setting, build_target(setting), drafting=drafting)


def early_exit_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call of ``generate`` for ``setting`` that drafts by the first layer of the target itself."""
    target = build_target(setting)
    drafts_as(target, setting)
    return call_of(setting, target, drafting={"assistant_early_exit": 1})


def drafts_as(model: Any, setting: EngineSetting) -> None:
    """Write the draft length and other drafting options into the generation config of ``model``, the draft model.

    The library reads them from there. The draft length is ``setting.gamma`` in every round, unless
    ``setting.assistant``, further options of the draft model, changes this.
    """
    wanted = {
        "num_assistant_tokens": setting.gamma,
        "num_assistant_tokens_schedule": "constant",
        "assistant_confidence_threshold": 0.0,
        **dict(setting.assistant),
    }
    for name, value in wanted.items():
        setattr(model.generation_config, name, as_lists(value))


def call_of(
    setting: EngineSetting,
    target: Any,
    assistants: tuple[Any, ...] = (),
    *,
    drafting: Mapping[str, Any] | None = None,
    call: Mapping[str, Any] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> GenerateCall:
    """Return one call of ``generate`` on ``target``, which can be made with and without speculation.

    ``drafting`` (entries of the generation config) and ``call`` (arguments of ``generate``) switch speculation on and
    are left out without speculation. An argument that is None is always left out. ``assistants`` are the draft models.
    ``setting`` has the prompt and the sampling options. ``beside`` are further objects of the caller by name, which are
    checked for changes.
    """
    inputs = prompt_of(setting)
    plain, speculative = sampling_config(setting), sampling_config(setting, **dict(drafting or {}))
    first = target.config.decoder_start_token_id if target.config.is_encoder_decoder else None

    def generate(speculates: bool = True, **extra: Any) -> Any:
        given = {**inputs, **(dict(call or {}) if speculates else {}), **extra}
        given = {name: value for name, value in given.items() if value is not None}
        return target.generate(**given, generation_config=speculative if speculates else plain)

    models = (target, *assistants)
    configs = tuple(copy.deepcopy(getattr(model, "generation_config", None)) for model in models)
    owned = {"generation_config that is passed": speculative, **(beside or {})}
    return GenerateCall(models, generate, setting.prompt if first is None else (first,), inputs, configs, beside=owned)


def sampling_config(setting: EngineSetting, **options: Any) -> Any:
    """Return the generation config of ``setting``, with every sampling parameter explicit and the further ``options``.

    The padding token is the first end token, if there is one.
    """
    config: Any = GenerationConfig  # its constructor is not annotated
    sampling = {
        "temperature": float(setting.temperature),
        "top_k": setting.top_k or 0,
        "top_p": 1.0 if setting.top_p is None else setting.top_p,
    }
    return config(
        do_sample=setting.sample,
        **(sampling if setting.sample else {}),
        max_new_tokens=setting.horizon,
        eos_token_id=list(setting.eos) or None,
        pad_token_id=setting.eos[0] if setting.eos else None,
        **{name: as_lists(value) for name, value in setting.options},
        **options,
    )


def prompt_of(setting: EngineSetting) -> dict[str, Any]:
    """Return the prompt of ``setting`` as arguments of ``generate``: token ids ``[1, length]`` and a mask of ones."""
    ids = torch.tensor([setting.prompt])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def as_lists(value: Any) -> Any:
    """Return a value of ``EngineSetting.options`` with its tuples converted to lists, as the library requires."""
    return [as_lists(item) for item in value] if isinstance(value, tuple) else value


@contextmanager
def quiet_and_seeded(seed: int) -> Iterator[None]:
    """In the ``with`` block, seed torch, run it on one thread, and show only errors of the library's log.

    The former state is restored afterwards.
    """
    log: Any = transformers_logging  # not all of it is annotated
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.ERROR)
    log.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]), one_thread():
            torch.manual_seed(seed)
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


@contextmanager
def one_thread() -> Iterator[None]:
    """In the ``with`` block, run torch on one thread, which is faster for models this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
