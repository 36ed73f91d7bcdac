"""Weights and tokenizers as code."""

from __future__ import annotations

import pytest

from specverify.engines.huggingface.script_models import fill_code, tokenizers_code
from specverify.engines.huggingface.script_text import Written
from specverify.engines.huggingface.situations import letters_tokenizer
from specverify.engines.huggingface.speculators import two_tokenizers
from specverify.subjects.fault import NoScript


@pytest.mark.parametrize("tokenizer", [two_tokenizers(2).assistant_tokenizer, letters_tokenizer(4)])
def test_tokenizers_are_written_by_their_parts(tokenizer):
    written = Written(set(), set(), [], {}, {})
    lines = list(tokenizers_code({"tokenizer": tokenizer}, written))
    names = {}
    exec(
        "from tokenizers import *\nfrom transformers import PreTrainedTokenizerFast\n"
        + "\n".join([*written.before, *lines]),
        names,
    )
    assert "WordLevel" in lines[0]
    assert names["tokenizer"].backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_vectors_are_filled_by_the_ends_of_their_names():
    def rule(**vectors):
        return fill_code(Written(set(), set(), [], {}, vectors))

    assert "fill_(1.0)" in rule(norm=1.0)
    assert 'fill_(0.0 if name.endswith("bias") else 1.0)' in rule(norm=1.0, first_bias=0.0)
    with pytest.raises(NoScript, match="one-dimensional weights"):
        rule(norm=1.0, other=3.0)
