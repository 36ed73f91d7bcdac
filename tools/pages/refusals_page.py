"""Writes ``docs/refusals.md`` from the table of refusals.

Run ``python -m tools.pages.refusals_page docs/refusals.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specverify.intercept.refusals import REASONS

HEAD = """# Why a program is refused

specverify computes an exact law by *enumeration*: it runs your program on every path of its random choices. On a path
a random number has no value. It is known only by the results of its comparisons so far. If your program uses the
number in an operation for which there is no rule, the run is *refused* and the verdict is UNKNOWN. This page explains
each reason and what you can change. The message of a refusal names the operation of your library, your line, the
reason and a way out:

```
torch.lgamma at my_sampler.py:31: the value of a uniform random number is needed, not only a comparison with it; ...
```

A refusal decides the verdict even if your code catches it, or raises another error because of it. It is an exception
with the fields `code`, `reason`, `operation`, `place` and `way_out`. specverify finds by trial calls which kind of
arrays your code takes. If every trial call was refused, the verdict states the refusal and not the type errors of the
other calls.

Terms of the table: a *race* takes the argmax of weights over exponential noise, or of logits plus Gumbel noise.
*Noise* is an array of random numbers. A *clamp* limits a number to a range. A *real vocabulary* has thousands of
tokens. *Let samples decide*: pass `sampled=True` to the check function, which then also runs the checks that sample.

| code | reason | way out |
|---|---|---|
"""


def page() -> str:
    """Return the text of ``docs/refusals.md``."""
    rows = [f"| `{code}` | {reason.meaning} | {reason.way_out} |\n" for code, reason in REASONS.items()]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
