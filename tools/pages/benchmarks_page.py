"""Write ``docs/benchmarks.md``: how long operations take, in CPU seconds and in reference loops.

Run by ``nox -s pages -- benchmarks``. Seconds depend on the machine and on its load. A reference loop is measured
before and after each figure and depends on both in much the same way, so figures in loops can be compared between
machines.

Each set of checks runs in its own process, as a user would run it: NumPy's calls take fewer runs if torch is not
imported. ``python -m tools.pages.benchmarks_page figures NAME`` prints the figures of one set as JSON.
"""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reference import ALGORITHMS, Task
from reference.algorithms import speculative_sampling
from specverify.checks import EXACT_CHECKS
from specverify.checks.compared_laws import law_of_opened
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import DEFAULT_RUNS, decoder_law, program_law
from specverify.laws.tables import as_float64, mixed_with, softmax_table, table_pair
from specverify.mutants.made_engines import serving
from specverify.run.catalogue import find_subject
from specverify.run.stats import SIZES
from specverify.run.verify import Checklist, verify_subject
from specverify.statistics.goodness_of_fit import detectable_total_variation, goodness_of_fit
from specverify.subjects.algorithm import sampled_setting
from specverify.subjects.subject import Method
from specverify.subjects.verifier import verifier_subject
from specverify.testing import check_engine, check_verifier

EQUAL, PLAIN, LARGE = 200_000, 1000, 20_000_000
"""Samples of each row: of both methods; of those that are drawn run by run and multiplied; of a fine run."""
SAMPLES, ALARM, MISS = 100_000, 1e-6, 1e-3
"""Of the test that a user would write instead: texts, probability of a false alarm, probability of a miss."""
PAGE = """# Benchmarks

This page states how much CPU time specverify takes. `nox -s pages -- benchmarks` measures it again. Seconds are CPU
seconds on one processor. To compare machines, the last column divides the seconds by the time of a *reference loop*,
{iterations:,} rounds of an empty loop of CPython. The loop is timed before and after each figure, because the load of
the machine changes: here the loop took from about {shortest:.2f} s to {longest:.2f} s. So compare two
lines by their loops, not by their seconds. Each figure is measured once, so small differences between lines mean
nothing. Machine: {machine}, memory copied at {bandwidth:.1f} GB/s.

## Checks, and the test that a user would write instead

The chi-square test compares {samples:,} texts of the same verifier with the target's law, at a false-alarm probability
of {alarm:g}. It examines one pair of models with gamma 3. Its rows in the table, one for each library, state the total
variation that it detects with probability {power:g}. The checks compute exact laws in all their cases. They also
examine inputs, outputs, the use of random numbers, and random numbers at the ends of their interval, which samples
hardly ever have.

A *row sampler* is a verifier of one sequence that is written with the named library. A *made engine* is a small
engine in Python that decodes batches of prompts; `check_engine(make)` calls `make` to build it for each pair of
models. *Quick* is the [quick plan](quick.md), a fixed part of the cases. The column "how much" states the size of the
work.

| what | how much | seconds | reference loops |
|---|---|---:|---:|
{checks}

## Parts

* *Samples run by run*: every sample is a run of its own; the time is *extrapolated* from {plain:,} samples. *Divided
  samples*: at each draw one multinomial divides the number of samples among the outcomes, and each outcome is followed
  once ([statistics](statistics.md)).
* *Coins* are random decisions between two outcomes; each line enumerates all outcomes of 8 coins. *By name*: drawn by
  `draws.categorical`. *Of NumPy* and *of torch*: drawn by intercepted calls of the library.
* *Exact law*: the enumeration of one decoder, with V the vocabulary size, gamma the number of drafts a round, and
  horizon the number of new tokens. *Runs* are the enumerated paths. *Cut off*: not all paths were followed.

| what | how much | seconds | reference loops |
|---|---|---:|---:|
{rows}

Divided sampling takes {ratio:.0f} times less CPU time than sampling run by run, for {equal:,} samples of each of the
{algorithms} algorithms of the registry.
"""
ITERATIONS = 10_000_000


class Figure(NamedTuple):
    """One line of a table."""

    what: str
    amount: str
    seconds: float
    loops: float = 0.0
    """The same in reference loops."""


def seconds_of(action: Callable[[], Any]) -> tuple[float, Any]:
    """Call ``action``; return the CPU seconds that it took, and its result."""
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def reference_loop() -> float:
    """Return the CPU seconds of an empty loop of fixed length: the minimum of three runs."""

    def loop() -> None:
        for _ in range(ITERATIONS):
            pass

    return min(seconds_of(loop)[0] for _ in range(3))


