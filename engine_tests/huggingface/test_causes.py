"""With the library's line mended, what the line is said to cause is gone: cells of one cause have one cause."""

from __future__ import annotations

import inspect

import pytest
from transformers.generation import utils

from specverify.checks import Conditions, check_named
from specverify.run.catalogue import find_subject

FIRST_ROUND = (
    ("    if len(outputs) == 0:\n", "    first = 0\n    if len(outputs) == 0:\n        first = cur_len\n"),
    ("layer[..., i : i + 1, :last_dim_size]", "layer[..., first + i : first + i + 1, :last_dim_size]"),
)
"""What is returned for drafts of the first round is read behind the prompt, and not at its beginning."""
ROWS = (
    "prompt-lookup/greedy",
    "assisted/plain",
    "assisted/padding",
    "assisted/t5",
    "prompt-lookup/gpt2",
    "prompt-lookup/lfm2",
    "early-exit/plain",
    "ensemble/plain",
)


@pytest.mark.thorough
@pytest.mark.parametrize("row", ROWS)
def test_what_the_first_round_returns_is_right_where_it_is_read_behind_the_prompt(row, monkeypatch):
    source = inspect.getsource(utils._split_model_outputs)
    for said, instead in FIRST_ROUND:
        assert source.count(said) == 1
        source = source.replace(said, instead)
    check = check_named("scores_match")
    (as_it_is,) = [case.examine(Conditions()) for case in check.cases(find_subject(f"hf:all/{row}"))]
    names = dict(vars(utils))
    exec(source, names)
    monkeypatch.setattr(utils, "_split_model_outputs", names["_split_model_outputs"])
    (mended,) = [case.examine(Conditions()) for case in check.cases(find_subject(f"hf:all/{row}"))]
    assert as_it_is.failed
    assert not mended.failed
    assert not mended.unknown
