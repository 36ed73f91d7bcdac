"""Reports in headless Chromium: nothing complains, nothing is fetched, everything is seen and reached."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from test_support.browser import reported_runs
from test_support.browser.watched import watched

NASTY = ("nasty verdicts", "nasty statistics", "nasty kill matrix")
PAGES = ("verify", "stats", "sample", "bug", "near-tie", "campaign", "mutants", *NASTY)
LOOKS = {"light": ("light", 1200), "dark": ("dark", 1200), "narrow": ("light", 360), "narrow dark": ("dark", 360)}
EXAMINED = ["Acceptance by position", "Law of the accepted length", "Total variation of planned samples"]
PARTED = [
    "Outcomes: samples fit reference",
    "Evidence over time: samples fit reference",
    "Near-ties: where greedy texts part",
]
PANELS = {
    "verify": [*EXAMINED, PARTED[-1], *EXAMINED],
    "stats": ["Total variation of planned samples"],
    "sample": ["Outcomes: samples fit law", "Evidence over time: samples fit law"],
    "bug": PARTED,
    "near-tie": PARTED,
    "campaign": 2 * ["Outcomes: samples fit law", "Evidence over time: samples fit law"],
    "mutants": [],
}


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    return reported_runs.pages_in(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    folder = Path(os.environ.get("REPORT_PICTURES") or tmp_path_factory.mktemp("pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def opened(browser, file, look="light"):
    """Open a page; afterwards, nothing may have complained, asked, or come from elsewhere."""
    with watched(browser, file, LOOKS[look], 800) as (page, asked):
        yield page
    assert asked == [file.as_uri()]


@pytest.mark.parametrize(
    "planted", ['<script>console.error("no")</script>', "<script>absent()</script>", '<img src="elsewhere.png" alt="">']
)
def test_a_page_that_complains_or_fetches_is_noticed(browser, pages, tmp_path, planted):
    (tmp_path / "worse.html").write_text(
        pages["sample"].read_text("utf-8").replace("</main>", f"{planted}</main>"), "utf-8"
    )
    with pytest.raises(AssertionError), opened(browser, tmp_path / "worse.html") as page:
        page.wait_for_load_state("load")


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PAGES)
def test_it_is_shown_and_fits(browser, pages, pictures, name, look):
    with opened(browser, pages[name], look) as page:
        page.screenshot(path=pictures / f"{name}, {look}.png", full_page=True)
        too_wide = "[...document.querySelectorAll('body *')].filter(i => !i.closest('.wide *') && !i.closest('.skip')"
        too_wide += "&& i.getBoundingClientRect().right > innerWidth).map(i => i.outerHTML.slice(0, 200))"
        assert page.evaluate(too_wide) == []
        assert page.locator("h1").is_visible()
        if name in PANELS:
            assert page.locator("h4").all_inner_texts() == PANELS[name]
            assert all(
                box and box["height"] > 20 for box in (item.bounding_box() for item in page.locator(".panel").all())
            )


@pytest.mark.parametrize(("name", "said"), [("bug", "✘ bug"), ("near-tie", "≈ near-tie")])
def test_a_bug_is_shown_as_a_bug_and_a_near_tie_as_one(browser, pages, name, said):
    with opened(browser, pages[name]) as page:
        assert page.locator(".panel").last.locator("strong").all_inner_texts() == [said]


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(browser, pages, name, look):
    with opened(browser, pages[name], look) as page:
        page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
        found = Axe().run(page).response["violations"]
        assert [(item["id"], item["impact"], item["nodes"][0]["html"][:200]) for item in found] == []


def test_axe_would_find_something(browser, pages, tmp_path):
    text = pages["sample"].read_text("utf-8").replace("--quiet: #4a5058", "--quiet: #b0b4b8").replace(' lang="en"', "")
    (tmp_path / "worse.html").write_text(text, "utf-8")
    with opened(browser, tmp_path / "worse.html") as page:
        found = {item["id"] for item in Axe().run(page).response["violations"]}
    assert {"color-contrast", "html-has-lang"} <= found


@pytest.mark.parametrize("name", ["verify", "campaign", "mutants"])
def test_the_keyboard_reaches_everything(browser, pages, name):
    with opened(browser, pages[name], "narrow") as page:
        there = page.evaluate("document.querySelectorAll('a, summary, [tabindex]').length")
        reached = set()
        for _ in range(there + 1):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
        hidden = page.evaluate("document.querySelectorAll('details:not([open]) [tabindex]').length")
        assert len(reached) >= there - hidden
        page.locator(".skip").focus()
        assert page.locator(".skip").bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert page.url.endswith("#summary")


@pytest.mark.parametrize("name", PAGES)
def test_on_paper_everything_is_there_and_dark_on_white(browser, pages, pictures, name):
    with opened(browser, pages[name], "dark") as page:
        page.evaluate("document.querySelectorAll('details').forEach(item => item.open = false)")
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        heights = page.evaluate(
            "[...document.querySelectorAll('details > :not(summary)')].map(item => item.clientHeight)"
        )
        assert all(heights)
        assert not page.locator("nav").is_visible()
        page.pdf(path=pictures / f"{name}.pdf")
