"""Counts how often the checks of promises refute random right engines; writes the table of ``docs/false-alarms.md``.

Run ``python -m tools.pages.promise_alarms docs/false-alarms.md``: some minutes of a processor. With a number and names
of promises after the page, ``25 drafts seed``, only their rows are counted, with 25 engines each. An engine is drawn
from the rule that accepts, the number of drafts, the bonus token, the temperature, the library of the random numbers,
the form of the call and the shape of the answer. The check of one promise examines it and must not refute it.
"""

from __future__ import annotations

import math
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import binomtest

from specverify.checks.forgetting import forget_laws
from specverify.reference import Tokens
from specverify.testing import EngineScenario, Made, check_engine

RUNS = 5
"""Random engines of each promise, at least."""
CHECKS = {
    "values": "values_match",
    "statistics": "statistics_match",
    "seed": "seed_repeats",
    "seed-as-plain": "seed_as_plain",
    "batch": "batch_is_alone",
    "resume": "resume_continues",
    "drafts": "drafts_follow_the_text",
    "allowed": "constraint_is_kept",
}
VALUES = ("logprobs", "top_logprobs", "cumulative_logprob", "text")
STATISTICS = ("accepted", "drafted", "rounds", "usage")
MARKS = re.compile(r"(<!-- computed: promises -->\n).*?(<!-- end -->)", re.DOTALL)


class Traits(NamedTuple):
    """What distinguishes a random right engine."""

    rule: str
    """``chain``: accept with min(1, p/q); ``agreement``: draw from p and keep a draft that is equal."""
    gamma: int
    bonus: bool
    temperature: float
    library: str
    form: str
    shape: str
    values: tuple[str, ...]


def random_traits(rng: np.random.Generator, promise: str) -> Traits:
    """Return the traits of one engine; a promise of seeds needs a text that a seed decides, so agreement."""
    seeded = promise in {"seed-as-plain", "batch", "resume"}
    number = int(rng.integers(1, len(VALUES) + 1))
    return Traits(
        rule="agreement" if seeded else str(rng.choice(["chain", "agreement"])),
        gamma=int(rng.integers(1, 4)),
        bonus=bool(rng.integers(2)),
        temperature=float(rng.choice([1.0, 0.5, 2.0])),
        library=str(rng.choice(["numpy", "random", "torch"])),
        form=str(rng.choice(["batch", "prompt"])) if promise in {"batch", "resume"} else "prompt",
        shape=str(rng.choice(["pair", "mapping", "object"])),
        values=tuple(map(str, rng.choice(VALUES, number, replace=False))),
    )


def inverse(pmf: Any, uniform: float) -> int:
    """Return the token at a uniform number."""
    return int(np.searchsorted(np.cumsum(pmf) / np.sum(pmf), uniform, side="right"))


def seeded_uniform(library: str, seed: int, *place: int) -> float:
    """Return the uniform number of a seed and a place."""
    if library == "random":
        return random.Random(f"{seed} {place}").random()
    if library == "torch":
        number = int(np.random.SeedSequence((seed, *place)).generate_state(1)[0])
        return float(torch.rand((), generator=torch.Generator().manual_seed(number), dtype=torch.float64))
    return float(np.random.default_rng((seed, *place)).random())


def open_uniform(library: str) -> Any:
    """Return a uniform number of the generator of a library."""
    if library == "random":
        return random.random()
    return torch.rand((), dtype=torch.float64) if library == "torch" else np.random.random()  # noqa: NPY002 - as engines


