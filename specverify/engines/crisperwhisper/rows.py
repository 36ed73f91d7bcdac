"""Calls of CrisperWhisper's CTranslate2 that are sampled. The expected text of each is greedy decoding in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Final

import numpy as np

from specverify.engines.crisperwhisper.adapter import END, START, Transcription, draft, features, networks, plain, texts
from specverify.engines.crisperwhisper.network import POSITIONS, encoded, next_logits
from specverify.reference import Tokens
from specverify.subjects.decoding import CLEAR, EngineRow
from specverify.subjects.subject import UnusableSubject

SOUNDS: Final = tuple(range(8))
PROMPT: Final = (START, 5, 3)
MISSING: Final = (3, 9)
CALLS: Final[Mapping[str, Transcription]] = {
    "three drafts": Transcription(0),
    "one draft": Transcription(0, gamma=1),
    "eight drafts": Transcription(0, gamma=8),
    "more drafts than tokens": Transcription(0, gamma=6, horizon=3),
    "one token": Transcription(0, horizon=1),
    "a longer prompt": Transcription(0, prompt=PROMPT),
    "suppressed tokens": Transcription(0, suppressed=(3, 7)),
    "no end": Transcription(0, suppressed=(END,), horizon=20),
    "an end suppressed, one draft": Transcription(0, suppressed=(END,), gamma=1),
    "one to six drafts": Transcription(0, gamma=2, longest=6, horizon=20),
    "up to the last position": Transcription(0, suppressed=(END,), horizon=POSITIONS - 1),
}
WAYS: Final[Mapping[str, Callable[[Transcription], Sequence[int]]]] = {
    "plain": plain,
    "draft": partial(draft, "near"),
    "draft of another model": partial(draft, "other"),
    "draft of the model itself": partial(draft, "target"),
    "draft, renamed tokens": partial(draft, "renamed"),
    "draft, renamed tokens, two missing": partial(draft, "renamed", missing=MISSING),
}
NETWORKS: Final = {"draft": "near", "draft of another model": "other", "draft of the model itself": "target"}
"""Key of ``WAYS`` -> name of the model that drafts; the other draft models are ``near`` with renamed tokens."""


@cache
def expected(call: Transcription) -> Tokens:
    """Return the expected text of a call: the token with the largest logit at every position.

    It ends with an end token or after ``call.horizon`` tokens. Raises ``UnusableSubject`` if rounding could exchange
    the two largest logits of a position.
    """
    heard = encoded(networks()["target"], features(call.sound))
    text: Tokens = ()
    while len(text) < call.horizon and text[-1:] != (END,):
        logits = next_logits(networks()["target"], heard, call.prompt + text)
        logits[list(call.suppressed)] = -np.inf
        first, second = np.sort(logits)[[-1, -2]]
        if first - second < CLEAR:
            raise UnusableSubject(f"the token after {call.prompt + text} is decided by {first - second:.1g}")
        text = (*text, int(logits.argmax()))
    return text


def agreed(way: str, calls: Sequence[Transcription]) -> str:
    """Return a sentence such as "70 of 96 tokens are those of the draft model": how often a correct draft is made.

    The count is over the expected tokens of ``calls``. A token counts if the draft model of ``way``, a key of ``WAYS``,
    has its largest logit there.
    """
    network = networks()[NETWORKS.get(way, "near")]
    same, number = 0, 0
    for call in calls:
        heard, text = encoded(network, features(call.sound)), expected(call)
        drafted = (int(next_logits(network, heard, call.prompt + text[:place]).argmax()) for place in range(len(text)))
        same += sum(token == other for token, other in zip(drafted, text, strict=True))
        number += len(text)
    return f"{same} of {number} tokens are those of the draft model"


def law(calls: Sequence[Transcription]) -> dict[Tokens, float]:
    """Return the law of the concatenated texts of all ``calls``: one outcome, because decoding is greedy."""
    return {tuple(token for call in calls for token in expected(call)): 1.0}


def rows() -> dict[str, EngineRow]:
    """Return name -> subject to sample; a name is ``SPECULATION/OPTIONS``.

    A text of a subject is the concatenation of eight calls, each with other audio features.
    """
    result = {}
    for way, decode in WAYS.items():
        for name, call in CALLS.items():
            calls = tuple(call._replace(sound=sound) for sound in SOUNDS)
            activity = None if way == "plain" else partial(agreed, way, calls)
            result[f"{way}/{name}"] = EngineRow(texts(decode, calls), partial(law, calls), activity=activity)
    return result
