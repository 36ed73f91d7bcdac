"""Targets and assistants of different kinds: other sizes, other architectures, encoders, and two tokenizers.

A builder is a function that takes a setting and returns the call of ``generate`` at this setting.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import transformers

from specverify.engines.huggingface.architectures import ARCHITECTURES, build_model, fill
from specverify.engines.huggingface.generation import Build, GenerateCall, call_of, drafts_as
from specverify.engines.huggingface.situations import BrokenOff, breaking_off
from specverify.engines.huggingface.special import IN_ORDER, afresh, universal
from specverify.engines.huggingface.speculators import two_tokenizers
from specverify.engines.huggingface.tiny_models import ASSISTANT_SEED, TARGET_SEED, EngineSetting, build_target


def smaller_llama(vocabulary: int) -> Any:
    """Return a Llama draft model over ``vocabulary`` tokens, with one layer and one head.

    Its width is half that of the usual Llama in ``ARCHITECTURES``.
    """
    config = {**ARCHITECTURES["llama"].options, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    library: Any = transformers
    return fill(library.LlamaForCausalLM(library.LlamaConfig(vocab_size=vocabulary, **config)), ASSISTANT_SEED)


def unlike_engine(assistant: str) -> Build:
    """Return a builder of assisted generation whose assistant has another architecture or size than the target.

    ``assistant`` is a key of ``ARCHITECTURES``, or ``smaller`` for a Llama of another size.
    """

    def build(setting: EngineSetting) -> GenerateCall:
        small = assistant == "smaller"
        model = smaller_llama(setting.vocabulary) if small else build_model(assistant, setting.vocabulary, 3)
        drafts_as(model, setting)
        return call_of(setting, build_target(setting), (model,), call={"assistant_model": model})

    return build


def universal_pair_engine(
    order: str = IN_ORDER, architecture: str = "llama", before: Callable[[GenerateCall], None] = lambda engine: None
) -> Build:
    """Return a builder of assisted generation whose assistant has another tokenizer than the target.

    ``order`` is the order in which the assistant's tokenizer lists its vocabulary. ``architecture`` is the key of both
    models in ``ARCHITECTURES``. ``before(engine)`` is called before each speculative call; ``engine`` is this call.
    """

    def build(setting: EngineSetting) -> GenerateCall:
        pair = two_tokenizers(TARGET_SEED, order=order)
        if architecture != "llama":
            pair = pair._replace(target=build_model(architecture, 5, 2), assistant=build_model(architecture, 6, 3))
        engine = afresh(partial(universal, setting), pair)

        def renewed() -> None:
            engine.before()
            before(engine.now)

        return engine._replace(before=renewed)

    return build


def used_once(engine: GenerateCall) -> None:
    """Make a complete call of ``engine``, so that the examined call is the second use of its models.

    The first call samples, because a greedy call does not change any object.
    """
    engine.generate(do_sample=True)


def broken_once(engine: GenerateCall) -> None:
    """Make a call of ``engine`` and interrupt it while it drafts.

    So the examined call follows an interrupted call on the same models.
    """
    try:
        with breaking_off(engine):
            engine.generate(do_sample=True)
    except BrokenOff:
        return
