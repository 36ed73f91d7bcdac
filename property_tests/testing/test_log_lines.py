"""Progress of a check function as lines of the logger ``specverify``."""

from __future__ import annotations

import logging

import numpy as np

from specverify.base.verdict import Evidence, Status, Verdict
from specverify.testing import check_verifier
from specverify.testing.log_lines import LogLines


def keeps_every_draft(p, q, draft_tokens):
    return [*draft_tokens, np.random.default_rng().choice(p.shape[1], p=p[-1])]


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "specverify"]


def test_each_verdict_is_a_line_and_later_lines_name_what_was_refuted(caplog):
    with caplog.at_level(logging.INFO, logger="specverify"):
        verdicts = check_verifier(
            keeps_every_draft, checks=["law_is_target", "inputs_unchanged"], quick=True, gammas=[1], on_fail=None
        )
    statuses = {verdict.check: verdict.status for verdict in verdicts}
    assert statuses == {"law_is_target": Status.REFUTED, "inputs_unchanged": Status.HOLDS}
    first, second = (line for line in messages(caplog) if " examined" not in line)  # told where a check is slow
    assert "keeps_every_draft: law_is_target refuted (" in first
    assert "keeps_every_draft: inputs_unchanged holds (" in second
    assert second.endswith("; refuted so far: law_is_target")
    assert "so far" not in first


def test_no_line_is_made_below_the_level_info(caplog):
    with caplog.at_level(logging.WARNING, logger="specverify"):
        check_verifier(keeps_every_draft, checks=["inputs_unchanged"], quick=True, gammas=[1])
    assert messages(caplog) == []


def test_a_line_about_cases_names_the_check_and_their_number(caplog):
    lines = LogLines("sampler", seconds=0.0)
    with caplog.at_level(logging.INFO, logger="specverify"):
        lines.progress("law_is_target", 0, 0)
        lines.progress("law_is_target", 3, 40)
        lines.verdict(Verdict("sampler", "law_is_target", Status.REFUTED, "TV = 0.1", None, Evidence.EXACT))
        lines.verdict(Verdict("sampler", "greedy_is_argmax", Status.NOT_APPLICABLE, "", None, Evidence.EXACT))
        lines.progress("merging_is_sound", 2, 0)
    assert messages(caplog) == [
        "sampler: law_is_target, 3 of 40 cases examined",
        "sampler: law_is_target refuted (0.0 s): TV = 0.1",
        "sampler: merging_is_sound, 2 cases examined; refuted so far: law_is_target",
    ]


def test_lines_about_cases_are_seconds_apart(caplog):
    lines = LogLines("sampler", seconds=3600.0)
    with caplog.at_level(logging.INFO, logger="specverify"):
        lines.progress("law_is_target", 3, 40)
    assert messages(caplog) == []
