"""The picture of the statistics has a point for every row."""

from __future__ import annotations

import pytest

from specverify.checks.samples_fit_law import FitRow
from specverify.report.statistics_plot import write_plot

ROW = FitRow("reference:a", "V=8", "target", 100, 3, 0, 1.0, 0.5, 0.0, 0.1, "fits", True, 0, "divided")


def test_the_picture_shows_every_row(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    file = tmp_path / "rows.svg"
    write_plot([ROW, ROW._replace(subject="reference:b", verdict="refuted", as_expected=False)], file)
    text = file.read_text("utf-8")
    assert all(f"<!-- {name} target, divided -->" in text for name in ("reference:a", "reference:b"))
    with pytest.raises(ValueError, match="is not supported"):
        write_plot([ROW], tmp_path / "rows.nothing")
