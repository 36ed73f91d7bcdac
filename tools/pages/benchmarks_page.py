"""Write the table of ``docs/benchmarks.md``: what things take, in seconds of one processor and in reference loops.

Run by ``nox -s pages -- benchmarks``. Seconds depend on the machine, and a reference loop that is measured beside them
depends on it in much the same way: the column of loops can be compared between machines.
"""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reference import ALGORITHMS, Task
from reference.algorithms import speculative_sampling
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import decoder_law, program_law
from specverify.laws.tables import as_float64, mixed_with, softmax_table, table_pair
from specverify.run.stats import SIZES
from specverify.subjects.algorithm import sampled_setting
from specverify.subjects.subject import Method
from specverify.testing import check_verifier

EQUAL, PLAIN, LARGE = 200_000, 1000, 20_000_000
"""Samples of each row: of both methods; of those that are drawn run by run and multiplied; of a fine run."""
PAGE = """# Benchmarks

Written by `nox -s pages -- benchmarks`. Seconds are CPU seconds of one processor; no test depends on them. A reference
loop is {iterations:,} rounds of an empty loop of CPython, {loop:.3f} s here; copying memory goes at
{bandwidth:.1f} GB/s. {machine}.

| what | how much | seconds | reference loops |
|---|---|---:|---:|
{rows}

Divided sampling takes {ratio:.0f} times less than sampling run by run, over all {algorithms} rows of the registry at
{equal:,} samples each; the latter are {plain:,} samples of each row, multiplied. A path of an enumeration is one run.
"""
ITERATIONS = 10_000_000


class Figure(NamedTuple):
    """One line of the table."""

    what: str
    amount: str
    seconds: float


