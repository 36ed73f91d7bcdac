"""TokenTiming's rows for drafts that were spelled anew, and the sampling function of its fork of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Optional

import numpy as np
import torch

from test_support.shipped.sources import functions_of

GENERATION = "transformers/generation"


class Words:
    """A tokenizer that returns the words of ids."""

    def __init__(self, words: Sequence[str]) -> None:
        """Token i is ``words[i]``."""
        self.words = words

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return "".join(self.words[token] for token in ids)


def edit_distance(one: str, other: str) -> int:
    """Return how many letters are inserted, deleted or replaced to make one word of the other."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one):
        before, row[0] = row[:], i + 1
        for j, with_letter in enumerate(other):
            row[j + 1] = min(before[j] + (letter != with_letter), before[j + 1] + 1, row[j] + 1)
    return row[-1]


def sampling() -> Any:
    """Return ``_speculative_sampling`` as ``sample(p, rows, draft_tokens)``; without drafts it draws from p."""
    own = functions_of("TokenTiming", f"{GENERATION}/utils.py", "_speculative_sampling", torch=torch, Optional=Optional)

    def sample(p: Any, rows: Any, draft_tokens: Any) -> Any:
        if len(draft_tokens) == 0:
            return torch.multinomial(p[-1], 1)
        return own._speculative_sampling(draft_tokens[None], rows, len(draft_tokens), p.log()[None], False)[0][0]

    return sample


def sampled_rows() -> Any:
    """Call the fork's sampling function on the drafter's rows, as assisted generation with one vocabulary does."""
    sample = sampling()
    return lambda p, q, draft_tokens: sample(p, q.log()[None], draft_tokens)


def token_timing() -> Any:
    """Call it on the rows of ``get_target_logits_with_dtw``; each word of the drafter is two letters of the text."""
    names, sample = ("AssistantToTargetTranslator",), sampling()
    made = functions_of(
        "TokenTiming",
        f"{GENERATION}/candidate_generator.py",
        *names,
        torch=torch,
        np=np,
        editdistance=SimpleNamespace(eval=edit_distance),
        deprecate_kwarg=lambda *_, **__: lambda function: function,
    ).AssistantToTargetTranslator

    def rows(q: Any, draft_tokens: Any) -> Any:
        letters = [chr(ord("a") + int(token)) for token in range(q.shape[-1])]
        text = "".join(letters[int(token)] for token in draft_tokens)
        words = [text[i : i + 2] for i in range(0, len(text), 2)]
        aligned = object.__new__(made)
        vars(aligned).update(
            _assistant_tokenizer=Words(words),
            _target_tokenizer=Words(letters),
            target_vocab_size=len(letters),
            _assistant_model_device="cpu",
            blending_special_token="",
            base_special_token="",
            _dtw_window=32,
            _num_new_target_tokens=len(draft_tokens),
        )
        own = q[: 2 * len(words) : 2].log()[None]
        return aligned.get_target_logits_with_dtw(own, torch.arange(len(words))[None], draft_tokens[None])[0]

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        return sample(p, rows(q, draft_tokens) if len(draft_tokens) else None, draft_tokens)

    return verify
