"""Engines with the right law of tokens that break another promise: a returned value, a statistic, a seed.

``returning(fault, scenario)`` is a small engine at temperature 1/2 that also returns every value that can be requested.
With the fault "" it is right. ``VALUES`` and ``STATISTICS`` map each of its faults to a citation of a real defect of
this kind, or to "plausible" if none is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from specverify.reference import Tokens
from specverify.subjects.engine_making import EngineScenario, Made

GAMMA, TOP, TEMPERATURE = 2, 2, 0.5
PIECES = ("a", "bc", " d", "é", "f", "gh", "i", "j ")
VALUES: Mapping[str, tuple[str, str]] = {
    "raw read after temperature": ("logprobs", "vLLM PR #30846"),
    "rows of another expansion": ("logprobs", "vLLM PR #33391"),
    "row before": ("processed_logprobs", "vLLM PR #29216"),
    "row after the token": ("processed_logprobs", "plausible"),
    "bonus by the last draft's row": ("processed_logprobs", "plausible"),
    "before temperature": ("processed_logprobs", "plausible"),
    "accepted by the draft's row": ("processed_logprobs", "plausible"),
    "replaced by the residual": ("processed_logprobs", "plausible"),
    "accepted by min(1, p/q)": ("processed_logprobs", "plausible"),
    "accepted are certain": ("processed_logprobs", "llama.cpp issue #27972"),
    "bonus has none": ("processed_logprobs", "plausible"),
    "rejected kept in the list": ("processed_logprobs", "plausible"),
    "no logarithm": ("processed_logprobs", "plausible"),
    "sum counts rejected": ("cumulative_logprob", "plausible"),
    "list of the first row": ("top_logprobs", "text-generation-inference PR #1497 (43393451)"),
    "list of the draft": ("top_logprobs", "plausible"),
    "least probable first": ("top_logprobs", "plausible"),
    "list lacks the likeliest": ("top_logprobs", "plausible"),
    "scores lack the bonus": ("scores", "plausible"),
    "scores of the draft": ("scores", "plausible"),
    "prompt shifted": ("prompt_logprobs", "vLLM issue #53488"),
    "last piece held back": ("text", "plausible"),
    "rejected in the text": ("text", "plausible"),
    "last chunk lost": ("chunks", "plausible"),
    "chunk sent twice": ("chunks", "plausible"),
    "sent before verified": ("snapshots", "plausible"),
    "rejected end is the reason": ("finish_reason", "plausible"),
    "always length": ("finish_reason", "plausible"),
}
"""Fault -> (the returned value that shows it, its record)."""
STATISTICS: Mapping[str, tuple[str, str]] = {
    "bonus counted as accepted": ("accepted", "plausible"),
    "rejected counted as accepted": ("accepted", "plausible"),
    "rate of rounds": ("acceptance_rate", "plausible"),
    "positions shifted": ("accepted_per_position", "plausible"),
    "last round not counted": ("rounds", "plausible"),
    "rounds count drafts": ("rounds", "plausible"),
    "a round without its bonus token": ("tokens_per_round", "plausible"),
    "usage counts drafts": ("usage", "plausible"),
    "usage of all requests": ("usage", "plausible"),
    "reasoning tokens behind the end": ("usage", "SGLang issue #39826"),
    "histogram of lengths": ("acceptance_histogram", "plausible"),
    "rejected counts drafts": ("rejected", "plausible"),
}


class _EmittedToken(NamedTuple):
    token: int
    text: Tokens
    """Tokens before the emitted one."""
    row: Any
    """``[vocabulary]``: p after the processors."""
    raw: Any
    kind: str
    """``accepted``, ``replaced`` or ``bonus``."""
    draft: Any = None


class Engine:
    """A small engine that decodes one request after another and also returns log-probabilities, text and statistics."""

    def __init__(self, scenario: EngineScenario, fault: str = "", rng: Any = np.random) -> None:
        """Initialise the engine on the models of ``scenario``, with the fault named ``fault`` ("": none).

        ``rng.random()`` returns its uniforms.
        """
        self.models, self.fault, self.rng = scenario, fault, rng
        self.completed = 0

    def plain(self, prompt: Tokens | None = None) -> tuple[Tokens, dict[str, Any]]:
        """Decode without speculation; return the new tokens and the values returned with them.

        A ``prompt`` of None is the prompt of the scenario.
        """
        prompt = self.models.prompt if prompt is None else tuple(prompt)
        emitted: list[_EmittedToken] = []
        while not self._is_over(emitted):
            text = prompt + tuple(item.token for item in emitted)
            raw = self.models.target(text)
            emitted.append(self._drawn(text, raw, "bonus"))
        return self._answer(prompt, emitted, [], Engine(self.models))

    def speculative(self, prompt: Tokens | None = None) -> tuple[Tokens, dict[str, Any]]:
        """Decode with drafts; return the new tokens and the values returned with them.

        A ``prompt`` of None is the prompt of the scenario.
        """
        prompt = self.models.prompt if prompt is None else tuple(prompt)
        emitted: list[_EmittedToken] = []
        rounds: list[tuple[Tokens, list[_EmittedToken]]] = []
        while not self._is_over(emitted):
            text = prompt + tuple(item.token for item in emitted)
            drafts: Tokens = ()
            for _ in range(GAMMA):
                q = self.models.draft(text + drafts)
                drafts += (_inverse(q, self.rng.random()),)
            new = self._verified(text, drafts)
            rounds.append((drafts, new))
            for item in new:
                if not self._is_over(emitted):
                    emitted.append(item)
        return self._answer(prompt, emitted, rounds, self)

    def _verified(self, text: Tokens, drafts: Tokens) -> list[_EmittedToken]:
        new: list[_EmittedToken] = []
        for token in drafts:
            at = text + tuple(item.token for item in new)
            q, raw = self.models.draft(at), self.models.target(at)
            p = _processed(raw)
            if self.rng.random() < p[token] / q[token]:
                new.append(_EmittedToken(token, at, p, raw, "accepted", q))
                continue
            left = np.maximum(p - q, 0)
            left = left if left.sum() > 0 else p
            return [*new, _EmittedToken(_inverse(left / left.sum(), self.rng.random()), at, p, raw, "replaced", q)]
        at = text + drafts
        return [*new, self._drawn(at, self.models.target(at), "bonus")]

    def _drawn(self, text: Tokens, raw: Any, kind: str) -> _EmittedToken:
        p = _processed(raw)
        return _EmittedToken(_inverse(p, self.rng.random()), text, p, raw, kind)

    def _is_over(self, emitted: Sequence[_EmittedToken]) -> bool:
        if len(emitted) >= self.models.horizon:
            return True
        return bool(emitted) and self.models.eos is not None and emitted[-1].token == self.models.eos

    # What is returned.

    def _answer(
        self, prompt: Tokens, emitted: list[_EmittedToken], rounds: Any, told: Engine
    ) -> tuple[Tokens, dict[str, Any]]:
        new = tuple(item.token for item in emitted)
        self.completed += len(new)
        return new, {
            "logprobs": [_log(told._raw(place, emitted)) for place in range(len(new))],
            "processed_logprobs": told._processed_list(emitted, rounds),
            "cumulative_logprob": told._sum(emitted, rounds),
            "top_logprobs": [told._top(place, emitted) for place in range(len(new))],
            "scores": told._scores(emitted),
            "prompt_logprobs": told._of_prompt(prompt),
            **told._texts(new, rounds),
            "finish_reason": told._reason(new, rounds),
            **(told._statistics(prompt, new, rounds) if rounds else {}),
        }

    def _raw(self, place: int, emitted: list[_EmittedToken]) -> float:
        item = emitted[place]
        row = item.raw
        if self.fault == "raw read after temperature":
            row = item.row
        elif self.fault == "rows of another expansion":
            row = emitted[min(place + (item.kind == "accepted"), len(emitted) - 1)].raw
        return float(row[item.token])

    def _processed_list(self, emitted: list[_EmittedToken], rounds: Any) -> list[float | None]:
        result: list[float | None] = []
        for place, item in enumerate(emitted):
            if self.fault == "bonus has none" and item.kind == "bonus":
                continue
            mass = self._mass(item, self._row(place, emitted))
            result.append(mass if self.fault == "no logarithm" else _log(mass))
        if self.fault == "rejected kept in the list":
            for drafts, new in rounds:
                if new[-1].kind == "replaced":
                    token = drafts[len(new) - 1]
                    result.append(_log(float(new[-1].row[token])))
        return result

    def _row(self, place: int, emitted: list[_EmittedToken]) -> Any:
        """Return the target's row from which the log-probability of ``emitted[place]`` is computed.

        Without a fault this is the row from which the token was drawn.
        """
        item, before = emitted[place], emitted[max(place - 1, 0)].row
        left = item.row if item.draft is None else np.maximum(item.row - item.draft, 0)
        wrong = {
            "row before": before,
            "row after the token": emitted[min(place + 1, len(emitted) - 1)].row,
            "bonus by the last draft's row": before if item.kind == "bonus" else item.row,
            "before temperature": item.raw,
            "accepted by the draft's row": item.draft if item.kind == "accepted" else item.row,
            "replaced by the residual": left / left.sum() if item.kind == "replaced" and left.sum() > 0 else item.row,
        }
        return wrong.get(self.fault, item.row)

    def _mass(self, item: _EmittedToken, row: Any) -> float:
        mass = float(row[item.token])
        if item.kind != "accepted":
            return mass
        if self.fault == "accepted by min(1, p/q)":
            return min(1.0, mass / float(item.draft[item.token]))
        return 1.0 if self.fault == "accepted are certain" else mass

    def _sum(self, emitted: list[_EmittedToken], rounds: Any) -> float:
        total = sum(_log(float(item.row[item.token])) for item in emitted)
        if self.fault == "sum counts rejected":
            for drafts, new in rounds:
                if new[-1].kind == "replaced":
                    total += _log(float(new[-1].draft[drafts[len(new) - 1]]))
        return total

    def _top(self, place: int, emitted: list[_EmittedToken]) -> list[tuple[int, float]]:
        item = emitted[0] if self.fault == "list of the first row" else emitted[place]
        row = item.draft if self.fault == "list of the draft" and item.draft is not None else item.row
        order = sorted(range(len(row)), key=lambda token: (-row[token], token))
        if self.fault == "list lacks the likeliest":
            order = order[1:]
        listed = [(token, _log(float(row[token]))) for token in order[:TOP]]
        return listed[::-1] if self.fault == "least probable first" else listed

    def _scores(self, emitted: list[_EmittedToken]) -> list[Any]:
        rows = []
        for item in emitted:
            if self.fault == "scores lack the bonus" and item.kind == "bonus" and len(emitted) > 1:
                continue
            row = item.draft if self.fault == "scores of the draft" and item.kind == "accepted" else item.row
            with np.errstate(divide="ignore"):
                rows.append(np.log(row))
        return rows

    def _of_prompt(self, prompt: Tokens) -> list[float | None]:
        shift = 1 if self.fault == "prompt shifted" else 0
        rows = [self.models.target(prompt[: max(place - shift, 0)]) for place in range(1, len(prompt))]
        return [None, *(_log(float(row[token])) for row, token in zip(rows, prompt[1:], strict=True))]

    def _texts(self, new: Tokens, rounds: Any) -> dict[str, Any]:
        pieces = [PIECES[token % len(PIECES)] for token in new]
        chunks, snapshots = list(pieces), ["".join(pieces[:end]) for end in range(1, len(pieces) + 1)]
        text = "".join(pieces)
        if self.fault == "last piece held back" and len(pieces) > 1:
            text = "".join(pieces[:-1])
        if self.fault == "last chunk lost" and len(chunks) > 1:
            chunks = chunks[:-1]
        if self.fault == "chunk sent twice" and len(chunks) > 1:
            chunks = [chunks[0], *chunks]
        for drafts, emitted in rounds:
            if emitted[-1].kind == "replaced":
                rejected = PIECES[drafts[len(emitted) - 1] % len(PIECES)]
                if self.fault == "rejected in the text":
                    text += rejected
                if self.fault == "sent before verified":
                    snapshots = [rejected, *snapshots]
                break
        return {"text": text, "chunks": chunks, "snapshots": snapshots}

    def _reason(self, new: Tokens, rounds: Any) -> str:
        end = self.models.eos
        if self.fault == "always length" or end is None:
            return "length"
        if self.fault == "rejected end is the reason" and any(end in drafts for drafts, _ in rounds):
            return "stop"
        return "stop" if end in new else "length"

    def _statistics(self, prompt: Tokens, new: Tokens, rounds: Any) -> dict[str, Any]:
        accepted = [sum(item.kind == "accepted" for item in emitted) for _, emitted in rounds]
        counted = len(rounds) - (self.fault == "last round not counted") * (len(rounds) > 1)
        by_position = [sum(count > place for count in accepted) for place in range(GAMMA)]
        total, drafted = sum(accepted), sum(len(drafts) for drafts, _ in rounds)
        if self.fault == "rounds count drafts":
            counted += drafted
        per_round = total / counted + (self.fault != "a round without its bonus token")
        if self.fault == "bonus counted as accepted":
            total += len(rounds)
        if self.fault == "rejected counted as accepted":
            total = drafted
        if self.fault == "positions shifted":
            by_position = [0, *by_position[:-1]]
        rate = total / drafted
        if self.fault == "rate of rounds":
            rate = sum(count > 0 for count in accepted) / len(rounds)
        done = len(new) + (drafted if self.fault == "usage counts drafts" else 0)
        done = self.completed if self.fault == "usage of all requests" else done
        behind = sum(len(emitted) for _, emitted in rounds) if self.fault == "reasoning tokens behind the end" else done
        longer = int(self.fault == "histogram of lengths")
        return {
            "accepted": total,
            "drafted": drafted,
            "rejected": drafted if self.fault == "rejected counts drafts" else max(drafted - total, 0),
            "acceptance_histogram": {str(count + longer): accepted.count(count) for count in sorted(set(accepted))},
            "rounds": counted,
            "tokens_per_round": per_round,
            "acceptance_rate": rate,
            "accepted_per_position": by_position,
            "usage": {
                "prompt_tokens": len(prompt),
                "completion_tokens": done,
                "total_tokens": len(prompt) + done,
                "completion_tokens_details": {"reasoning_tokens": behind},
            },
        }


def _processed(raw: Any) -> Any:
    powers = np.asarray(raw, dtype=np.float64) ** (1 / TEMPERATURE)
    return powers / powers.sum()


def _inverse(pmf: Any, uniform: Any) -> int:
    return int(np.searchsorted(np.cumsum(pmf) / np.sum(pmf), uniform, side="right"))


def _log(mass: float) -> float:
    return math.log(mass) if mass > 0 else -math.inf


def text_of(new: Tokens) -> str:
    """Return the text of the tokens ``new``: the concatenation of one entry of ``PIECES`` for each."""
    return "".join(PIECES[token % len(PIECES)] for token in new)


def returning(fault: str, scenario: EngineScenario) -> Made:
    """Return the engine with the fault named ``fault`` ("": none), which decodes the prompt of ``scenario``."""
    engine = Engine(scenario, fault)
    return Made(engine.speculative, engine.plain, stops=True)


def in_turn(fault: str, scenario: EngineScenario) -> Made:
    """Return the engine with the fault named ``fault``, whose calls take a prompt, so that it serves several in turn.

    ``scenario`` has its models.
    """
    engine, plain = Engine(scenario, fault), Engine(scenario)

    def decode(prompt: Tokens) -> tuple[Tokens, dict[str, Any]]:
        return engine.speculative(prompt)

    def decode_plainly(prompt: Tokens) -> tuple[Tokens, dict[str, Any]]:
        return plain.plain(prompt)

    return Made(decode, decode_plainly)


SEEDS: Mapping[str, tuple[str, str]] = {
    "coins of the library": ("seed", "plausible"),
    "generator kept between calls": ("seed", "plausible"),
    "seed joined with the number of calls": ("seed", "plausible"),
    "seed left out for the bonus": ("seed", "plausible"),
    "draws not given back": ("seed-as-plain", "onnxruntime-genai PR #2528"),
    "a coin for each draft": ("seed-as-plain", "plausible"),
    "bonus from a separate random stream": ("seed-as-plain", "plausible"),
    "position counted in rounds": ("seed-as-plain", "plausible"),
    "one stream for all rows": ("batch", "plausible"),
    "seed by the slot": ("batch", "plausible"),
    "seed of the first row": ("batch", "plausible"),
    "state of the request before": ("batch", "plausible"),
    "stream begins again": ("resume", "plausible"),
    "position after the prompt": ("resume", "plausible"),
    "prompt's last token left out": ("resume", "plausible"),
    "seed of the prompt's length": ("resume", "plausible"),
}
"""Fault -> (the promise that it breaks, its record)."""


DRAFTS_UNSEEDED = "drafts draw without a seed"
"""A control: drafts draw without a seed, and the text still depends on the seed alone."""


class SeededEngine:
    """An engine that draws each token from p with a uniform that depends on (seed, position) only.

    A draft is accepted if it equals this token. So a seed determines the text, also without speculation and in any
    batch.
    """

    def __init__(self, scenario: EngineScenario, fault: str = "") -> None:
        """Initialise the engine on the models of ``scenario``, with the fault named ``fault`` ("": none)."""
        self.models, self.fault = scenario, fault
        self.kept: Any = None
        self.before = 0

    def decode(self, prompts: Sequence[Tokens], seeds: Sequence[int], *, drafts: bool = True) -> list[Tokens]:
        """Return the new tokens of each of ``prompts``, decoded with its seed of ``seeds``.

        With ``drafts`` the engine speculates; otherwise it decodes token by token.
        """
        shared = np.random.default_rng(seeds[0])
        result = []
        for slot, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True)):
            own = {"seed by the slot": seed + slot, "seed of the first row": seeds[0]}.get(self.fault, seed)
            if self.fault in {"state of the request before", "seed joined with the number of calls"}:
                own += self.before
            if self.fault == "seed of the prompt's length":
                own += len(prompt)
            stream = shared if self.fault == "one stream for all rows" else np.random.default_rng(own)
            if self.fault == "generator kept between calls":
                self.kept = stream = self.kept or stream
            self.before += 1
            result.append(self._text(tuple(prompt), own, stream, drafts=drafts))
        return result

    def _uniform(self, seed: int, position: int, stream: Any) -> float:
        in_stream = {"one stream for all rows", "generator kept between calls", "stream begins again"}
        if self.fault in in_stream:
            return float(stream.random())
        return float(np.random.default_rng((seed, position)).random())

    def _text(self, prompt: Tokens, seed: int, stream: Any, *, drafts: bool) -> Tokens:
        new: Tokens = ()
        rounds = 0
        while len(new) < self.models.horizon:
            text = prompt + new
            if self.fault == "prompt's last token left out" and not new and len(prompt) > 3:
                text = prompt[:-1]
            guesses: Tokens = ()
            for _ in range(GAMMA if drafts else 0):
                q = self.models.draft(text + guesses)
                uniform = np.random.random() if self.fault == DRAFTS_UNSEEDED else None  # noqa: NPY002 - no fault
                guesses += (int(np.argmax(q)) if uniform is None else _inverse(q, uniform),)
            lost = 0
            for place in range(len(guesses) + 1):
                last = place == len(guesses)
                position = self._position(len(prompt), len(new), rounds, place, last=last) if drafts else None
                uniform = self._uniform(seed, len(prompt) + len(new) if position is None else position, stream)
                if self.fault == ("seed left out for the bonus" if last else "coins of the library"):
                    uniform = np.random.random()  # noqa: NPY002 - the fault
                token = _inverse(self.models.target(text + guesses[:place]), uniform)
                new += (token,)
                if last or token != guesses[place]:
                    lost = len(guesses) - place
                    break
            rounds += 1
            self.given = self.lost(rounds - 1) + lost
        return new[: self.models.horizon]

    def _position(self, prompt: int, new: int, rounds: int, place: int, *, last: bool) -> int:
        """Return the index of the uniform of a new token in the stream of its seed; the fault may change the index.

        ``prompt`` and ``new`` are the lengths of the prompt and the new text before the token, ``rounds`` is the number
        of rounds so far, and ``place`` the index of the token in its round. ``last``: it is the bonus token.
        """
        right = prompt + new
        wrong = {
            "position after the prompt": new,
            "position counted in rounds": rounds * (GAMMA + 1) + place,
            "draws not given back": right + self.lost(rounds),
            "bonus from a separate random stream": right + 1000 * last,
            "a coin for each draft": 2 * right,
        }
        return wrong.get(self.fault, right)

    def lost(self, rounds: int) -> int:
        """Return how many drafts of the ``rounds`` rounds so far were not accepted; 0 before the first round.

        A faulty engine draws a uniform for each of these drafts, so its later positions use wrong uniforms.
        """
        return self.given if rounds else 0

    given = 0


def seeded_engine(fault: str, scenario: EngineScenario) -> Made:
    """Return the engine for ``scenario`` that draws by seed and position, with the fault named ``fault`` ("": none)."""
    engine, plain = SeededEngine(scenario, fault), SeededEngine(scenario)
    promise = SEEDS.get(fault, ("batch", ""))[0]
    if promise == "batch":
        return Made(
            engine.decode,
            lambda prompts, seeds: plain.decode(prompts, seeds, drafts=False),
            batched=True,
        )
    return Made(
        lambda prompt, seed: engine.decode([prompt], [seed])[0],
        lambda prompt, seed: plain.decode([prompt], [seed], drafts=False)[0],
    )