def seconds_of(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of ``action`` and what it returned."""
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def reference_loop() -> float:
    """Return the seconds of an empty loop, the least of three."""

    def loop() -> None:
        for _ in range(ITERATIONS):
            pass

    return min(seconds_of(loop)[0] for _ in range(3))


def bandwidth() -> float:
    """Return the gigabytes that are copied in a second, the most of five."""
    source = np.ones(2**25)
    target = np.empty_like(source)
    return max(source.nbytes / 1e9 / seconds_of(lambda: np.copyto(target, source))[0] for _ in range(5))


def divided_against_plain() -> list[Figure]:
    """Return what samples of every row of the registry take: divided, run by run, and divided as ``stats`` does."""
    totals = {EQUAL: 0.0, LARGE: 0.0, PLAIN: 0.0}
    for row, size in zip(ALGORITHMS, cycle(SIZES), strict=False):
        divided, plain = (sampled_setting(row, *size, method=method) for method in (Method.DIVIDED, Method.PLAIN))
        plain.sample(10, 0)
        for setting, number in ((plain, PLAIN), (divided, EQUAL), (divided, LARGE)):
            totals[number] += seconds_of(lambda setting=setting, number=number: setting.sample(number, 1))[0]
    rows = f"{len(ALGORITHMS)} rows"
    return [
        Figure("samples run by run", f"{rows}, {EQUAL:,} each", totals[PLAIN] * EQUAL / PLAIN),
        Figure("divided samples", f"{rows}, {EQUAL:,} each", totals[EQUAL]),
        Figure("divided samples", f"{rows}, {LARGE:,} each", totals[LARGE]),
    ]


def enumerations() -> Iterator[Figure]:
    """Yield what exact laws of speculative sampling take, in the vocabulary, in gamma and in the horizon."""
    for vocabulary, gamma, horizon in ((2, 2, 4), (4, 2, 4), (3, 1, 5), (3, 2, 5), (3, 3, 5), (3, 2, 3), (3, 2, 7)):
        for kind, convert in (("rationals", lambda model: model), ("float64", as_float64)):
            target, draft = map(convert, table_pair("generic", vocabulary, 0))
            decoder = speculative_sampling.build(Task(target, draft, horizon=horizon), gamma)
            decoder_law(decoder, (0,))
            seconds, law = seconds_of(lambda decoder=decoder: decoder_law(decoder, (0,)))
            yield Figure(
                f"exact law, {kind}", f"V={vocabulary} gamma={gamma} horizon={horizon}: {law.runs} runs", seconds
            )
    target = softmax_table(5000, 1.0, seed=1)
    draft = mixed_with(target, softmax_table(5000, 1.0, seed=2), share=0.4)
    decoder = speculative_sampling.build(Task(target, draft, horizon=2), 1)
    start = decoder.init((0,))
    seconds, law = seconds_of(lambda: program_law(lambda draws: decoder.step(draws, start), budget=10_000))
    yield Figure("one round, float64, cut off", f"V=5000 gamma=1: {law.runs} runs", seconds)


def interception() -> Iterator[Figure]:
    """Yield what 256 runs of eight coins take: asked for by name, and as calls of other libraries that are answered."""
    coin = np.array([0.25, 0.75])

    def by_name(draws: Any) -> int:
        return sum(draws.categorical(coin, ("coin", place)) for place in range(8))

    def of_numpy(draws: Any) -> int:
        with answered_everywhere(draws):
            rng = np.random.default_rng(0)
            return sum(bool(rng.random() < 0.25) for _ in range(8))

    def of_torch(draws: Any) -> int:
        import torch

        with answered_everywhere(draws):
            return sum(bool((torch.rand(1) < 0.25).all()) for _ in range(8))

    for name, program in (("by name", by_name), ("of NumPy", of_numpy), ("of torch", of_torch)):
        program_law(program)
        seconds, law = seconds_of(lambda program=program: program_law(program))
        yield Figure(f"coins {name}", f"{law.runs} runs of 8 draws", seconds)


def numpy_sampler(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Return what a rejection sampler of one row emits, in NumPy."""
    for place, token in enumerate(draft_tokens):
        if np.random.random() >= p[place, token] / q[place, token]:  # noqa: NPY002 - as it is written by many
            left = np.maximum(p[place] - q[place], 0)
            left = left if left.any() else p[place]
            return [*draft_tokens[:place], np.random.choice(len(left), p=left / left.sum())]  # noqa: NPY002
    return [*draft_tokens, np.random.choice(p.shape[1], p=p[-1])]  # noqa: NPY002


def torch_sampler(p: Any, q: Any, draft_tokens: Any) -> Any:
    """Return the same in torch, all coins at once."""
    import torch

    places = torch.arange(len(draft_tokens))
    kept = torch.rand(len(draft_tokens)) < p[places, draft_tokens] / q[places, draft_tokens]
    accepted = int(kept.int().cumprod(0).sum())
    weights = p[accepted]
    if accepted < len(draft_tokens):
        left = (p[accepted] - q[accepted]).clamp(min=0)
        weights = left if left.any() else weights
    return torch.cat([draft_tokens[:accepted], torch.multinomial(weights, 1)])


def samplers() -> Iterator[Figure]:
    """Yield what all exact checks of a sampler of rows take."""
    for library, verify in (("NumPy", numpy_sampler), ("torch", torch_sampler)):
        seconds, verdicts = seconds_of(lambda verify=verify: check_verifier(verify))
        cases = sum(verdict.figures["cases"] for verdict in verdicts)
        yield Figure(f"every check of a row sampler of {library}", f"{len(verdicts)} checks, {cases:,} cases", seconds)


def commands() -> Iterator[Figure]:
    """Yield what commands take, with the start of the interpreter."""
    for command in ("--help", "list", "stats --quick --jobs 1"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "specverify", *command.split()], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        yield Figure(f"`specverify {command}`", "", after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def page() -> str:
    """Measure everything and return the page."""
    loop = reference_loop()
    samples = divided_against_plain()
    figures = [*samples, *enumerations(), *interception(), *samplers(), *commands()]
    return PAGE.format(
        iterations=ITERATIONS,
        loop=loop,
        bandwidth=bandwidth(),
        machine=f"{platform.machine()}, CPython {platform.python_version()}, NumPy {np.__version__}",
        rows="\n".join(
            f"| {item.what} | {item.amount} | {item.seconds:.3g} | {item.seconds / loop:.2g} |" for item in figures
        ),
        ratio=samples[0].seconds / samples[1].seconds,
        algorithms=len(ALGORITHMS),
        equal=EQUAL,
        plain=PLAIN,
    )


if __name__ == "__main__":
    text = page()
    print(text)
    for name in sys.argv[1:]:
        Path(name).write_text(text, "utf-8")
