"""Calls of CTranslate2's ``Whisper`` on the CPU: greedy token by token, and ``generate_speculative``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.engines.crisperwhisper.network import (
    FRAMES,
    HEADS,
    LAYERS,
    MELS,
    VOCABULARY,
    Whisper,
    random_whisper,
    renamed,
)
from specverify.reference import Tokens
from specverify.subjects.decoding import DRAFT_SEED, TARGET_SEED, Texts

try:
    import ctranslate2
    from ctranslate2.models import Whisper as Engine
    from ctranslate2.specs.whisper_spec import WhisperSpec

    assert hasattr(Engine, "generate_speculative"), "this build of ctranslate2 has no generate_speculative"
except (ImportError, AssertionError) as error:
    raise ImportError(
        "the subject of CrisperWhisper needs ctranslate2: pip install ctranslate2-crisperwhisper"
    ) from error

START: Final = 1
END: Final = 9
RENAMED: Final = (4, 1, 7, 0, 11, 2, 9, 3, 10, 5, 8, 6)
"""Token of the draft model with renamed tokens -> token of the target."""
OTHER_SEED: Final = 3
NOISE: Final = 0.05


class Transcription(NamedTuple):
    """One transcription: the seed of its random audio features, its prompt, and its options.

    ``horizon`` is the largest number of new tokens, ``suppressed`` are tokens not to emit, and ``gamma`` is the number
    of drafts of a round.
    """

    sound: int
    """Seed of the features."""
    prompt: Tokens = (START,)
    horizon: int = 12
    suppressed: Tokens = ()
    gamma: int = 3
    longest: int = 0
    """Largest number of drafts of a round, if the library adapts the number from 1 on; 0: it is always ``gamma``."""


@cache
def networks() -> dict[str, Whisper]:
    """Return the models by name: ``target``, and the draft models ``near``, ``other`` and ``renamed``.

    ``near`` is the target with noise in its weights, ``other`` has other random weights, and ``renamed`` is ``near``
    with other token ids.
    """
    target = random_whisper(TARGET_SEED)
    near = random_whisper(DRAFT_SEED, target, NOISE)
    return {"target": target, "near": near, "other": random_whisper(OTHER_SEED), "renamed": renamed(near, RENAMED)}


@cache
def engine(name: str) -> Any:
    """Return the tiny model called ``name``, a key of ``networks()``, loaded by CTranslate2 in float32."""
    spec = WhisperSpec(LAYERS["encoder"], HEADS, LAYERS["decoder"], HEADS)
    for path, value in networks()[name].weights.items():
        *parents, last = path.split("/")
        place = spec
        for parent in parents:
            place = place[int(parent)] if parent.isdigit() else getattr(place, parent)
        setattr(place, last, value)
    spec.config.suppress_ids, spec.config.suppress_ids_begin, spec.config.lang_ids = [], [], []
    spec.config.alignment_heads = [[0, 0]]
    names = {START: "<|startoftranscript|>", END: "<|endoftext|>"}
    spec.register_vocabulary([names.get(token, str(token)) for token in range(VOCABULARY)])
    spec.validate()
    spec.optimize(quantization=None)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return Engine(folder, device="cpu", compute_type="float32", inter_threads=1, intra_threads=1)


@cache
def features(sound: int) -> Any:
    """Return random features ``[MELS, 2 * FRAMES]``, the input of the encoder; ``sound`` is their seed."""
    return np.random.default_rng(sound).standard_normal((MELS, 2 * FRAMES)).astype(np.float32)


def _view(sound: int) -> Any:
    return ctranslate2.StorageView.from_array(np.ascontiguousarray(features(sound)[None]))


def plain(call: Transcription) -> Sequence[int]:
    """Return the text of ``call``, decoded token by token, without speculation."""
    state, logits = engine("target").prefill(_view(call.sound), list(call.prompt))
    first = np.array(logits).reshape(-1, VOCABULARY)[-1]
    first[list(call.suppressed)] = -np.inf
    text = [int(first.argmax())]
    while len(text) < call.horizon and text[-1] != END:
        text.append(engine("target").forward_step_greedy(state, text[-1], list(call.suppressed)))
    return text


def draft(name: str, call: Transcription, *, missing: Tokens = ()) -> Sequence[int]:
    """Return the text of ``call``, decoded by the target with the draft model called ``name``.

    The draft model ``renamed`` has other token ids than the target, so two tables of ids are passed with it. In these
    tables the target's tokens ``missing`` have no counterpart.
    """
    maps: dict[str, list[int]] = {}
    if name == "renamed":
        to_target = [-1 if token in missing else token for token in RENAMED]
        to_draft = [-1 if token in missing else RENAMED.index(token) for token in range(VOCABULARY)]
        maps = {"d2m": to_target, "m2d": to_draft}
    sound = _view(call.sound)
    adapted = {"min_speculative_tokens": 1, "max_speculative_tokens": call.longest} if call.longest else {}
    result: Sequence[int] = engine("target").generate_speculative(
        engine(name),
        sound,
        sound,
        prompt=list(call.prompt),
        num_speculative_tokens=call.gamma,
        max_length=call.horizon,
        eot_id=END,
        suppress_tokens=list(call.suppressed),
        **adapted,
        **maps,
    )
    return result


def texts(way: Callable[[Transcription], Sequence[int]], calls: Sequence[Transcription]) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts.

    Each text is the concatenation of ``way(call)`` for all ``calls``, where ``way`` decodes one call, as ``plain``
    does. Decoding is greedy, so the seed has no effect and all texts are equal.
    """
    return partial(_texts, way, tuple(calls))


def _texts(
    way: Callable[[Transcription], Sequence[int]], calls: Sequence[Transcription], _: int, number: int
) -> Sequence[Tokens]:
    return [tuple(token for call in calls for token in way(call)) for _ in range(number)]
