"""The quick plan: the cases that refute most, and the mutants that it misses."""

from __future__ import annotations

from pathlib import Path

from specverify.trust.quick_power import HEAD, as_toml, page_of, plan_of


def test_a_plan_is_made_of_the_cases_that_refute_most():
    names = [["gamma=2", f"generic-v2-p0-h3-s{seed}"] for seed in (0, 1)]
    kills = lambda *places: [["law_is_target", *names[place], True, 5] for place in places]  # noqa: E731
    lines = [
        {"bug": "a", "kind": "row", "kills": kills(0)},
        {"bug": "b", "kind": "row", "kills": kills(0, 1)},
        {"bug": "c", "kind": "row", "kills": kills(1)},
        {"bug": "d", "kind": "row", "kills": kills(1)},
    ]
    pool = {"row": {"law_is_target": {tuple(name): 5 for name in names}}}
    plan = plan_of(lines, pool.get)
    assert plan == {"row": {"law_is_target": [tuple(names[1]), tuple(names[0])]}}
    twice = [*lines, {"bug": "e", "kind": "row", "kills": [["law_is_target", "gamma=2", "later", True, 50]]}]
    twice[0]["kills"] += [["law_is_target", "gamma=2", "later", True, 50]]
    plan = plan_of(twice, pool.get)
    assert plan == {"row": {"law_is_target": [tuple(names[1]), tuple(names[0]), ("gamma=2", "later")]}}
    assert '["row"]\nlaw_is_target = [\n    ["gamma=2", "generic-v2-p0-h3-s1"],' in as_toml(plan)


def test_the_page_names_what_quick_misses():
    said = [
        {"bug": name, "kind": "row", "quick": by_quick, "full": by_full}
        for name, by_quick, by_full in (("a", "x", "x"), ("b", "", "call_law"), ("c", "", ""), ("d", "", None))
    ]
    page = page_of(said)
    assert "| row | 4 | 2 | 1 | 1 |" in page
    assert "The full plan refutes 2 of the 3 bugs that it was run on. It was not run on 1 others" in page
    assert "Quick refutes 1 bugs: 50.0% of those that the full plan refutes, or 33.3% if" in page
    assert "* b (row), by `call_law`" in page
    assert "* d (row)\n" in page


def test_the_page_begins_with_the_text_that_the_command_writes():
    page = Path(__file__).parents[2] / "docs" / "quick.md"
    assert page.read_text("utf-8").startswith(HEAD)
