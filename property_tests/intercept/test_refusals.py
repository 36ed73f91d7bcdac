"""Refusals are values: each has a code of the table, and names the operation, the line, the reason and a way out."""

from __future__ import annotations

import ast
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import specverify
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import REASONS, NeedsValue
from specverify.laws.draws import Tape
from tools.pages import refusals_page

ROOT = Path(specverify.__file__).parent
RNG = np.random.default_rng(0)
MAKERS = {"NeedsValue", "refusal"}


def codes_raised(source):
    """Return the code of every refusal that a module makes; None for one that is no literal."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    made = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in MAKERS]
    return [call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None for call in made]


def everywhere():
    found = {path: codes_raised(path.read_text()) for path in ROOT.rglob("*.py")}
    own = {ROOT / "intercept" / "refusals.py", ROOT / "intercept" / "symbolic" / "uniform.py"}  # which define both
    return {path: [code for code in codes if not (code is None and path in own)] for path, codes in found.items()}


def test_every_refusal_has_a_code_of_the_table_and_every_code_is_raised():
    found = everywhere()
    wrong = {str(path): codes for path, codes in found.items() if not set(codes) <= REASONS.keys()}
    assert wrong == {}
    assert {code for codes in found.values() for code in codes} == REASONS.keys()


def test_a_refusal_without_a_code_is_noticed():
    assert codes_raised('raise NeedsValue(f"{what} is needed")\nraise refusal("no-such", "it is")') == [None, "no-such"]
    with pytest.raises(KeyError):
        NeedsValue("no-such", "it is")


def test_the_page_is_what_would_be_written_now():
    assert Path("docs/refusals.md").read_text() == refusals_page.page()


CALLS = {
    "np.sin": (np.sin, "value-needed"),
    "math.log": (lambda u: math.log(u - 0.5), "unknown-sign"),
    "power of floats": (lambda u: (u - 0.5) ** 0.5, "unknown-sign"),
    "np.argmax": (lambda _: np.argmax(RNG.random(3) * RNG.random(3)), "not-a-race"),
}


@pytest.mark.parametrize("operation", CALLS)
def test_it_names_the_operation_its_line_the_reason_and_a_way_out(operation):
    call, code = CALLS[operation]
    with pytest.raises(NeedsValue) as refused, answered_everywhere(Tape(0)):
        call(RNG.random())
    assert refused.value.code == code
    assert refused.value.operation == operation
    assert re.fullmatch(r"test_refusals\.py:\d+", refused.value.place)
    assert str(refused.value) == (
        f"{operation} at {refused.value.place}: {refused.value.reason}; {REASONS[code].way_out}"
    )


def test_the_innermost_operation_and_the_first_place_stay():
    refused = (
        NeedsValue("no-law", "it has no law").during("np.inner", "a.py:1").during("np.outer", "a.py:1").at("b.py:2")
    )
    assert (refused.operation, refused.place) == ("np.inner", "a.py:1")
    looked_at = NeedsValue("no-law", "it has no law").at("a.py:1").during("Tensor.item", "b.py:2")
    assert (looked_at.operation, looked_at.place) == ("", "a.py:1")


def test_it_passes_between_processes():
    refused = NeedsValue("no-law", "it has no law").during("np.inner", "a.py:1")
    again = pickle.loads(pickle.dumps(refused))
    assert (str(again), again.code) == (str(refused), "no-law")