def beside_loops(figures: Iterator[Figure]) -> Iterator[Figure]:
    """Yield each figure with its cost in reference loops; the loop is measured before and after the figure."""
    before = reference_loop()
    for figure in figures:
        after = reference_loop()
        yield figure._replace(loops=figure.seconds / ((before + after) / 2))
        before = after


def bandwidth() -> float:
    """Return the memory bandwidth in gigabytes copied per second: the maximum of five runs."""
    source = np.ones(2**25)
    target = np.empty_like(source)
    return max(source.nbytes / 1e9 / seconds_of(lambda: np.copyto(target, source))[0] for _ in range(5))


def divided_against_plain() -> Iterator[Figure]:
    """Yield the cost of sampling each row of the registry in three ways.

    The samples are drawn by dividing counts among outcomes, run by run, and by dividing as ``stats`` does.
    """
    totals = {EQUAL: 0.0, LARGE: 0.0, PLAIN: 0.0}
    for row, size in zip(ALGORITHMS, cycle(SIZES), strict=False):
        divided, plain = (sampled_setting(row, *size, method=method) for method in (Method.DIVIDED, Method.PLAIN))
        plain.sample(10, 0)
        for setting, number in ((plain, PLAIN), (divided, EQUAL), (divided, LARGE)):
            totals[number] += seconds_of(lambda setting=setting, number=number: setting.sample(number, 1))[0]
    rows = f"{len(ALGORITHMS)} algorithms"
    yield Figure("samples run by run, extrapolated", f"{rows}, {EQUAL:,} each", totals[PLAIN] * EQUAL / PLAIN)
    yield Figure("divided samples", f"{rows}, {EQUAL:,} each", totals[EQUAL])
    yield Figure("divided samples", f"{rows}, {LARGE:,} each", totals[LARGE])


def enumerations() -> Iterator[Figure]:
    """Yield the cost of exact laws of speculative sampling for growing vocabulary, gamma and horizon."""
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
    """Yield the cost of 256 runs of eight coins, drawn from ``Draws`` or by intercepted library calls."""
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
    """Return the tokens that a rejection sampler of one sequence emits, in NumPy."""
    for place, token in enumerate(draft_tokens):
        if np.random.random() >= p[place, token] / q[place, token]:  # noqa: NPY002 - as it is written by many
            left = np.maximum(p[place] - q[place], 0)
            left = left if left.any() else p[place]
            return [*draft_tokens[:place], np.random.choice(len(left), p=left / left.sum())]  # noqa: NPY002
    return [*draft_tokens, np.random.choice(p.shape[1], p=p[-1])]  # noqa: NPY002


def torch_sampler(p: Any, q: Any, draft_tokens: Any) -> Any:
    """Return the tokens that a rejection sampler of one sequence emits, in torch, with all coins drawn in one call."""
    import torch

    places = torch.arange(len(draft_tokens))
    kept = torch.rand(len(draft_tokens)) < p[places, draft_tokens] / q[places, draft_tokens]
    accepted = int(kept.int().cumprod(0).sum())
    weights = p[accepted]
    if accepted < len(draft_tokens):
        left = (p[accepted] - q[accepted]).clamp(min=0)
        weights = left if left.any() else weights
    return torch.cat([draft_tokens[:accepted], torch.multinomial(weights, 1)])


def jax_sampler(p: Any, q: Any, draft_tokens: Any) -> Any:
    """Return the tokens that a rejection sampler of one sequence emits, in JAX; its key is drawn from NumPy."""
    import jax
    import jax.numpy as jnp

    coins, last = jax.random.split(jax.random.key(np.random.randint(2**31 - 1)))  # noqa: NPY002 - as above
    drafts = len(draft_tokens)
    places = jnp.arange(drafts)
    kept = jax.random.uniform(coins, (drafts,)) * q[places, draft_tokens] < p[places, draft_tokens]
    accepted = int(jnp.cumprod(kept.astype(jnp.int32)).sum())
    weights = p[accepted]
    if accepted < drafts:
        left = jnp.maximum(p[accepted] - q[accepted], 0)
        weights = jnp.where(left.sum() > 0, left, weights)
    return [*map(int, draft_tokens[:accepted]), jax.random.categorical(last, jnp.log(weights))]


SAMPLERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "numpy": ("NumPy", numpy_sampler),
    "torch": ("torch", torch_sampler),
    "jax": ("JAX", jax_sampler),
}


def checks(name: str, *, quick: bool) -> Iterator[Figure]:
    """Yield the cost of the checks of a sampler of one sequence, or of a synthetic engine, by ``name``."""
    kind = "the quick checks" if quick else "every check"
    if name == "engine":
        what, check = "a made engine", partial(check_engine, partial(serving, ""), quick=quick)
    else:
        library, verify = SAMPLERS[name]
        what, check = f"a row sampler of {library}", partial(check_verifier, verify, quick=quick)
    if name in {"torch", "jax"}:
        __import__(name)
    seconds, verdicts = seconds_of(check)
    cases = sum(verdict.figures["cases"] for verdict in verdicts)
    yield Figure(f"{kind} of {what}", f"{len(verdicts)} checks, {cases:,} cases", seconds)


