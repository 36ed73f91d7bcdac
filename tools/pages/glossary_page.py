"""Write ``docs/glossary.md``: the terms that ``specverify explain`` defines.

Run ``python -m tools.pages.glossary_page docs/glossary.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specverify.run.explain import glossary

HEADING = "## Words\n"


def with_words(page: str) -> str:
    """Return the page with the terms of the glossary, each once, below its last heading."""
    before, _, _ = page.partition(HEADING)
    words = "".join(f"\n{word}\n:   {text}\n" for word, text in glossary().items())
    return f"{before}{HEADING}{words}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_words(file.read_text("utf-8")), "utf-8")
