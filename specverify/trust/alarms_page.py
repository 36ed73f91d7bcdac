"""The counted false alarms as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.trust.false_alarms import DETECTABLE, CountedAlarms

PAGE = """# False alarms, counted

A tool that refutes correct code is worthless. Here correct subjects are examined, and refutations are counted.

The statistical layer judges samples of the registry's algorithms against their own laws, planned for total variations
of {detectable}, at a false-alarm probability of {budget:g} per run. This is far more than the 1e-06 of a whole run of
the suite, so that there is something to count. A run refutes only if a second, fresh sample confirms the first
suspicion, and each stage may reject a correct subject with the square root of the false-alarm probability. The declared
figure is a bound: the level of the test is set for the hardest known law. The interval is the exact binomial one at 99
percent.

The exact layer examines random correct configurations by every exact check that applies: a registry row at one of its
examples, with random rational tables, vocabulary, prompt, horizon and end-of-sequence tokens.

The checks of promises examine random right engines too: see [below](#promises).
[Promises](promises.md#wrong-engines-and-right-ones) counts the right engines that were written by hand, in process, as
samplers and over HTTP.

| what | runs | declared | counted | rate | 99 % interval | as declared |
|---|---|---|---|---|---|---|
{rows}

Seed {seed}. Repeat it with `nox -s pages -- alarms`.

## Promises

Random right engines, each examined by the check of one promise with its quick list of scenarios. An engine is drawn
from the rule that accepts, one to three drafts, the bonus token, the temperature, the library of the random numbers,
the form of the call and the shape of the answer. The declared rate is 0: no pair and no value refutes a right engine.
`tools/pages/promise_alarms.py` draws the engines.

<!-- computed: promises -->
<!-- end -->
"""


def alarms_page(statistical: Sequence[CountedAlarms], exact: CountedAlarms, budget: float, seed: int) -> str:
    """Return the Markdown page of false-alarm counts: runs, declared rate and counted rate of each kind of check.

    Args:
        statistical: Counts of the sampled checks.
        exact: Counts of the exact checks; their examples are listed below the table.
        budget: Declared false-alarm probability of one sampled check.
        seed: Seed with which the counts were made.
    """
    rows = [_row(item) for item in (*statistical, exact)] + [f"\n* {example}" for example in exact.examples]
    detectable = ", ".join(map(str, DETECTABLE))
    return PAGE.format(detectable=detectable, budget=budget, rows="\n".join(rows), seed=seed)


def _row(item: CountedAlarms) -> str:
    interval = f"{item.low:.2g} to {item.high:.2g}"
    said = "yes" if item.as_declared else "NO"
    rate = item.accused / item.runs
    return f"| {item.what} | {item.runs} | {item.declared:g} | {item.accused} | {rate:.4g} | {interval} | {said} |"
