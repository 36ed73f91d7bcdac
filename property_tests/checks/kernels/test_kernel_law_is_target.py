"""The law of a round of a kernel, from its uniforms: the size of a bias, and the text of a wrong row."""

from __future__ import annotations

import re

import pytest

from property_tests.checks.kernels.test_kernels import named
from specverify.checks.kernels import kernel_law_is_target
from specverify.checks.kernels.kernel_law_is_target import DOUBT
from specverify.testing import KernelConvention, check_kernel
from test_support.kernels.planted_kernels import PLANTED

SMALL = dict(vocabularies=(129,), rows=2**13)


def test_a_bias_is_located_to_a_part_in_ten_thousand():
    """The acceptance is lowered by 1/200: the law is off by what the residual gives away, in an interval."""
    verdict = named(check_kernel(PLANTED["accepts a little less"].kernel, on_fail=None, **SMALL), "law_is_target")
    low, high = map(float, re.match(r"TV = (\S+) to (\S+) from", verdict.statement).groups())
    assert DOUBT < low <= high < 0.01


@pytest.mark.parametrize(
    ("emitted", "ought", "said"),
    [
        ((0, 1), (1,), "draft 1 (0) of a row is accepted where the rule has it rejected"),
        ((1,), (0, 2, 1), "draft 1 (0) of a row is rejected where the rule has it accepted"),
        ((0, 2, 2), (0, 2, 1), "the bonus token of a row is 2 where the rule draws 1"),
        ((0, 0), (0, 1), "the token in place of the rejected draft 2 of a row is 0 where the rule draws 1"),
        ((), (1,), "a row of 2 drafts emits () where the rule emits (1,)"),
    ],
)
def test_a_row_that_leaves_the_rule_is_told_in_the_words_of_decoding(emitted, ought, said):
    assert kernel_law_is_target._fault((0, 2), emitted, ought) == said


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "noise of the first row",
            "every row reads the noise of the last draw of the first row: the bonus token of row",
        ),
        ("race of p", "the token in place of the rejected draft 1 of a row is"),
    ],
)
def test_random_numbers_of_another_row_are_named_only_where_they_explain_every_answer(name, says):
    planted = PLANTED[name]
    convention = KernelConvention(**planted.convention)
    verdicts = check_kernel(planted.kernel, convention, on_fail=None, quick=True, vocabularies=(5,), rows=2**10)
    assert named(verdicts, "law_is_target").counterexample.fault.startswith(says)
