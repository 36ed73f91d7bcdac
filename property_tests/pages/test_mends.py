"""Words of a function are read as others while a ``with`` lasts; every cause has a mend, a control or a reason."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SURVEYS = str(ROOT / "tools" / "surveys")
TEXT = """
SCALE = 2


def scaled(value, by=SCALE):
    return value * by


class Base:
    def named(self):
        return "base"

    def inherited(self):
        return "inherited"


class Derived(Base):
    def named(self):
        return super().named() + ", derived"
"""


@pytest.fixture(autouse=True)
def surveys(monkeypatch):
    monkeypatch.syspath_prepend(SURVEYS)


@pytest.fixture
def library(tmp_path, monkeypatch):
    (tmp_path / "a_library.py").write_text(TEXT, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("a_library")
    sys.modules.pop("a_library")


def changed(*changes):
    return importlib.import_module("mends.mending").mended(changes)


def edit(*given):
    return importlib.import_module("mends.mending").Edit(*given)


def ours(*given):
    return importlib.import_module("mends.mending").Ours(*given)


def test_words_are_others_wherever_the_function_is_held_and_as_they_were_afterwards(library):
    held = library.scaled
    with changed(
        edit("a_library:scaled", "by=SCALE", "by=SCALE + 1"), edit("a_library:scaled", "value *", "100 + value *")
    ):
        assert held(5) == 115
    assert held(5) == 10


def test_a_method_knows_what_it_inherits(library):
    with changed(edit("a_library:Derived.named", "derived", "mended")):
        assert library.Derived().named() == "base, mended"
    assert library.Derived().named() == "base, derived"


def test_a_function_of_ours_stands_where_one_is_inherited_and_is_gone_afterwards(library):
    with changed(ours("a_library:Derived.inherited", lambda theirs: lambda self: f"not {theirs(self)}")):
        assert library.Derived().inherited() == "not inherited"
        assert library.Base().inherited() == "inherited"
    assert "inherited" not in vars(library.Derived)


def test_a_library_that_reads_otherwise_is_not_mended(library):
    with pytest.raises(LookupError, match="a_library:scaled has 'value /' 0 times, expected 1"):
        changed(edit("a_library:scaled", "value /", "value *")).__enter__()
    assert library.scaled(5) == 10


def test_what_was_mended_before_a_change_that_fails_is_as_it_was(library):
    with (
        pytest.raises(LookupError),
        changed(edit("a_library:scaled", "value *", "7 *"), edit("a_library:Derived.named", "nothing", "")),
    ):
        pass
    assert library.scaled(5) == 10


def test_every_cause_of_an_engine_is_mended_and_no_other():
    controls, found = importlib.import_module("controls"), importlib.import_module("reproducers").causes()
    for page, prefix in controls.PREFIXES.items():
        assert set(controls.mends_of(prefix)) == {cause.cause for cause in found if cause.page == page}


def test_every_other_cause_has_a_row_that_holds_or_a_reason_why_not():
    controls, surveys = importlib.import_module("controls"), importlib.import_module("reproducers")
    for cause, cells in surveys.cells_of().items():
        if cause.page in controls.PREFIXES:
            continue
        assert bool(cause.control) != bool(cause.uncontrolled), cause
        text = surveys.pages()[cause.page]
        if cause.control:
            assert f"| {cause.control} |" in text
            still = {
                cell.rpartition(" at ")[0] for cell in surveys.refuted(text) if cell.endswith(f" at {cause.control}")
            }
            assert not still & {
                what for cell in cells for what in (cell.rpartition(" at ")[0], cell.partition(" at ")[0])
            }


def test_a_cell_that_stays_refuted_ends_with_status_1_and_is_told(tmp_path, monkeypatch):
    controls = importlib.import_module("controls")
    statuses = iter(({"a at x": "refuted"}, {"a at x": "refuted", "b at x": "holds"}, {"c at y": "holds"}))
    cells = ["a at x", "b at x", "c at y"]
    cause = importlib.import_module("reproducers").Cause("mlx-lm", "penalties forget the prompt", "x.py", ("*",))
    monkeypatch.setattr(controls, "cells_of", lambda: {cause: cells})
    monkeypatch.setattr(controls, "mends_of", lambda prefix: {cause.cause: ()})
    monkeypatch.setattr(controls, "examined", lambda prefix, row, checks: next(statuses))
    for more, told in (
        (["--fewer"], "1 of 3 hold; 1 of 3 not examined; 1 of 3 refuted"),
        ([], "2 of 3 hold; 1 of 3 refuted"),
    ):
        monkeypatch.setattr(sys, "argv", ["controls.py", "--work", str(tmp_path), "--page", "mlx-lm", *more])
        with pytest.raises(SystemExit) as ended:
            controls.main()
        assert str(ended.value).endswith(": a at x")
        assert importlib.import_module("reproducers").mended_of(cause, cells, tmp_path) == told
    assert not list(statuses)


def test_rows_are_looked_for_without_speculation():
    surveys = importlib.import_module("reproducers")
    text = "| plain/x | holds | 1 |\n| plain, two rows/y | holds | 1 |\n| plain/z | refuted | 1 |\n"
    cells = ["draft/x", "draft, prefixes not cached/x", "draft, two rows/y", "draft/z"]
    assert surveys.without_speculation(cells, text) == "3 of 4 hold"
    assert surveys.without_speculation(["plain/z"], text) == "also wrong"
