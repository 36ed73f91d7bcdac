"""Writes ``docs/refusals.md`` from the table of refusals.

Run ``python -m tools.pages.refusals_page docs/refusals.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specverify.intercept.refusals import REASONS

HEAD = """# Why a program is refused

This page lists the reasons for which specverify cannot compute the exact law of a program, and what you can change. The
exact law is computed by *enumeration*: your program is run on every path of its random choices. On a path a random
number has no value; only the results of its comparisons are known. For example, after `u < 0.3` only "u is below 0.3"
is known, and `torch.lgamma(u)` cannot be computed. If your program uses the number in an operation for which there is
no rule, the run is *refused* and the verdict is UNKNOWN. The message of a refusal names the operation of your library,
your line, the reason and a way out:

```
torch.lgamma at my_sampler.py:31: the value of a uniform random number is needed, not only a comparison with it; ...
```

Find the code of your refusal in the first column of the table. A refusal is an exception with the fields `code`,
`reason`, `operation`, `place` and `way_out`. It decides the verdict even if your code catches it, or raises another
error because of it.

Terms of the table:

* *noise*: an array of random numbers;
* *race*: a draw of a token by the argmax of weights over exponential noise, or of logits plus Gumbel noise;
* *clamp*: an operation that limits a number to a range;
* *real vocabulary*: thousands of tokens;
* *let samples decide*: pass `sampled=True` to the check function, which then also runs the checks that sample.

| code | reason | way out |
|---|---|---|
"""


def page() -> str:
    """Return the text of ``docs/refusals.md``."""
    rows = [f"| `{code}` | {reason.meaning} | {reason.way_out} |\n" for code, reason in REASONS.items()]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
