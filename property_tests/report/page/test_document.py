"""The page of a run: whole, readable without colours, by keyboard and by programs that read aloud, and harmless."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from specverify.report.page.document import page, style
from test_support.report import runs
from test_support.report.page_elements import Page, text_of

KINDS = tuple(runs.TEXTS)


@pytest.fixture(scope="module", params=KINDS)
def whole(request):
    return Page(page(runs.run_of(request.param)))


def test_ids_are_unique_and_everything_that_is_referred_to_is_there(whole):
    ids = [item.attributes["id"] for item in whole.elements if "id" in item.attributes]
    assert len(set(ids)) == len(ids)
    links = [item.attributes["href"] for item in whole.all("a")]
    named = [item.attributes["aria-labelledby"] for item in whole.elements if "aria-labelledby" in item.attributes]
    assert links
    assert named
    assert {*(link.removeprefix("#") for link in links), *named} <= set(ids)


def test_headings_go_down_one_by_one_and_there_is_one_title(whole):
    levels = [int(item.tag[1]) for item in whole.all("h1", "h2", "h3", "h4", "h5")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert [len(whole.all(tag)) for tag in ("main", "header", "footer", "nav")] == [1] * 4


def test_a_picture_has_words_or_stands_beside_its_numbers(whole):
    for picture in whole.all("svg", "img"):
        inside = [item for item in whole.elements if picture in item.within]
        if "aria-hidden" in picture.attributes:
            assert any(item.tag == "tr" for item in picture.within)
        else:
            assert picture.attributes["role"] == "img"
            assert inside[0].tag == "title"
            assert text_of(inside[0])


def test_nothing_comes_from_elsewhere_and_nothing_runs(whole):
    assert not whole.all("script", "iframe", "object", "embed", "link", "base", "form", "img")
    for item in whole.elements:
        assert not [name for name in item.attributes if name.startswith("on") or name in {"src", "style", "srcset"}]
        assert item.attributes.get("href", "#").startswith("#")
    assert not re.search(r"url\(|@import|expression|https?:", style())


def test_tables_have_captions_and_headings_and_wide_ones_are_reached_by_keyboard(whole):
    for found in whole.all("table"):
        inside = [item for item in whole.elements if found in item.within]
        assert inside[0].tag == "caption"
        assert all(item.attributes.get("scope") in {"row", "col"} for item in inside if item.tag == "th")
    for region in [item for item in whole.elements if item.attributes.get("class") == "wide"]:
        assert (region.attributes["role"], region.attributes["tabindex"]) == ("group", "0")
        assert region.attributes["aria-label"]


def test_a_verdict_is_a_sign_and_a_word():
    found = Page(page(runs.run_of("verdicts")))
    badges = {text_of(item) for item in found.all("span") if item.attributes.get("class", "").startswith("status")}
    words = {"✔ holds", "✘ refuted", "? unknown", "! unusable", "≈ declared bias", "· refused"}
    assert badges == words


def test_every_panel_is_there_and_the_wrong_outcome_is_marked():
    whole = Page(page(runs.run_of("verdicts")))
    assert [text_of(item) for item in whole.all("h4")] == [
        "Acceptance by position",
        "Law of the accepted length",
        "Outcomes: samples fit law",
        "Evidence over time: samples fit law",
        "Near-ties: where greedy texts part",
    ]
    rows = [text_of(item) for item in whole.all("tr")]
    assert {"draftsiscan be● is┃ can be", "acceptediscan be● is┃ can be"} <= set(rows)
    assert [row[:4] for row in rows if "outside" in row] == ["(0,)", "(2,)"]
    ties, bugs = ([row for row in rows if sign in row] for sign in ("≈ near-tie", "✘ bug"))
    assert (len(ties), len(bugs)) == (2, 2)
    assert any("without bound" in row and row.endswith("nothing") for row in bugs)
    assert any(text_of(item).endswith("refuted at 10^6.00") for item in whole.all("title"))


def test_failures_are_let_then_again():
    whole = Page(page(runs.run_of("verdicts")))
    first = whole.all("dl")[0]
    terms = [text_of(item) for item in whole.elements if first in item.within and item.tag == "dt"]
    assert terms == ["Let", "Then", "Because", "Again"]
    assert "specverify replay eNabc_-" in text_of(first)


def test_the_kill_matrix_frames_the_check_that_must_kill():
    whole = Page(page(runs.run_of("kill matrix")))
    framed = [item for item in whole.all("td") if "named" in item.attributes.get("class", "")]
    assert [text_of(item) for item in framed] == ["✘killed", "·holds"]
    assert [text_of(item) for item in whole.all("strong")] == ["survives"]


def test_what_is_not_done_is_said_before_anything_else():
    whole = Page(page(runs.run_of("statistics")))
    assert next(text_of(item) for item in whole.all("p")).startswith("it was interrupted")


def palettes():
    """Return the colours of each medium by name, as the style sheet has them."""
    light, dark, printed = re.findall(r":root \{(.*?)\}", style(), re.DOTALL)
    parts = zip(MEDIA, (light, dark, printed), strict=True)
    return {name: dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for name, part in parts}


MEDIA = ("light", "dark", "print")


def linear(colour):
    """Return red, green and blue of a colour as shares of light."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour):
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("medium", MEDIA)
def test_colours_stand_out_from_the_paper(medium):
    colours = palettes()[medium]
    texts = ("ink", "quiet", "link", "holds", "declared-bias", "refuted", "unknown", "unusable")
    for paper in ("paper", "raised"):
        found = {name: contrast(colour, colours[paper]) for name, colour in colours.items()}
        assert [name for name in texts if found[name] < 4.5] == []
        assert [name for name in ("seen", "expected", "band") if found[name] < 3] == []


def test_contrast_is_that_of_black_on_white():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("medium", MEDIA)
@pytest.mark.parametrize("kind", ["protan", "deutan"])
def test_who_tells_no_red_from_green_tells_what_was_seen_from_what_was_expected(medium, kind):
    colours = palettes()[medium]
    seen, expected = (dichromat(colours[name], kind) for name in ("seen", "expected"))
    assert sum((a - b) ** 2 for a, b in zip(seen, expected, strict=True)) ** 0.5 > 0.3


def test_red_and_green_would_not_be_told_apart():
    red, green = dichromat("#b05000", "deutan"), dichromat("#5f7a00", "deutan")
    assert sum((a - b) ** 2 for a, b in zip(red, green, strict=True)) ** 0.5 < 0.1


def dichromat(colour, kind):
    """Return what is left of a colour (linear RGB) where red and green are one: Vienot, Brettel and Mollon 1999."""
    red, green, blue = linear(colour)
    share = {"protan": (0.11238, 0.88762, 0.00401), "deutan": (0.29275, 0.70725, -0.02234)}[kind]
    both = share[0] * red + share[1] * green
    return both, both, share[2] * (red - green) + blue
