"""A rule that does not apply says why, and the refusal that the user reads repeats it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

import specverify
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import Declined, NeedsValue
from specverify.laws.draws import Tape

INTERCEPT = Path(specverify.__file__).parent / "intercept"
CALLS = {
    "torch.sin": (lambda: torch.rand(3).sin(), "there is no rule for aten.sin of random numbers"),
    "torch.logcumsumexp": (
        lambda: torch.logcumsumexp(torch.rand(2) + torch.rand(2), 0),
        "there is no rule for aten.logcumsumexp of random numbers",
    ),
    "torch.Tensor.std": (
        lambda: torch.rand(2, 2, 2).std(),
        "there is no rule for aten.std of random numbers",
    ),
    "torch.clamp in 16 bits": (
        lambda: torch.rand(3, dtype=torch.float16).clamp(0.25, 0.5),
        "random numbers of 16 bits are clamped: too many of them equal the bound",
    ),
    "torch.Tensor.view": (
        lambda: torch.rand(3).view(torch.int32),
        "random numbers are read as bits of another dtype",
    ),
}


@pytest.mark.parametrize("operation", CALLS)
def test_a_refusal_says_why_no_rule_applied(operation):
    call, reason = CALLS[operation]
    with pytest.raises(NeedsValue) as refused, answered_everywhere(Tape(0)):
        call()
    assert refused.value.code == "value-needed"
    assert refused.value.reason.endswith(f": {reason}")
    assert str(refused.value).startswith(f"{refused.value.operation} at test_declined.py:")
    assert f": {reason}; {refused.value.way_out}" in str(refused.value)


def test_an_operation_with_a_rule_declines_nothing():
    with answered_everywhere(Tape(0)):
        assert isinstance(bool(torch.rand(3).atan().sum() < 0.5), bool)


def test_the_innermost_reason_stays():
    refused = NeedsValue("value-needed", "the value is needed")
    refused.because(Declined("no inner rule")).because(Declined("no outer rule"))
    assert refused.reason == "the value is needed: no inner rule"
    other = NeedsValue("not-a-race", "it is no race").because(Declined("no rule"))
    assert other.reason == "it is no race"


def returns_of(source):
    """Return the lines of a module that return ``NotImplemented``."""
    nodes = ast.walk(ast.parse(source))
    return [node.lineno for node in nodes if isinstance(node, ast.Name) and node.id == "NotImplemented"]


def test_not_implemented_is_spelled_in_one_place_for_python_itself():
    found = {path.name: lines for path in INTERCEPT.rglob("*.py") if (lines := returns_of(path.read_text("utf-8")))}
    assert {name: len(lines) for name, lines in found.items()} == {"refusals.py": 1}
    assert returns_of("def f():\n    return g() if h else NotImplemented") == [2]