class Engine:
    """A right engine with the given traits in a scenario."""

    def __init__(self, scenario: EngineScenario, traits: Traits, promise: str) -> None:
        """Initialise the engine; an ``allowed`` promise forbids that a token follows itself."""
        self.scenario, self.traits, self.promise = scenario, traits, promise

    def allowed(self, new: Tokens) -> Any:
        """Return the mask: a token never follows itself."""
        return np.array([not new or token != new[-1] for token in range(self.scenario.vocabulary)], dtype=float)

    def row(self, model: Callable[[Tokens], Any], prompt: Tokens, new: Tokens) -> Any:
        """Return the processed row behind new tokens."""
        weights = np.asarray(model(prompt + new), dtype=float) ** (1 / self.traits.temperature)
        if self.promise == "allowed":
            masked = weights * self.allowed(new)
            weights = masked if masked.sum() > 0 else weights
        return weights / weights.sum()

    def decode(self, prompt: Tokens, seed: int | None, *, drafts: bool = True) -> tuple[Tokens, list[Any], list[int]]:
        """Return the new tokens, their rows, and the number of accepted drafts of each round."""
        size, new, rows, counts = len(prompt), (), [], []

        def uniform(*place: int) -> Any:
            return (
                open_uniform(self.traits.library) if seed is None else seeded_uniform(self.traits.library, seed, *place)
            )

        while len(new) < self.scenario.horizon:
            guesses, qs = (), []
            for _ in range(self.traits.gamma if drafts else 0):
                qs.append(self.row(self.scenario.draft, prompt, new + guesses))
                at = size + len(new) + len(guesses)
                chain = self.traits.rule == "chain"
                guesses += (inverse(qs[-1], uniform(at, 1)) if chain else int(np.argmax(qs[-1])),)
            accepted, ended = 0, False
            for guess, q in zip(guesses, qs, strict=True):
                p, at = self.row(self.scenario.target, prompt, new), size + len(new)
                token, kept = self.verified(guess, p, q, uniform, at)
                new, rows, accepted = (*new, token), [*rows, p], accepted + kept
                if not kept:
                    ended = True
                    break
            if not ended and (self.traits.bonus or not guesses):
                p = self.row(self.scenario.target, prompt, new)
                new, rows = (*new, inverse(p, uniform(size + len(new)))), [*rows, p]
            counts.append(accepted)
        end = self.scenario.horizon
        return new[:end], rows[:end], counts

    def verified(self, guess: int, p: Any, q: Any, uniform: Callable[..., Any], at: int) -> tuple[int, bool]:
        """Return the token at a place, and whether it is the accepted draft."""
        if self.traits.rule == "agreement":
            token = inverse(p, uniform(at))
            return token, token == guess
        if uniform(at, 2) < p[guess] / q[guess]:
            return guess, True
        left = np.maximum(p - q, 0)
        return inverse(left if left.sum() > 0 else p, uniform(at, 3)), False

    def answer(self, prompt: Tokens) -> Any:
        """Return the tokens with the values or statistics of the promise."""
        new, rows, counts = self.decode(prompt, None)
        values = self.values(new, rows) if self.promise == "values" else self.statistics(prompt, new, counts)
        if self.traits.shape == "pair":
            return new, values
        named = {"token_ids": list(new), **values}
        return named if self.traits.shape == "mapping" else SimpleNamespace(**named)

    def values(self, new: Tokens, rows: Sequence[Any]) -> dict[str, Any]:
        """Return the promised values of a text."""
        logs = [math.log(row[token]) if row[token] > 0 else -math.inf for row, token in zip(rows, new, strict=True)]
        top = [[(int(token), _log(row[token])) for token in np.argsort(-row, kind="stable")[:2]] for row in rows]
        every = {"logprobs": logs, "top_logprobs": top, "cumulative_logprob": sum(logs), "text": text_of(new)}
        return {name: every[name] for name in self.traits.values}

    def statistics(self, prompt: Tokens, new: Tokens, counts: Sequence[int]) -> dict[str, Any]:
        """Return the statistics of a run."""
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(new), "total_tokens": len(prompt) + len(new)}
        drafted = self.traits.gamma * len(counts)
        return {"accepted": sum(counts), "drafted": drafted, "rounds": len(counts), "usage": usage}

    def made(self) -> Made:
        """Return the calls of the engine in the form of its promise."""

        def plain(prompt: Tokens) -> Tokens:
            return self.decode(tuple(prompt), None, drafts=False)[0]

        if self.promise in {"values", "statistics"}:
            return Made(lambda prompt: self.answer(tuple(prompt)), plain)
        if self.promise == "drafts":
            return Made(lambda prompt: self.decode(tuple(prompt), None)[0], plain)
        if self.promise == "allowed":
            return Made(lambda prompt: self.decode(tuple(prompt), None)[0], allowed=self.allowed)
        if self.traits.form == "batch":
            return Made(
                lambda prompts, seeds: [self.decode(tuple(p), s)[0] for p, s in zip(prompts, seeds, strict=True)],
                batched=True,
            )
        return Made(
            lambda prompt, seed: self.decode(tuple(prompt), seed)[0],
            lambda prompt, seed: self.decode(tuple(prompt), seed, drafts=False)[0],
        )


def _log(mass: float) -> float:
    return math.log(mass) if mass > 0 else -math.inf


def text_of(new: Tokens) -> str:
    """Return the text of new tokens: a letter for each."""
    return "".join(chr(97 + token % 26) for token in new)


def status_of(promise: str, index: int, seed: int = 0) -> tuple[str, str]:
    """Return the verdict on one random right engine, and what was said of it."""
    traits = random_traits(np.random.default_rng([seed, index, list(CHECKS).index(promise)]), promise)
    options: dict[str, Any] = {}
    if promise == "values":
        options["returns"] = {name: text_of if name == "text" else "processed" for name in traits.values}
    elif promise == "statistics":
        options["returns"] = STATISTICS
    elif promise != "allowed":
        options["promises"] = {promise}
    forget_laws()
    verdicts = check_engine(
        lambda scenario: Engine(scenario, traits, promise).made(),
        checks=[CHECKS[promise]],
        on_fail=None,
        quick=True,
        **options,
    )
    (verdict,) = (verdict for verdict in verdicts if verdict.check == CHECKS[promise])
    return verdict.status.value, f"{traits}: {verdict.statement}"


def alarms_table(runs: int = RUNS, promises: Sequence[str] = tuple(CHECKS), seed: int = 0) -> str:
    """Return the table of counts; a refutation is listed below it."""
    lines, examples = [], []
    for promise in promises:
        results = [status_of(promise, index, seed) for index in range(runs)]
        counts = Counter(status for status, _ in results)
        accused = counts["refuted"] + counts["unusable"]
        high = float(binomtest(accused, runs).proportion_ci(0.99).high)
        lines.append(f"| `{promise}` | `{CHECKS[promise]}` | {runs} | {accused} | {counts['unknown']} | {high:.2g} |\n")
        examples += [f"\n* `{promise}`: {said}\n" for status, said in results if status in {"refuted", "unusable"}]
    head = "| promise | check | random right engines | refuted | unknown | rate, at most (99 %) |\n"
    head += "|---|---|---:|---:|---:|---:|\n"
    return head + "".join(lines) + "".join(examples)


def with_table(text: str, table: str) -> str:
    """Return the page with its table of promises written anew."""
    return MARKS.sub(lambda found: found[1] + table + found[2], text)


def with_rows(text: str, table: str) -> str:
    """Return the page with the rows of ``table`` in place of its rows of the same promises."""
    for row in table.splitlines():
        text = re.sub(rf"^{re.escape(row.split('` |')[0])}` \|.*$", lambda _, row=row: row, text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    page, rest = Path(sys.argv[1]), sys.argv[2:]
    text = page.read_text("utf-8")
    page.write_text(
        with_rows(text, alarms_table(int(rest[0]), rest[1:])) if rest else with_table(text, alarms_table()), "utf-8"
    )
