"""The counted false alarms as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.trust.false_alarms import DETECTABLE, CountedAlarms

PAGE = """# False alarms, counted

This page counts how often specverify refutes correct code. Correct subjects of three groups are examined; every
refutation is a false alarm.

*Checks that sample* (the first two lines of the table). A run samples a random algorithm of the library and compares
the sample with the algorithm's own law. The sample size is planned for a total variation that is chosen at random
from {detectable}. The declared false-alarm probability is {budget:g} per run, far more than the 1e-06 of a whole run
of the suite, because rarer alarms could not be counted. A run has two stages: if a first sample rejects the subject,
a second, fresh sample is drawn. Only a run in which both samples reject is a refutation. So each stage may reject a
correct subject with a probability of at most the square root of the declared one, here {stage:g}. The declared
probability is an upper bound: the test's level is set for the law at which false alarms are most frequent. So the
counted rate may be lower.

*Exact checks* (the last line). A run examines an algorithm of the library, with the options of one of its examples, by
every exact check that applies. Pmfs (rationals), vocabulary, prompt, horizon and end-of-sequence tokens are random.

*Checks of promises* examine random right engines: see [below](#promises).
[Promises](promises.md#wrong-engines-and-right-ones) counts the right engines that were written by hand: functions in
the process, samplers, and servers over HTTP.

In the table, *declared* is the declared probability of the event per run, *counted* the number of runs in which it
happened, and *rate* the counted fraction of the runs. The interval is the exact binomial confidence interval of the
rate. The last column is *NO* if the whole interval lies above the declared probability, and *yes* otherwise.

| event | runs | declared | counted | rate | 99 % interval | as declared |
|---|---|---|---|---|---|---|
{rows}

Seed {seed}. Repeat it with `nox -s pages -- alarms`.

## Promises

A promise is a statement of an engine beside the law, for example that the returned log-probabilities are right. Each
line counts random right engines, examined by the check of one promise with the scenarios of its [quick
plan](quick.md). These properties of an engine are random: the acceptance rule, the number of drafts (one to three),
whether there is a bonus token, the temperature, the library of the random numbers, the form of the call and the form
of the answer. The declared rate is 0, because these checks refute only by a wrong value or a wrong text. The last
column is the upper end of the 99 % interval of the rate; it is large because only a few engines were examined.
`tools/pages/promise_alarms.py` draws the engines.

<!-- computed: promises -->
<!-- end -->
"""


def alarms_page(statistical: Sequence[CountedAlarms], exact: CountedAlarms, budget: float, seed: int) -> str:
    """Return the Markdown page of false-alarm counts: runs, declared rate and counted rate of each kind of check.

    Args:
        statistical: Counts of the sampled checks.
        exact: Counts of the exact checks, with examples.
        budget: Declared false-alarm probability of one sampled check.
        seed: Seed with which the counts were made.
    """
    rows = [_row(item) for item in (*statistical, exact)] + [f"\n* {example}" for example in exact.examples]
    detectable = ", ".join(map(str, DETECTABLE))
    return PAGE.format(detectable=detectable, budget=budget, stage=budget**0.5, rows="\n".join(rows), seed=seed)


def _row(item: CountedAlarms) -> str:
    interval = f"{item.low:.2g} to {item.high:.2g}"
    said = "yes" if item.as_declared else "NO"
    rate = item.accused / item.runs
    return f"| {item.what} | {item.runs} | {item.declared:g} | {item.accused} | {rate:.4g} | {interval} | {said} |"
