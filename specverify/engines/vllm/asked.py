"""The requests with which vLLM is examined, by name; each is sent to the engine with every kind of speculation.

``OPTIONS`` maps a name, such as "top-k 2", to an ``Asked``: the request, how its texts are drawn (for example each with
its own seed), and the total variation to detect. ``PLAIN_ONLY`` has requests that vLLM rejects together with
speculation, and ``OF_THINKING`` requests for engines that are configured for thinking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from specverify.engines.vllm.request_law import PROMPT, Request, request

COARSE: Final = 0.15
COARSER: Final = 0.25
FINE: Final = 0.07


class Drawing(NamedTuple):
    """How the texts of a request are drawn: with or without seeds, alone or in a batch, and how many per request."""

    seeded: bool = False
    """Whether each text has its own seed; if not, all use the engine's generator."""
    beside: bool = False
    """Whether other requests (``BESIDE``) run at the same time, one for each text."""
    copies: int = 1
    """Number of texts per request (its ``n``)."""


ALONE: Final = Drawing()


class Asked(NamedTuple):
    """A request that is sent to the engine, and how its texts are drawn.

    ``drawing`` states whether the request is sent alone or with others. ``detect`` is the total variation that the
    samples must detect.
    """

    request: Request
    drawing: Drawing = ALONE
    detect: float = COARSE


NARROW: Final = request(horizon=4, top_k=2)
ENDING: Final = request(horizon=4, top_k=3, stop_token_ids=(5, 6), ends=True)
LONGEST: Final = 64
LATE: Final = tuple((3 * place * place + place) % 7 for place in range(LONGEST - 4))
PENALISED: Final = request(horizon=4, top_k=2, presence_penalty=0.8, frequency_penalty=0.4, repetition_penalty=1.2)
OPTIONS: Final[Mapping[str, Asked]] = {
    "temperature 1": Asked(request(horizon=3), detect=COARSER),
    "temperature 0.7, top-k 3": Asked(request(horizon=4, temperature=0.7, top_k=3)),
    "temperature 1.5, top-k 2": Asked(request(horizon=4, temperature=1.5, top_k=2)),
    "top-k 2": Asked(NARROW),
    "top-p 0.7": Asked(request(horizon=4, top_p=0.7)),
    "repetition penalty 1.5": Asked(request(horizon=4, top_k=2, repetition_penalty=1.5)),
    "presence penalty 2": Asked(request(horizon=4, top_k=2, presence_penalty=2.0)),
    "frequency penalty 1": Asked(request(horizon=4, top_k=2, frequency_penalty=1.0)),
    "all penalties": Asked(PENALISED),
    "bad words": Asked(request(horizon=4, top_k=2, _bad_words_token_ids=((6,), (2, 4), (1, 2)))),
    "allowed tokens": Asked(request(horizon=3, allowed_token_ids=(1, 4, 6))),
    "structured outputs": Asked(request(horizon=3, letters=(0, 1, 6)), detect=FINE),
    "stop strings": Asked(request(horizon=5, top_k=2, stop=("gf", "ca", "ef", "b"))),
    "stop tokens": Asked(request(horizon=4, top_k=3, stop_token_ids=(5, 6))),
    "an end": Asked(request(horizon=4, top_k=3, ends=True)),
    "at least three tokens": Asked(
        request(horizon=5, top_k=4, min_tokens=3, stop_token_ids=(5, 6), ends=True), detect=0.5
    ),
    "seeds": Asked(NARROW, Drawing(seeded=True)),
    "four texts a request": Asked(NARROW, Drawing(copies=4)),
    "others beside": Asked(NARROW, Drawing(beside=True), COARSER),
    "others beside, seeds": Asked(NARROW, Drawing(beside=True, seeded=True), COARSER),
    "others beside, penalties": Asked(PENALISED, Drawing(beside=True), COARSER),
    "one token": Asked(request(horizon=1)),
    "prompt of one token": Asked(request((4,), horizon=4, top_k=2)),
    "up to the last position": Asked(request(LATE, horizon=4, top_k=2)),
    "log-probabilities asked for": Asked(request(horizon=4, top_k=2, logprobs=3)),
    "greedy": Asked(request(horizon=8, temperature=0.0)),
    "greedy, penalties": Asked(
        request(horizon=8, temperature=0.0, presence_penalty=1.0, frequency_penalty=0.5, repetition_penalty=1.2)
    ),
    "greedy, at least five tokens": Asked(
        request(horizon=8, temperature=0.0, min_tokens=5, stop_token_ids=(2, 5), ends=True)
    ),
    "greedy, bad words": Asked(request(horizon=8, temperature=0.0, _bad_words_token_ids=((0,), (2, 4), (1, 2)))),
    "greedy, others beside": Asked(request(horizon=8, temperature=0.0), Drawing(beside=True)),
}
PLAIN_ONLY: Final[Mapping[str, Asked]] = {
    "min-p 0.27": Asked(request(horizon=4, min_p=0.27)),
    "logit bias": Asked(request(horizon=4, top_k=2, logit_bias={0: 2.0, 4: -1.0})),
}
"""Options that vLLM rejects together with speculation."""
OF_THINKING: Final[Mapping[str, Asked]] = {
    "budget 0": Asked(request(horizon=4, top_k=3, thinking_token_budget=0)),
    "greedy, budget 0": Asked(request(horizon=8, temperature=0.0, thinking_token_budget=0)),
}
"""Options for engines that are configured for thinking."""
AGAIN: Final = (4, 1, 4, 1, 4, 1, 4)
"""A prompt with repeated n-grams, in which drafts can be looked up."""


def repeating(options: Mapping[str, Asked]) -> dict[str, Asked]:
    """Return the requests of ``options`` that have the default prompt (``PROMPT``), with the prompt ``AGAIN`` instead.

    ``AGAIN`` repeats its n-grams, so that n-gram lookup drafts. The total variation to detect becomes at least
    ``COARSER``.
    """
    return {
        name: asked._replace(request=asked.request._replace(prompt=AGAIN), detect=max(asked.detect, COARSER))
        for name, asked in options.items()
        if asked.request.prompt == PROMPT
    }
