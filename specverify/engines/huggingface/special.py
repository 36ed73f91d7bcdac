"""``generate`` with drafters that need a special model, and with table models instead of networks.

The drafters are MTP layers, a DFlash drafter, Gemma 4's assistant, and an assistant with another tokenizer.

The parameter ``setting`` of the functions here is the configuration of the call: sampling parameters, draft length,
stopping and prompt. A builder is a function that takes a setting and returns the call of ``generate`` at this setting.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

from specverify.engines.huggingface.generation import Build, GenerateCall, call_of, drafts_as
from specverify.engines.huggingface.speculators import (
    Tokenizers,
    dflash_assistant,
    gemma4_pair,
    mtp_target,
    two_tokenizers,
)
from specverify.engines.huggingface.table_model import build_table
from specverify.engines.huggingface.tiny_models import ASSISTANT_SEED, TARGET_SEED, EngineSetting, build_target

TABLE_SEED = 1
IN_ORDER, REVERSED = "xdcbya", "aybcdx"
"""Two orders in which a tokenizer may list its vocabulary: by increasing id and by decreasing id."""


def twin_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call of assisted generation for ``setting`` whose assistant is a copy of the target, so that q = p."""
    assistant = build_target(setting)
    drafts_as(assistant, setting)
    return call_of(setting, build_target(setting), (assistant,), call={"assistant_model": assistant})


def mtp_engine(layers: int) -> Build:
    """Return a builder of a call that drafts by the target's own multi-token prediction layers, one token per layer."""

    def build(setting: EngineSetting) -> GenerateCall:
        target = mtp_target(setting.vocabulary, TARGET_SEED, layers)
        return call_of(setting, target, drafting={"use_mtp": True})._replace(hidden_states=False)

    return build


def dflash_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call for ``setting`` that drafts by one pass of a block-diffusion drafter over the target's states."""
    target = build_target(setting)
    assistant = dflash_assistant(target, ASSISTANT_SEED, setting.gamma + 1)
    drafting, call = {"speculation_type": "dflash"}, {"assistant_model": assistant}
    return call_of(setting, target, (assistant,), drafting=drafting, call=call)._replace(hidden_states=False)


def gemma4_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call for ``setting`` that drafts by an assistant which attends to the target's own KV cache."""
    target, assistant = gemma4_pair(setting.vocabulary, TARGET_SEED, setting.gamma)
    return call_of(setting, target, (assistant,), call={"assistant_model": assistant})


def universal_engine(order: str | None) -> Build:
    """Return a builder of assisted generation whose assistant has another tokenizer.

    ``order`` is the order in which that tokenizer lists its vocabulary; None leaves it arbitrary.
    """

    def build(setting: EngineSetting) -> GenerateCall:
        return afresh(partial(universal, setting), two_tokenizers(TARGET_SEED, order=order))

    return build


def universal(setting: EngineSetting, pair: Tokenizers) -> GenerateCall:
    """Return a call for ``setting`` that drafts by the assistant of ``pair``, which has another tokenizer."""
    drafts_as(pair.assistant, setting)
    call = {
        "assistant_model": pair.assistant,
        "tokenizer": pair.target_tokenizer,
        "assistant_tokenizer": pair.assistant_tokenizer,
    }
    beside = {"target's tokenizer": pair.target_tokenizer, "assistant's tokenizer": pair.assistant_tokenizer}
    return call_of(setting, pair.target, (pair.assistant,), call=call, beside=beside)


def afresh(build: Callable[[Tokenizers], GenerateCall], pair: Tokenizers) -> GenerateCall:
    """Return a call of ``generate`` that copies the assistant and the tokenizers of ``pair`` before it speculates.

    The copies are needed because the library changes the assistant; all calls share the target. ``build(pair)`` returns
    the call for a pair.
    """

    def made() -> GenerateCall:
        return build(Tokenizers(pair.target, *deepcopy(pair[1:])))

    engine = made()
    newest = [engine]

    def copied() -> None:
        newest[0] = made()

    def generate(speculative: bool = True, **extra: Any) -> Any:
        return newest[0].generate(speculative, **extra)

    return engine._replace(generate=generate, before=copied, newest=(newest, copied))


def table_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call of assisted generation for ``setting`` on table models, whose cache stores token ids.

    Each forward pass checks the cache.
    """
    target = build_table(setting.vocabulary, TABLE_SEED)
    assistant = build_table(setting.vocabulary, TABLE_SEED, side="draft")
    drafts_as(assistant, setting)
    return call_of(setting, target, (assistant,), call={"assistant_model": assistant})


def table_lookup_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call for ``setting`` with prompt lookup on a table model."""
    drafting = {"prompt_lookup_num_tokens": setting.gamma, "max_matching_ngram_size": 2}
    return call_of(setting, build_table(setting.vocabulary, TABLE_SEED), drafting=drafting)
