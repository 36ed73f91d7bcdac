"""Small engines with one fault each, by which ``specverify.trust.quick_power`` measures the power of quick runs.

A quick run examines only some of the cases: it should still detect most of the faults.

``serving`` is an engine that decodes batches. A fault changes how its rows influence each other, what a request leaves
for the next one, or when a text ends. ``deciding`` makes an engine from a verifier, a function
that verifies one round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from specverify.reference import Tokens
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.engine_making import EngineScenario, Made

GAMMA = 2

OF_BATCHES = (
    "copies share a round",
    "coins of one row",
    "as many as the first",
    "padded",
    "slots of others",
    "padding drafts in a slot",
)
OF_REQUESTS = ("never emptied", "found by length", "found by last block", "rejected draft kept", "third one short")
RATIOS: Mapping[str, Callable[[Any, Any, int, int], Any]] = {
    "wrong beyond eight tokens": lambda ratio, after, token, length: 1.0 if length > 8 else ratio,
    "wrong from token four on": lambda ratio, after, token, length: ratio / 2 if token >= 4 else ratio,
    "accepted at near-ties": lambda ratio, after, token, length: 1.0 if abs(ratio - 1) < 1 / 16 else ratio,
    "coins of eight bits": lambda ratio, after, token, length: np.ceil(ratio * 2**8) / 2**8,
    "ratio halved": lambda ratio, after, token, length: ratio if ratio >= 1 else ratio / 2,
    "next row decides": lambda ratio, after, token, length: after,
}
"""Fault -> ``wrong(ratio, after, token, length)``, which returns the wrong acceptance ratio. ``ratio`` is p/q of the
draft ``token``, ``after`` the same with p of the next row, and ``length`` the length of the text."""
OF_ROUNDS = (*RATIOS, "bonus of the draft", "residual of the target")
OF_ENDS = (
    "only the last ends",
    "bonus after an end",
    "rejected end ends",
    "end in the prompt",
    "length before the end",
)
READ_LATER = frozenset({"only the last ends", "bonus after an end", "length before the end"})
"""Faults with which a round continues after an accepted end."""


class _Serving:
    """An engine that decodes a batch of prompts by speculative sampling, with one fault or with none."""

    def __init__(self, scenario: EngineScenario, fault: str) -> None:
        """Initialise the engine on the models of ``scenario``, with the fault named ``fault`` ("": none)."""
        self.models, self.fault, self.rng = scenario, fault, np.random.default_rng()
        self.kept: dict[Any, Tokens] = {}
        self.last: Tokens = ()
        self.served = 0

    def decode(self, prompts: Sequence[Sequence[int]]) -> list[Tokens]:
        """Return the new tokens of each of ``prompts``, which are decoded together as one batch."""
        asked = [tuple(prompt) for prompt in prompts]
        new: list[Tokens] = [() for _ in asked]
        seen = [self._begin(row, prompt) for row, prompt in enumerate(asked)]
        first: dict[Tokens, Tokens] = {}
        while going := [row for row in range(len(asked)) if not self._is_over(asked[row], new[row])]:
            coins = self.rng.random((len(going), GAMMA))
            longest = max(len(asked[row]) + len(new[row]) for row in going)
            rounds: dict[int, Tokens] = {}
            for place, row in enumerate(going):
                mine = coins[0 if self.fault == "coins of one row" else place]
                if self.fault == "copies share a round" and not new[row] and asked[row] in first:
                    rounds[row] = first[asked[row]]
                    continue
                held = seen[row] + new[row]
                if self.fault == "padded":
                    held += (0,) * (longest - len(held))
                padded = self.fault == "padding drafts in a slot" and place == 0 and len(going) & (len(going) - 1)
                rounds[row] = self._round(asked[row] + new[row], held, mine, asked[-1] if padded else ())
                first.setdefault(asked[row], rounds[row])
            for row in going:
                length = len(rounds[going[0]]) if self.fault == "as many as the first" else len(rounds[row])
                new[row] += (rounds[row] * length)[:length]
                if self.fault == "length before the end" and len(new[row]) < self.models.horizon:
                    new[row] = self._cut(new[row])
        self.kept.update(enumerate(prompt + text for prompt, text in zip(asked, new, strict=True)))
        self.served += 1
        return [text[: self.models.horizon] for text in new]

    def _begin(self, row: int, prompt: Tokens) -> Tokens:
        """Return the tokens that the target's cache holds for ``prompt``, the request in row ``row`` of the batch.

        The right result is ``prompt``; some of the faults return other tokens.
        """
        if self.fault == "slots of others" and row:
            return self.kept.get(row, ()) + prompt
        if self.fault == "never emptied":
            return self.kept.get(row, ()) + prompt
        if self.fault == "found by length":
            return self.kept.setdefault(("prompt", len(prompt)), prompt)
        if self.fault == "found by last block" and len(prompt) >= 16:
            whole = len(prompt) // 16 * 16
            return self.kept.setdefault(prompt[whole - 16 : whole], prompt[:whole]) + prompt[whole:]
        if self.fault == "rejected draft kept":
            return self.last if self.last[: len(prompt)] == prompt else prompt
        return prompt[1:] if self.fault == "third one short" and self.served == 2 else prompt

    def _round(self, text: Tokens, held: Tokens, coins: Any, padding: Tokens = ()) -> Tokens:
        """Return the new tokens of one round after ``text``; the target reads ``held``, its cache, instead of ``text``.

        One token is drafted for each of ``coins``, the uniforms of the acceptance tests. If ``padding`` is not empty,
        the tests use the drafter's row after the text ``padding``: a fault.
        """
        target, draft, end = self.models.target, self.models.draft, self.models.eos
        new: Tokens = ()
        for coin in coins:
            q, p = draft(text + new), target(held + new)
            token = _token_of_uniform(q, self.rng.random())
            q = np.maximum(draft(padding), 1e-9) if padding else q
            ratio, after = p[token] / q[token], target((*held, *new, token))[token] / q[token]
            if self.fault in RATIOS:
                ratio = RATIOS[self.fault](ratio, after, token, len(text + new))
            if not coin < ratio:
                if self.fault == "rejected end ends" and token == end:
                    return (*new, token)
                self.last = (*text, *new, token)
                return (
                    *new,
                    _token_of_uniform(p if self.fault == "residual of the target" else _owed(p, q), self.rng.random()),
                )
            new = (*new, token)
            if token == end and self.fault not in READ_LATER:
                return new
        law = draft(text + new) if self.fault == "bonus of the draft" else target(held + new)
        return (*new, _token_of_uniform(law, self.rng.random()))

    def _cut(self, new: Tokens) -> Tokens:
        end = self.models.eos
        return new[: new.index(end) + 1] if end is not None and end in new else new

    def _is_over(self, prompt: Tokens, new: Tokens) -> bool:
        if len(new) >= self.models.horizon:
            return True
        read = {"only the last ends": new[-1:], "bonus after an end": new[-1:], "end in the prompt": prompt + new}
        return bool(new) and self.models.eos in read.get(self.fault, new)


def _owed(p: Any, q: Any) -> Any:
    left = np.maximum(p - q, 0)
    return left if left.any() else p


def _token_of_uniform(weights: Any, uniform: Any) -> int:
    """Return the token that ``uniform`` selects from the cumulative sum of ``weights`` (inverse CDF)."""
    return int(np.searchsorted(np.cumsum(weights) / np.sum(weights), uniform, side="right"))


def serving(fault: str, scenario: EngineScenario) -> Made:
    """Return the small engine for ``scenario`` with the fault named ``fault``, which decodes batches of prompts."""
    return Made(_Serving(scenario, fault).decode, batched=True, stops=fault in ("", *OF_ENDS))


def one_by_one(fault: str, scenario: EngineScenario) -> Made:
    """Return the small engine for ``scenario`` with the fault named ``fault``; it decodes one prompt at a time."""
    engine = _Serving(scenario, fault)
    return Made(lambda prompt: engine.decode([prompt])[0], stops=fault in ("", *OF_ENDS))


def deciding(verify: BareVerifier, scenario: EngineScenario) -> Callable[[Tokens], Tokens]:
    """Return an engine on the models of ``scenario`` that verifies each round by ``verify``.

    ``verify(p, q, draft_tokens)`` returns the emitted tokens. The engine is a function prompt -> new tokens.
    """
    rng = np.random.default_rng()

    def decode(prompt: Tokens) -> Tokens:
        text, end = tuple(prompt), len(prompt) + scenario.horizon
        while len(text) < end:
            drafts: Tokens = ()
            for _ in range(min(GAMMA, end - len(text))):
                drafts += (_token_of_uniform(scenario.draft(text + drafts), rng.random()),)
            p = np.stack([scenario.target(text + drafts[:place]) for place in range(len(drafts) + 1)])
            q = np.stack([scenario.draft(text + drafts[:place]) for place in range(len(drafts))])
            text += tuple(int(token) for token in verify(p, q, np.array(drafts)))
        return text[len(prompt) : end]

    return decode


def wrong_engines(verifiers: Mapping[str, BareVerifier]) -> Mapping[str, Callable[[EngineScenario], Any]]:
    """Return name -> function that builds, for a scenario, an engine with one fault.

    There is one for each fault of ``serving`` and ``one_by_one``, and one for each of the wrong ``verifiers`` (name ->
    verifier).
    """
    return {
        **{f"batch: {fault}": partial(serving, fault) for fault in (*OF_BATCHES, *OF_ENDS[:2])},
        **{f"engine: {fault}": partial(one_by_one, fault) for fault in (*OF_REQUESTS, *OF_ROUNDS, *OF_ENDS)},
        **{f"engine: {name}": partial(deciding, verify) for name, verify in verifiers.items()},
    }
