"""Small runs of every kind, as the commands write them, with names that want to be more than names."""

from __future__ import annotations

import json
import math

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.report.data import as_data
from specverify.report.runs.loading import said_of

NASTY = "<script>alert('me')</script> & \"quoted\" `|` \x1b[31m \u202e"
MADE = {"command": "specverify verify 'a subject'", "versions": {"specverify": "0.1.0", "numpy": "2.4.6"}}
EXAMPLE = Counterexample(
    ("vocabulary {0, 1}", NASTY), "(1, 1) with probability 4/9, but is with 5/9", ("draft 1",), "eNabc_-"
)


def tally(counts, samples, law, sampled=False):
    shown = [[str((i,)), p, counts[i]] for i, p in enumerate(law)]
    return {"samples": samples, "cells": len(law), "sampled": sampled, "shown": shown}


MEASURED = {
    "samples": 1000,
    "log10_e": 41.0,
    "alarm": 1e-6,
    "tally": tally((100, 200, 700), 1000, (0.3, 0.2, 0.5)),
    "course": [[64, 0.5], [128, 3.0], [1000, 41.0]],
}
TIE = {
    "setting": "prompt 3 1",
    "position": 4,
    "plain": 7,
    "speculative": 2,
    "gap": 0.004,
    "bound": 0.02,
    "near_tie": True,
}
PARTED = {
    "partings": [
        TIE,
        TIE | {"setting": NASTY, "position": 0, "gap": 1.75, "near_tie": False},
        TIE | {"position": 11, "speculative": -1, "gap": math.inf, "near_tie": False},
        TIE | {"gap": 0.0, "bound": 0.0},
    ]
}
ACCEPTANCE = {"acceptance": [[0.75, 0.75], [0.5, 0.5625]], "rows": []}

VERDICTS = (
    Verdict("reference:right", "law_is_target", Status.HOLDS, "the law is the target's", "lossless", Evidence.EXACT),
    Verdict("reference:right", "call_law", Status.NOT_APPLICABLE, "it is no call"),
    Verdict("reference:right", "acceptance_is_optimal", Status.HOLDS, "often", "optimal coupling", figures=ACCEPTANCE),
    Verdict(NASTY, "law_is_target", Status.REFUTED, f"TV 1/9 {NASTY}", "lossless", Evidence.EXACT, EXAMPLE),
    Verdict(NASTY, "samples_fit_law", Status.REFUTED, "it has not the law", "lossless", figures=MEASURED),
    Verdict(
        NASTY,
        "greedy_is_argmax",
        Status.UNKNOWN,
        "more samples would decide",
        "greedy",
        Evidence.STATISTICAL,
        figures=PARTED,
    ),
    Verdict(NASTY, "eos_is_final", Status.UNUSABLE, f"it raised {NASTY}"),
    Verdict(NASTY, "law_is_declared", Status.DECLARED_BIAS, "as declared", None, Evidence.EXACT, seconds=1.5),
    Verdict(NASTY, "stop_law", Status.REFUSED, "not with this setting"),
)
ROW = {
    "subject": "reference:nasd",
    "setting": "V=8 T=1",
    "against": "target",
    "method": "divided",
    "samples": 1000,
    "confirmed_on": 0,
    "p_value": 0.4,
    "tv_observed": 0.01,
    "tv_detectable": 0.02,
    "verdict": "fits",
    "as_expected": True,
    "example": "",
}
STATISTICS = {
    "specverify": "0.1.0",
    "alarm": 1e-6,
    "tests": 3,
    "seed": 0,
    "complete": False,
    "rows": [
        ROW,
        ROW | {"against": "target", "verdict": "refuted", "p_value": 0.0, "tv_observed": 0.3},
        ROW | {"subject": NASTY, "verdict": "refuted", "as_expected": False, "confirmed_on": 4000, "example": NASTY},
        ROW | {"subject": NASTY, "verdict": "unknown", "as_expected": False},
    ],
}


def _mutant(name, *said, as_expected=True):
    cells = [{"check": check, "status": status} for check, status in said]
    words = {"name": name, "summary": NASTY, "citation": "plausible", "category": "A", "killed_by": said[0][0]}
    return {**words, "cells": cells, "control": "holds", "as_expected": as_expected, "peers": {}}


MATRIX = {
    "mutants": [
        _mutant("inverted-ratio", ("law_is_target", "killed"), ("eos_is_final", "holds")),
        _mutant(NASTY, ("law_is_target", "holds"), ("eos_is_final", "unknown"), as_expected=False),
    ],
    "controls": [
        {"name": "gamma-by-position", "accused_by": [], "held": ["law_is_target"], "as_expected": True},
        {"name": "accused", "accused_by": ["law_is_target"], "held": [], "as_expected": False},
    ],
    "killed_alone": {},
    "seed": 0,
    "detect": 0.4,
    "made": MADE,
}
TEXTS = {
    "verdicts": json.dumps(as_data(VERDICTS, 1e-6, 7, MADE)),
    "statistics": json.dumps(STATISTICS),
    "kill matrix": json.dumps(MATRIX),
}


def run_of(kind):
    return said_of(TEXTS[kind], kind)
