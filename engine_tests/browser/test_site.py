"""The site in headless Chromium, opened from files: nothing complains, nothing is fetched, it is found and reached."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from test_support.browser.watched import watched

SITE = Path(os.environ.get("SITE") or "site").resolve()
LOOKED_AT = (
    "index",
    "start/engine-author",
    "kill-matrix",
    "glossary",
    "api/testing",
    "notebooks/01_why_it_is_lossless",
)
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "narrow": ("light", 390)}
PAGES = sorted(str(page.relative_to(SITE)).removesuffix(".html") for page in SITE.rglob("*.html") if page.stem != "404")
"""But for the page that only a server shows: its paths are those of a server."""


@contextmanager
def opened(browser, name, look="light", site=SITE):
    """Open a page; afterwards, nothing may have complained or come from anywhere but the site's folder."""
    with watched(browser, site / f"{name}.html", LOOKS[look], 900) as (page, asked):
        yield page
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:", "blob:", "about:"))] == []


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", LOOKED_AT)
def test_it_is_shown_and_fits(browser, tmp_path, name, look):
    pictures = Path(os.environ.get("SITE_PICTURES") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    with opened(browser, name, look) as page:
        page.wait_for_timeout(300)
        page.screenshot(path=pictures / f"{name.replace('/', ' ')}, {look}.png")
        assert page.locator("h1").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_quiet_and_asks_nobody(browser, name):
    with opened(browser, name) as page:
        page.wait_for_load_state("load")


@pytest.mark.parametrize("planted", ["<script>absent()</script>", '<img src="https://example.org/x.png" alt="">'])
def test_a_page_that_complains_or_asks_is_noticed(browser, tmp_path, planted):
    worse = Path(shutil.copytree(SITE, tmp_path / "site"))
    with opened(browser, "glossary", site=worse) as page:
        page.wait_for_load_state("load")
    text = (worse / "glossary.html").read_text("utf-8").replace("</body>", f"{planted}</body>")
    (worse / "glossary.html").write_text(text, "utf-8")
    with pytest.raises(AssertionError), opened(browser, "glossary", site=worse) as page:
        page.wait_for_load_state("load")


@pytest.mark.parametrize(("word", "place"), [("leviathan", "glossary"), ("check_kernel", "api/testing")])
def test_search_finds(browser, word, place):
    with opened(browser, "index") as page:
        page.locator(".md-search__input").focus()
        page.locator(".md-search__input").press_sequentially(word)  # as a reader does: the search listens to keys
        page.locator(f".md-search-result__link[href*='{place}']").first.wait_for(timeout=20_000)


def test_a_table_is_sorted_and_its_rows_are_found(browser):
    with opened(browser, "kill-matrix") as page:
        shown = "[...document.querySelector('article table:not([class])').tBodies[0].rows].filter(r => !r.hidden)"
        first = f"{shown}.map(row => row.cells[0].innerText)"
        before = page.evaluate(first)
        heading = page.locator("article table:not([class]) th").first
        heading.click()
        heading.click()
        after = page.evaluate(first)
        assert sorted(before) == sorted(after)
        assert after != before
        page.locator(".rows-with").first.fill("bonus")
        kept = page.evaluate(f"{shown}.map(row => row.textContent.toLowerCase())")
        assert 0 < len(kept) < len(before)
        assert all("bonus" in row for row in kept)


@pytest.mark.parametrize("look", LOOKS)
def test_pictures_of_notebooks_are_named_and_their_code_is_folded(browser, look):
    with opened(browser, "notebooks/07_trees_and_transport", look) as page:
        names = page.locator("img.drawn").evaluate_all("found => found.map(picture => picture.alt)")
        assert len(names) > 2
        assert all(name.endswith(", as a picture") for name in names)
        assert page.locator("details.note").count() >= len(names)
        assert page.locator("details.note[open]").count() == 0
        turned = page.locator("img.drawn").first.evaluate("picture => getComputedStyle(picture).filter")
        assert (turned != "none") == (look == "dark")


def test_links_resolve():
    """Every link within the site leads to a file, and to a part of it that is there."""
    texts = {page: (SITE / f"{page}.html").read_text("utf-8") for page in PAGES}
    parts = {page: set(re.findall(r'\sid="?([^"\s>]+)', text)) for page, text in texts.items()}
    broken, followed = [], 0
    for page, text in texts.items():
        for link in re.findall(r'<a\s[^>]*?href="([^"]*)"', text):
            file, _, part = unquote(link).partition("#")
            if re.match(r"[a-z]+:", file):
                continue
            there = (SITE / f"{page}.html").parent / file if file else SITE / f"{page}.html"
            name = str(Path(os.path.normpath(there)).relative_to(SITE)).removesuffix(".html")
            followed += 1
            if not there.exists() or (part and name in parts and part not in parts[name]):
                broken.append((page, link))
    assert followed > 1000
    assert broken == []
