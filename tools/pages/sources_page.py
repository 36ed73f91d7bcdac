"""Write ``docs/sources-of-randomness.md``; run as a script."""

from __future__ import annotations

from pathlib import Path

from specverify.testing import check_engine
from test_support.soundness.sources_of_randomness import HIDDEN, SOURCES

RIGHT, WRONG = 0.9, 0.6
PAGE = Path(__file__).parents[2] / "docs" / "sources-of-randomness.md"
HEAD = f"""# Where an engine takes its randomness from

This page shows from which sources of random numbers specverify can compute an exact law, and which sources lead to
the verdict UNKNOWN. Each line of the table tests one source with two engines, which toss one coin by this source. The
right engine gets heads with probability {RIGHT}, like the call without speculation; the wrong engine with probability
{WRONG}.

* *Answered*: specverify intercepts the source's draws and answers them, so the engine has an exact law. The check
  `law_is_target` holds for the right engine and is refuted for the wrong one.
* *Named*: the draws cannot be answered. Both engines are UNKNOWN, and the verdict names the file, the line and a
  possible change of the code.

No right engine is refuted, and no wrong engine holds. In the three lines *beside the coin* the engine tosses its coin
by an answered call, and also reads a source on which no token depends. *With the refusal caught* means that the
engine calls `float(u)` for a drawn uniform u, whose value is not known then. This call is refused by an error, which
the engine catches. *In a race*: heads and tails each get their probability divided by an exponential number, and the
larger quotient wins.

Some lines state where the engine keeps its generator or a method of it, such as in the module or in a closure. This
matters because specverify must find the method to replace it. It replaces methods in modules, objects, classes,
closures, default arguments, slots (`__slots__`), lists and partial functions, and not in tuples. Tasks of a thread
pool are followed if they are submitted during the run, also if the threads are older. Another thread that already
runs is not followed.

`engine_tests/soundness/test_sources_of_randomness.py` computes each line again, and `tools/pages/sources_page.py`
writes the page. [Soundness](soundness.md) lists what could still be missed.

| source | right engine | wrong engine | draws are |
|---|---|---|---|
"""


def verdicts(make, p):
    """Return the verdict of each check on an engine made by ``make``, whose coin is heads with probability ``p``."""
    coin, plain = make(p), make(RIGHT)
    found = check_engine(lambda: [int(coin())], lambda: [int(plain())], on_fail=None)
    return {verdict.check: verdict for verdict in found}


def line(source, statuses):
    """Return the table line of a source of randomness: the status of the law for a right and for a wrong coin."""
    answered = "answered" if source in SOURCES else "named"
    return f"| {source} | {statuses[0].value} | {statuses[1].value} | {answered} |"


if __name__ == "__main__":
    rows = [
        line(source, [verdicts(make, p)["law_is_target"].status for p in (RIGHT, WRONG)])
        for source, make in {**SOURCES, **HIDDEN}.items()
    ]
    PAGE.write_text(HEAD + "\n".join(rows) + "\n", "utf-8")
