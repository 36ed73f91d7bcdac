"""Write ``docs/interception.md`` from the tables of functions that draw.

Run ``python -m tools.pages.interception_page docs/interception.md``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from specverify.intercept.refusals import NeedsValue
from test_support.intercept.drawing_calls import ALARM, MISS, Library, Line, law_of, lines_of, plan_of, unanswered_law
from test_support.intercept.numpy_and_random import NUMPY, RANDOM
from test_support.intercept.torch_under_test import TORCH

SECTIONS = {"NumPy": NUMPY, "random and secrets": RANDOM, "torch": TORCH}
MOST_SHOWN = 4
HEAD = f"""# What happens to a call that draws

While foreign code is enumerated, the random calls of torch, NumPy and Python's `random` are answered. Here is every
public call of them that draws, or might, each by an example. A test derives the list from the libraries that are
installed: an operation of torch that has the tag `nondeterministic_seeded`, a function or class of torch whose code
names one, a distribution, a public name of `np.random`, `random` or `secrets` that stands in no line here makes it fail
by name, and so does a line whose call is gone. Other tests run each line.

* **answered**: it has an exact law, which is compared with what the library draws by itself. The sample is planned: the
  number of draws, and the total variation that they see, miss with probability {MISS:g} at most. All lines together
  accuse a right answer with probability {ALARM:g} at most, and every sample must first reject a law that is
  planted. `nox -s properties` sees 0.02.
* **many outcomes**: answered as well, but the outcomes are more than are followed; the verdict says what is missing.
* **refused**: the run ends with the file and line of the call, and the verdict is UNKNOWN.
* **harmless**: it draws nothing, or sets where a stream stands.
* **from outside**: the bytes are the operating system's, and a replay gets others. If a token depends on them, the
  verdict is UNKNOWN.
* **not here**: it cannot be called without another device. Operations with the tag are looked after wherever they are
  called, so they are refused where they draw.

A continuous random number has no value. It can be compared, looked up, raced; what needs its value is refused. Two
draws from one state of a generator are one draw; a generator with a fixed seed is taken to give fresh numbers.

`python -m tools.pages.interception_page docs/interception.md` writes this page.
"""
WORDS = {"answered": "answered", "many": "many outcomes", "refused": "refused", "harmless": "harmless",
         "outside": "from outside", "absent": "not here"}  # fmt: skip


def page() -> str:
    """Return the text of ``docs/interception.md``."""
    parts = [HEAD, "\n", _counts()]
    for name, library in SECTIONS.items():
        parts.append(
            f"\n## {name}\n\n| of | example | what happens | its law, or why not | sample |\n|---|---|---|---|---|\n"
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
    return {"absent": line.call, "harmless": "no number comes of it"}.get(line.kind, ""), ""


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
