"""The code that papers released: what holds of it and what does not, and which row of ``reference/`` it follows."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import pytest

from specverify.base.verdict import Status
from test_support.shipped.papers import HSD, PAPERS
from test_support.shipped.released import examine
from test_support.shipped.sources import functions_of
from tools.pages.released_page import detail, row

GOOD = {Status.HOLDS, Status.DECLARED_BIAS}


@pytest.mark.parametrize("place", range(len(PAPERS)), ids=[f"{paper.paper}: {paper.what}" for paper in PAPERS])
def test_what_was_released_does_what_is_told_of_it(place: int, record_property: Callable[..., None]) -> None:
    released, before = PAPERS[place], process_time()
    found = examine(released)
    seconds = process_time() - before
    told = row(place + 1, released, found, seconds), detail(place + 1, released, found)
    record_property("released", (place + 1, *told))
    for verdict in (*found.verdicts, *found.besides):
        print(f"{verdict.check}: {verdict.status.value}: {verdict.statement}")
    wrong = {verdict.check: verdict.status for verdict in found.verdicts if verdict.status not in GOOD}
    assert wrong == released.expected
    parts = [verdict.status not in GOOD for verdict in found.besides]
    assert parts == [beside.parts for beside in released.beside]


def test_hierarchical_speculative_decoding_cannot_be_compiled_as_released() -> None:
    with pytest.raises(TabError, match="inconsistent use of tabs"):
        functions_of(HSD, "transformers/generation/utils.py", "_speculative_sampling")
