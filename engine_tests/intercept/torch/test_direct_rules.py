"""A rule that is applied directly gives the law that it gives behind torch's dispatcher, and other calls go there."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from specverify.intercept.refusals import is_declined
from specverify.intercept.torch import calls
from specverify.intercept.torch.direct_rules import applied_directly
from specverify.intercept.torch.tensors import SymbolicTensor
from test_support.intercept import torch_laws

P = torch.tensor([0.25, 0.5], dtype=torch.float64)
ROW = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)
TOKENS = torch.tensor([7, 8])
DIRECT = {
    "lt": lambda: torch.rand(2) < P,
    "lt of a number": lambda: torch.sum(torch.rand(2) < 0.25),
    "int": lambda: torch.Tensor.int(torch.rand(2) < P),
    "cumprod and sum": lambda: int((torch.rand(2) < P).int().cumprod(0).sum()),
    "cat": lambda: torch.cat([TOKENS, torch.multinomial(ROW, 1)]),
    "where": lambda: torch.where(torch.rand(2) < P, TOKENS, -TOKENS),
    "argmax of a race": lambda: int((ROW / torch.empty(3, dtype=torch.float64).exponential_()).argmax(-1)),
    "argmax of several": lambda: torch.stack([torch.rand(2), torch.rand(2)]).argmax(-1),
    "add": lambda: torch.multinomial(ROW, 1) + TOKENS,
    "of a read outcome": lambda: (int(token := torch.multinomial(ROW, 1)), *torch.cat([TOKENS, token]).tolist()),
}


@pytest.mark.parametrize("name", DIRECT)
def test_the_law_is_that_behind_the_dispatcher(name, monkeypatch):
    used = []

    def counted(func, args):
        result = applied_directly(func, args)
        used.append(not is_declined(result))
        return result

    monkeypatch.setattr(calls, "applied_directly", counted)
    law = torch_laws.law_of(DIRECT[name])
    assert any(used)
    refused = applied_directly(torch.Tensor.lt, (P, P))
    monkeypatch.setattr(calls, "applied_directly", lambda func, args: refused)
    assert law.probabilities == torch_laws.law_of(DIRECT[name]).probabilities
    assert len(law.probabilities) > 1


class AddingMode(TorchDispatchMode):
    """A mode that changes results, as those of other programs may."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run the operation, and add 3 to the result of an addition."""
        result = func(*args, **(kwargs or {}))
        return result + 3 if func is torch.ops.aten.add.Tensor else result


def token():
    """Return a tensor with one unread outcome."""
    return torch.multinomial(ROW, 1)


LEFT = {
    "no symbolic tensor": lambda: (torch.Tensor.add, (TOKENS, 1)),
    "its own dtype": lambda: (torch.Tensor.long, (token(),)),
    "a view": lambda: (torch.Tensor.t, (token(),)),
    "a slice": lambda: (torch.Tensor.__getitem__, (token(), slice(1))),
    "made of other operations": lambda: (torch.where, (token() < 1, token(), 0.5)),
    "a gradient": lambda: (torch.mul, (torch.rand(2), P.clone().requires_grad_())),
    "an argument of another type": lambda: (torch.Tensor.sum, (token(), [0])),
    "several results": lambda: (torch.max, (torch.rand(2), 0)),
    "a list that is not of tensors alone": lambda: (torch.cat, ([token(), 1],)),
}


@pytest.mark.parametrize("name", LEFT)
def test_other_calls_are_left_to_the_dispatcher(name):
    left = []

    def program():
        func, args = LEFT[name]()
        with torch._C.DisableTorchFunction():
            left.append(is_declined(applied_directly(func, args)))
        return 0

    torch_laws.law_of(program)
    assert all(left)
    assert left


def test_a_mode_of_the_program_sees_the_call():
    def program():
        drawn = token()
        with AddingMode():
            return drawn + 1

    assert torch_laws.law_of(program).probabilities == {(4,): 0.25, (5,): 0.25, (6,): 0.5}


def test_a_conversion_to_its_own_dtype_is_the_tensor_itself():
    def program():
        drawn = token()
        assert drawn.long() is drawn
        assert isinstance(drawn, SymbolicTensor)
        return drawn

    assert len(torch_laws.law_of(program).probabilities) == len(ROW)


PROGRAM = """
import sys, torch
from specverify.testing import check_verifier
def sampler(p, q, draft_tokens):
    places = torch.arange(len(draft_tokens))
    kept = torch.rand(len(draft_tokens)) < p[places, draft_tokens] / q[places, draft_tokens]
    accepted = int(kept.int().cumprod(0).sum())
    weights = p[accepted]
    if accepted < len(draft_tokens):
        weights = (p[accepted] - q[accepted]).clamp(min=0)
        weights = weights if weights.any() else p[accepted]
    return torch.cat([draft_tokens[:accepted], torch.multinomial(weights, 1)])
check_verifier(sampler, quick=True, checks=["law_is_target"])
print("torch.distributed.tensor" in sys.modules)
"""


@pytest.mark.thorough
def test_a_check_of_a_sampler_does_not_load_distributed_tensors(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    result = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False"]
