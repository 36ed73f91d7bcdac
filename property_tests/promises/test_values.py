"""Values beside the tokens: planted bugs of one engine that returns everything, and engines of unlike kinds."""

from functools import partial

import pytest

from specverify.mutants.promising import VALUES, returning, text_of
from specverify.testing import check_engine

ALL = {
    "logprobs": "raw",
    "top_logprobs": "processed",
    "cumulative_logprob": "processed",
    "scores": "processed",
    "prompt_logprobs": "raw",
    "text": text_of,
    "chunks": text_of,
    "snapshots": text_of,
    "finish_reason": None,
}


def verdicts(make, returns, **how):
    return {v.check: v for v in check_engine(make, returns=returns, on_fail=None, **{"quick": True, **how})}


def named(fault):
    name = VALUES[fault][0]
    return {name: ALL.get(name, "plain")}


@pytest.mark.thorough(keep=7)
@pytest.mark.parametrize("fault", VALUES)
def test_a_wrong_value_is_refuted(fault):
    value = verdicts(
        partial(returning, fault), named(fault), checks=["values_match"], quick=VALUES[fault][0] != "finish_reason"
    )
    assert value["values_match"].status == "refuted", value["values_match"]


@pytest.mark.thorough
def test_the_right_engine_holds_with_all_its_values():
    value = verdicts(partial(returning, ""), {**ALL, "processed_logprobs": "plain"}, checks=["values_match"])
    assert value["values_match"].status == "holds", value["values_match"]
