"""With lines of the library mended, what they are said to cause is gone: the harness refutes nothing that is right.

Here the first row of each cause, as it is and mended; all of their cells by ``nox -s pages -- controls``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "tools" / "surveys"))

from controls import run
from reproducers import cells_of

QUICK = "`top_h` bounds another sum; a forbidden word that is an end is allowed"
PAGE = "transformers-table"
CELLS = {cause: cells for cause, cells in cells_of().items() if cause.page == PAGE}


@pytest.mark.thorough(keep=29)
@pytest.mark.parametrize("cause", sorted(CELLS, key=lambda cause: cause.cause != QUICK), ids=lambda cause: cause.cause)
def test_what_is_refuted_holds_with_the_library_mended(cause):
    *_, found = run(cause, CELLS[cause], {}, fewer=True)
    assert set(found["as it is"].values()) <= {"refuted", "unusable"}
    assert set(found["mended"].values()) == {"holds"}
