"""Write ``docs/interception.md`` from the tables of functions that draw.

Run ``python -m tools.pages.interception_page docs/interception.md``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from specverify.intercept.distributions import MOST_SHUFFLED, MOST_TRIALS
from specverify.intercept.python import MANY_BITS
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.continuous import FEWEST, MOST_OUTCOMES
from test_support.intercept.drawing_calls import (
    ALARM,
    MISS,
    MOST_RUNS,
    Library,
    Line,
    law_of,
    lines_of,
    plan_of,
    unanswered_law,
)
from test_support.intercept.numpy_and_random import NUMPY, RANDOM
from test_support.intercept.torch_under_test import TORCH

SECTIONS = {"NumPy": NUMPY, "random and secrets": RANDOM, "torch": TORCH}
MOST_SHOWN = 4
HEAD = f"""# What happens to a call that draws

Look up here whether specverify can follow a random call of your code. While code is enumerated, the random calls of
torch, NumPy and Python's `random` are answered: the enumerator supplies their results. This page lists every public
call that draws, or might draw, with an example and what happens to it. JAX is intercepted too; [JAX](jax.md) lists
its calls.

The column *what happens* has one of these entries:

* **answered**: the call has an exact law, which is compared with a sample that the library draws itself. The last
  column has the sample size and the total variation that the sample detects with probability {1 - MISS:g} or more.
  The probability of any false alarm, over all lines, is at most {ALARM:g}. Each test must also reject a deliberately
  wrong law. `nox -s properties` uses larger samples, which detect 0.02.
* **many outcomes**: answered as well, but the example has more outcomes than the {MOST_RUNS} runs that its test
  enumerates. A check of your code enumerates up to `runs=` runs (200 000 by default). If some paths are left, the
  verdict states their probability.
* **refused**: the run ends with the file and line of the call, and the verdict is UNKNOWN.
* **harmless**: the call draws nothing, or only sets the state of a generator.
* **from outside**: the bytes come from the operating system, and a replay gets other bytes. If a token depends on
  them, the verdict is UNKNOWN. Integers of the operating system with fewer than {MANY_BITS} bits are answered.
* **not here**: the call needs another device than a CPU. Operations with the tag `nondeterministic_seeded` are
  intercepted on every device, so such a call is refused where it draws.

*Continuous numbers* stay symbolic. They can be compared with a number, looked up in a cumulative sum, or used in a
race (the argmin or argmax of several random numbers). Code that needs the value of one is refused.

*Integers* stay symbolic as well while they are only compared: `randint(20000) < 5000` is answered. If the code needs
the value (as an index or a length, say), the number of equally likely values decides:

* up to {MOST_OUTCOMES:,}: all values are enumerated;
* {FEWEST:,} or more: the integer is taken for a seed, and gets one arbitrary value;
* between these limits: the call is refused.

Other limits for one call: at most {MOST_OUTCOMES:,} elements for `choice` and {MOST_SHUFFLED} for a permutation (both
NumPy), and at most {MOST_TRIALS} trials for a binomial draw.

*Seeds.* A seed is treated as if it had been chosen at random: the law is taken over all random numbers, and not only
over those that the seed really gives. But equal states give equal numbers. With `a = default_rng(3)` and
`b = default_rng(3)` the first numbers of a and b are equal, each with the law of a uniform. With the seeds 3 and 4
they are independent.

In the examples `_` stands for each owner of the call: a generator or the module. `rng`, `state`, `generator`, `system`
and `bits` are generators, `STATE` is a saved state of one. `attempt(f)` calls f and ignores that it is not implemented.
`P` is the pmf (0.5, 0.125, 0.375) and `CDF` its cumulative sum. Other names in capitals are fixed inputs and layers of
torch: `ONES` and `HEADS` are tensors of ones, `SQUARE` and `CUBE` tensors of small integers. `LSTM` is a layer with
dropout, and `QUIET` the same layer after `eval()`, so that it drops nothing. `nn`, `F` (`nn.functional`), `init`
(`nn.init`), `D` (`distributions`) and `data` (`utils.data`) are modules of torch.

In a reason, *a random number of unknown sign* is one that may be positive or negative: 0.0 times this number is 0.0
or -0.0, and only its sign decides which. A line without a *call* is for a newer Python than the installed one.

*Completeness.* A test compares the page with the installed libraries. It fails, and names the call, if one of these
has no line here: an operation of torch with the tag `nondeterministic_seeded`; a function or class of torch whose
code uses one; a distribution; a public name of `np.random`, `random` or `secrets`. It also fails if a line names a
call that no longer exists. Other tests run the examples.
`python -m tools.pages.interception_page docs/interception.md` writes this page.

The first table counts the lines of the tables below.
"""
WORDS = {"answered": "answered", "many": "many outcomes", "refused": "refused", "harmless": "harmless",
         "outside": "from outside", "absent": "not here"}  # fmt: skip
REASONS = {"harmless": "it returns no random number", "outside": "bytes of the operating system",
           "many": f"more than {MOST_RUNS} outcomes"}  # fmt: skip


def page() -> str:
    """Return the text of ``docs/interception.md``."""
    parts = [HEAD, "\n", _counts()]
    for name, library in SECTIONS.items():
        parts.append(
            f"\n## {name}\n\n| call | example | what happens | its law, or why not | sample |\n|---|---|---|---|---|\n"
        )
        parts += [_row(library, line) for line in lines_of(library)]
    return "".join(parts)


def _counts() -> str:
    found = {name: Counter(line.kind for line in lines_of(library)) for name, library in SECTIONS.items()}
    lines = ["| lines | " + " | ".join(WORDS.values()) + " |", "|---" * (len(WORDS) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(str(counts[kind]) for kind in WORDS) + " |" for name, counts in found.items()]
    return "\n".join(lines) + "\n"


def _row(library: Library, line: Line) -> str:
    said, sample = _said(library, line)
    example = "" if line.kind == "absent" else f"`{_example(line)}`"
    cells = (", ".join(f"`{name}`" for name in line.names()), example, WORDS[line.kind], said, sample)
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


def _example(line: Line) -> str:
    return line.calls()[0] if len(line.owners) == 1 else line.call.replace("{}", "_")


def _said(library: Library, line: Line) -> tuple[str, str]:
    """Return two cells for a function that draws: its law, or why it has none, and the planned number of samples."""
    if line.since:
        return f"from Python {line.since} on", ""
    if line.kind == "answered":
        law = law_of(library, line, line.calls()[0])
        plan = plan_of(law)
        return _shown(law), f"{plan.samples}, TV {plan.detectable:.3f}"
    if line.kind == "refused":
        return _reason(library, line), ""
    return (line.call if line.kind == "absent" else REASONS[line.kind]), ""


def _shown(law: dict[Any, float]) -> str:
    likely = sorted(law.items(), key=lambda item: (-round(item[1], 6), repr(item[0])))
    shown = [f"{outcome}: {mass:.4g}" for outcome, mass in likely[:MOST_SHOWN]]
    more = len(likely) - MOST_SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _reason(library: Library, line: Line) -> str:
    """Return the message with which a call is refused, without the place in the code."""
    try:
        unanswered_law(library, line, line.calls()[0])
    except NeedsValue as refusal:
        place = re.escape(line.place)
        return re.sub(rf",? at {place}", "", refusal.reason).strip()
    raise AssertionError(f"{line.place} is not refused")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