def chi_square(name: str) -> Iterator[Figure]:
    """Yield the cost of a chi-square test of a verifier's samples, and the total variation that it detects."""
    library, verify = SAMPLERS[name]
    (setting,) = verifier_subject(verify, "sampler").settings
    law = setting.law()
    seconds, _ = seconds_of(lambda: goodness_of_fit(setting.sample(SAMPLES, 1), law))
    sees = detectable_total_variation(law, SAMPLES, ALARM, MISS)
    amount = f"{SAMPLES:,} texts of one pair of models: it detects a total variation of {sees:.2g}"
    yield Figure(f"a chi-square test of a row sampler of {library}", amount, seconds)


def assisted() -> Iterator[Figure]:
    """Yield the cost of assisted generation of transformers: the law of five new tokens, and every exact check."""
    from specverify.engines.huggingface.programs import FIVE_TOKENS, assisted_engine, engine_program

    program = engine_program(FIVE_TOKENS, assisted_engine)
    seconds, law = seconds_of(lambda: law_of_opened(program.open, DEFAULT_RUNS, 1))
    yield Figure("five tokens of assisted generation of transformers", f"exact law: {law.runs} runs", seconds)
    subject = find_subject("hf:assisted")
    seconds, verdicts = seconds_of(lambda: list(verify_subject(subject, Checklist(EXACT_CHECKS))))
    cases = sum(verdict.figures.get("cases", 0) for verdict in verdicts)
    yield Figure("every exact check of `hf:assisted`", f"{len(verdicts)} checks, {cases:,} cases", seconds)


CHECKS: dict[str, Callable[[], Iterator[Figure]]] = {
    **{f"{name}-{kind}": partial(checks, name, quick=kind == "quick")
       for name in SAMPLERS for kind in ("quick", "full")},
    "numpy-chi-square": partial(chi_square, "numpy"),
    "torch-chi-square": partial(chi_square, "torch"),
    "engine-quick": partial(checks, "engine", quick=True),
    "transformers": assisted,
}  # fmt: skip
"""Name -> figures that are measured in a process of their own."""


def in_own_process(name: str) -> list[Figure]:
    """Return the figures called ``name``, measured in a new process; none if the library in the name is missing."""
    library = name.partition("-")[0]
    if library in {"jax", "transformers"} and find_spec(library) is None:
        return []
    command = [sys.executable, "-m", "tools.pages.benchmarks_page", "figures", name]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [Figure(*json.loads(line)) for line in lines]


def commands() -> Iterator[Figure]:
    """Yield the cost of commands, including the start of the interpreter."""
    for command in ("--help", "list", "stats --quick --jobs 1"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "specverify", *command.split()], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        yield Figure(f"`specverify {command}`", "", after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def page() -> str:
    """Measure everything and return the page."""
    of_checks = [figure for name in CHECKS for figure in in_own_process(name)]
    parts = [
        figure
        for figures in (divided_against_plain, enumerations, interception, commands)
        for figure in beside_loops(figures())
    ]
    loops = [figure.seconds / figure.loops for figure in (*of_checks, *parts)]
    return PAGE.format(
        iterations=ITERATIONS,
        shortest=min(loops),
        longest=max(loops),
        bandwidth=bandwidth(),
        machine=f"{platform.machine()}, CPython {platform.python_version()}, NumPy {np.__version__}",
        checks=_rows(of_checks),
        rows=_rows(parts),
        ratio=parts[0].seconds / parts[1].seconds,
        algorithms=len(ALGORITHMS),
        equal=EQUAL,
        plain=PLAIN,
        samples=SAMPLES,
        alarm=ALARM,
        power=1 - MISS,
    )


def _rows(figures: list[Figure]) -> str:
    return "\n".join(
        f"| {item.what} | {item.amount} | {_rounded(item.seconds, 3)} | {_rounded(item.loops, 2)} |" for item in figures
    )


def _rounded(number: float, digits: int) -> str:
    """Return ``number`` rounded to significant ``digits``, without an exponent: 2330.4 with 3 is "2,330"."""
    return f"{float(f'{number:.{digits}g}'):,.6g}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["figures"]:
        for figure in beside_loops(CHECKS[sys.argv[2]]()):
            print(json.dumps(figure))
    else:
        text = page()
        print(text)
        for name in sys.argv[1:]:
            Path(name).write_text(text, "utf-8")
