"""Causes of faults: their lines are in the library, and a mended library holds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[3] / "tools" / "surveys"))

from controls import run
from reproducers import cells_of

from specverify.engines.huggingface.rows import rows
from specverify.engines.huggingface.script_causes import CAUSES, cause_of
from specverify.subjects.fault import Fault

QUICK = "`top_h` bounds another sum; a forbidden word that is an end token is not forbidden"

PAGE = "transformers-table"

CELLS = {cause: cells for cause, cells in cells_of().items() if cause.page == PAGE}


@pytest.mark.filterwarnings("ignore:Passing .repetition_penalty. with .inputs_embeds.:UserWarning")  # told by a cause
@pytest.mark.thorough(keep=29)
@pytest.mark.parametrize("cause", sorted(CELLS, key=lambda cause: cause.cause != QUICK), ids=lambda cause: cause.cause)
def test_what_is_refuted_holds_with_the_library_mended(cause):
    *_, found = run(cause, CELLS[cause], {}, fewer=True)
    assert set(found["as it is"].values()) <= {"refuted", "unusable"}
    assert set(found["mended"].values()) == {"holds"}


def test_the_line_of_every_cause_is_in_the_library():
    for cause in CAUSES:
        setting = next(name for name in rows() if any(part.strip("*") in name for part in cause.settings.split()))
        kind = cause.kinds.partition(" ")[0]
        fault = Fault("", returned=kind if kind == "hidden_states" else "", changed=("x",) * (kind == "changed"))
        fault = fault._replace(uniform=0.0 if kind == "boundary" else None)
        assert cause.line in cause_of(setting, fault)


def test_the_line_that_raises_is_the_innermost_of_the_library():
    frames = ((torch.__file__, 1, "a"), (sys.modules["transformers"].__file__, 7, "b"), (torch.__file__, 3, "c"))
    assert cause_of("assisted/plain", Fault("", error="ValueError", frames=frames)) == "transformers/__init__.py:7: b"


def test_a_setting_without_a_known_cause_has_none():
    assert not cause_of("assisted/plain", Fault("", wrong=((0,),)))
