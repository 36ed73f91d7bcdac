"""Two files of golden verdicts are compared verdict by verdict, and what was judged is not judged again."""

from __future__ import annotations

import json

from tools import golden_verdicts
from tools.golden_verdicts import Golden, compare, differences, read, write


def state(**verdicts):
    lines = {
        name: golden_verdicts.Line(1.0, {"law_is_target": [status, "why" if status == "unknown" else ""]})
        for name, status in verdicts.items()
    }
    return {"idioms": lines}


def test_a_verdict_that_leaves_unknown_is_decided_and_any_other_difference_is_a_change():
    before = state(atan="unknown", row="holds", twin="refuted", gone="holds", same="holds")
    after = state(atan="holds", row="unknown", twin="holds", same="holds", new="holds")
    found = {each.subject: each.decided for each in differences(before, after)}
    assert found == {"atan": True, "row": False, "twin": False, "gone": False, "new": False}


def test_another_law_of_a_call_is_a_change():
    before, after = ({"draws": {"rand": golden_verdicts.Line(0.0, {"law": ["answered", law]})}} for law in ("a", "b"))
    assert [each.decided for each in differences(before, after)] == [False]


def test_a_file_continues_where_it_ended_and_a_line_that_was_cut_off_is_judged_again(tmp_path, monkeypatch, capsys):
    judged = []

    def subjects():
        for name in ("first", "second"):
            yield name, lambda name=name: judged.append(name) or [Golden("law_is_target", "holds")]

    monkeypatch.setitem(golden_verdicts.GROUPS, "idioms", subjects)
    file = tmp_path / "golden.jsonl"
    write(file, ["idioms"])
    assert judged == ["first", "second"]
    file.write_text(file.read_text()[:-20])
    assert list(read(file)["idioms"]) == ["first"]
    write(file, ["idioms"])
    assert judged == ["first", "second", "second"]
    assert json.loads(file.read_text().splitlines()[0])["verdicts"] == {"law_is_target": ["holds", ""]}
    assert compare(file, file) == 0
    assert "idioms: 2 subjects" in capsys.readouterr().out


def test_a_part_of_the_subjects_is_judged_and_compared_alone(tmp_path, monkeypatch):
    verdicts = {f"subject {place}": "holds" for place in range(5)}

    def subjects():
        for name, status in verdicts.items():
            yield name, lambda status=status: [Golden("law_is_target", status)]

    monkeypatch.setitem(golden_verdicts.GROUPS, "idioms", subjects)
    whole, part = tmp_path / "whole.jsonl", tmp_path / "part.jsonl"
    write(whole, ["idioms"])
    write(part, ["idioms"], every=2)
    assert list(read(part)["idioms"]) == ["subject 0", "subject 2", "subject 4"]
    assert compare(whole, part) == 1
    assert compare(whole, part, common=True) == 0
    verdicts["subject 2"] = "refuted"
    part.unlink()
    write(part, ["idioms"], every=2)
    assert compare(whole, part, common=True) == 1
