"""The caller's objects in a call of ``generate``, compared before and after it.

These are weights, modules (heads and embeddings may be replaced), configs, tokenizers and the prompt. Three calls are
made: a complete one, one that is interrupted while it drafts, and one that uses the same objects again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast

from specverify.engines.huggingface.generation import PASSES, GenerateCall, quiet_and_seeded
from specverify.engines.huggingface.situations import breaking_off
from specverify.intercept.torch.passes import Memory, digest, remembered
from specverify.subjects.subject import Observed, Watched

BROKEN = "after a call that was broken off"
"""Follows the name of an object that only an interrupted call changes."""


def contents(engine: GenerateCall) -> dict[str, bytes]:
    """Return name -> digest of the content of every object of ``engine`` that the caller owns and may use again."""
    result = {f"input {name}": digest(value) for name, value in engine.inputs.items()}
    result |= {f"the {name}": _digest_of(value) for name, value in engine.beside.items()}
    for number, model in enumerate(engine.models):
        owner = "target" if number == 0 else "assistant"
        result[f"the {owner}'s modules"] = digest(
            tuple((name, str(type(part))) for name, part in model.named_modules())
        )
        result[f"the {owner}'s weights"] = digest(dict(model.state_dict()))
        result[f"the {owner}'s config"] = digest(model.config.to_dict())
        config = getattr(model, "generation_config", None)
        for name, value in ({} if config is None else config.to_dict()).items():
            result[f"the {owner}'s generation_config.{name}"] = digest(value)
    return result


def _digest_of(value: Any) -> bytes:
    if isinstance(value, PreTrainedTokenizerFast):
        return digest((value.backend_tokenizer.to_str(), repr(value.special_tokens_map)))
    return digest(repr(sorted(value.to_dict().items())) if hasattr(value, "to_dict") else value)


def changed_between(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the names of the objects that differ between ``before`` and ``after``, or that only one of them has.

    Both are results of ``contents``, name -> digest.
    """
    names = [*before, *(name for name in after if name not in before)]
    return tuple(name for name in names if before.get(name) != after.get(name))


def changed_by_use(engine: GenerateCall) -> tuple[str, ...]:
    """Return the names of the caller's objects, such as configs and tokenizers, that calls of ``engine`` change.

    Three calls are made with the same objects: a complete one, one that is interrupted while it drafts, and another
    complete one. Their exceptions are ignored. If only the interrupted or the last call changes an object, its name
    gets the suffix "after a call that was broken off".
    """
    engine.renew()
    before = contents(engine.now)
    with suppress(Exception):
        engine.now.generate()
    used = changed_between(before, contents(engine.now))
    with suppress(Exception), breaking_off(engine.now):
        engine.now.generate()
    broken = changed_between(before, contents(engine.now))
    with suppress(Exception):
        engine.now.generate()
    again = changed_between(before, contents(engine.now))
    left = [f"{name} {BROKEN}" for name in dict.fromkeys((*broken, *again)) if name not in used]
    return (*used, *left)


@contextmanager
def ready(models: tuple[Any, ...]) -> Iterator[None]:
    """In the ``with`` block, seed torch, silence the library, disable gradients, and cache passes of ``models``."""
    with ExitStack() as stack:
        stack.enter_context(quiet_and_seeded(0))
        stack.enter_context(torch.no_grad())
        for model in models:
            stack.enter_context(remembered(model, Memory({}, [0]), PASSES))
        yield


@contextmanager
def objects_call(build: Callable[[], GenerateCall]) -> Iterator[Watched]:
    """Yield a call of ``generate`` as an engine whose runs record which of the caller's objects the call changes.

    ``build`` returns the call. Every run with speculation has the same record: the names of the objects that
    ``changed_by_use`` finds, once and before the first run. A run without speculation has an empty record, which is the
    expected one, because a call must not change these objects.
    """
    with quiet_and_seeded(0):
        engine = build()
        start, seen = engine.start, Observed((), (), changed=changed_by_use(engine))
    yield Watched(lambda draws: seen, lambda draws: Observed((), ()), start)
