"""Every page of the documentation has a line in the navigation of the site, which ``nox -s docs`` builds strictly."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_navigation_has_every_page_once():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    named = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", navigation, re.MULTILINE)
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert len(pages) > 80
    assert len(named) == len(set(named))
    assert pages <= set(named)
