"""Writes ``docs/refusals.md`` from the table of refusals.

Run ``python -m tools.pages.refusals_page docs/refusals.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specverify.intercept.refusals import REASONS

HEAD = """# Why a program is refused

Random numbers have no value while a program is enumerated. What cannot be followed is refused, and the verdict is
UNKNOWN: it is never guessed. A refusal names the operation of your library, your line, the reason and a way out:

```
torch.lgamma at my_sampler.py:31: the value of a uniform random number is needed, not only a comparison with it; ...
```

A refusal decides the verdict even if your code catches it, or raises another error because of it. The kind of arrays
that your code takes is found by trials; if every trial was refused, the refusal is reported and not the errors of type.
Each refusal is an exception with the fields `code`, `reason`, `operation`, `place` and `way_out`. These are the codes;
`sampled=True` is an option of `check_engine`, and a *real vocabulary* has thousands of tokens.

| code | reason | way out |
|---|---|---|
"""


def page() -> str:
    """Return the text of ``docs/refusals.md``."""
    rows = [f"| `{code}` | {reason.meaning} | {reason.way_out} |\n" for code, reason in REASONS.items()]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
