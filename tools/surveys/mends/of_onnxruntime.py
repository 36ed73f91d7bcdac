"""A right engine in the place of onnxruntime-genai, which is compiled: its model in ONNX Runtime, our decoding."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from mends.mending import Change, Ours

from reference import Tokens, warped

ADAPTER = "specverify.engines.onnxruntime.adapter"


class Parameters:
    """What ``GeneratorParams`` is told."""

    def __init__(self, ends) -> None:
        """Nothing is asked for yet."""
        self.ends, self.search, self.drafts = ends, {}, {}

    def set_search_options(self, **options):
        """Keep how tokens are chosen."""
        self.search = options

    def set_speculative_options(self, **options):
        """Keep how tokens are drafted."""
        self.drafts = options


class Generator:
    """Answers calls as the library's ``Generator`` does: all tokens, and those that a round has decided beforehand."""

    def __init__(self, ends, parameters) -> None:
        """Begin without a text."""
        self.ends, self.search, self.drafts = ends, parameters.search, parameters.drafts
        self.tokens, self.decided, self.ended = (), [], False
        self.draws = np.random.default_rng(self.search["random_seed"])
        choosing = {name: self.search[name] for name in ("temperature", "top_k", "top_p", "repetition_penalty")}
        self.pmf = warped(self._logits, **choosing)

    def append_tokens(self, tokens):
        """Put tokens behind the text: what was decided before does not follow it."""
        self.tokens, self.decided = (*self.tokens, *tokens), []

    def rewind_to(self, length):
        """Go back to the first tokens."""
        self.tokens, self.decided, self.ended = self.tokens[:length], [], False

    def is_done(self):
        """Say whether an end was drawn or the text is full."""
        return self.ended or len(self.tokens) >= self.search["max_length"]

    def get_sequence(self, row):
        """Return the text."""
        return np.array(self.tokens)

    def generate_next_token(self):
        """Return nothing; one token is put behind the text, but an end."""
        self.decided = self.decided or self._round()
        token = self.decided.pop(0)
        self.ended = token in self.ends
        if not self.ended:
            self.tokens = (*self.tokens, token)

    def _round(self):
        """Return drafts copied from the text as far as they are what p draws, and the first token that is not."""
        kept = []
        for draft in [*self._copied(), None]:
            text = (*self.tokens, *kept)
            kept.append(int(self.draws.choice(len(self.pmf(text)), p=self.pmf(text))))
            if kept[-1] != draft or draft in self.ends:
                break
        return kept

    def _copied(self):
        text, size = self.tokens, self.drafts.get("ngram_size", 2)
        for place in range(len(text) - size, 0, -1):
            if text[place - 1 : place + size - 2] == text[len(text) - size + 1 :]:
                return text[place + size - 2 :][: self.drafts.get("max_draft_tokens", 0)]
        return ()

    def _logits(self, tokens):
        found, size = logits(tokens).copy(), self.search.get("no_repeat_ngram_size", 0)
        said = [tokens[place : place + size] for place in range(len(tokens) - size + 1)] if size else []
        found[[ngram[-1] for ngram in said if ngram[:-1] == tokens[len(tokens) - size + 1 :]]] = -np.inf
        return found


@cache
def session() -> Any:
    """Return the target, opened by ONNX Runtime itself."""
    import onnxruntime

    from specverify.engines.onnxruntime.adapter import MODELS

    return onnxruntime.InferenceSession(str(MODELS / "target.onnx"))


@cache
def logits(tokens: Tokens) -> Any:
    """Return the logits after tokens, the whole text in one pass."""
    from specverify.subjects.decoding import TARGET_SEED, tiny_llama

    sizes = tiny_llama(TARGET_SEED).sizes
    empty = np.zeros((1, sizes.kv_heads, 0, sizes.head_width), dtype=np.float32)
    given = {each.name: empty for each in session().get_inputs() if each.name.startswith("past")}
    ids = np.array([tokens])
    return (
        session()
        .run(["logits"], {**given, "input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0, -1]
        .astype(float)
    )


RIGHT = (
    Ours(f"{ADAPTER}:library", lambda library: SimpleNamespace(GeneratorParams=Parameters, Generator=Generator)),
    Ours(f"{ADAPTER}:model", lambda library: lambda drafting, ends: ends),
)
OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "n-gram drafts drop `no_repeat_ngram_size`": RIGHT,
    "plain: a token before `append_tokens` is never read": RIGHT,
}
