"""A right engine that replaces the compiled onnxruntime-genai: its model in ONNX Runtime, this project's decoding."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from mends.mending import Change, Ours

from reference import Tokens, warped

ADAPTER = "specverify.engines.onnxruntime.adapter"


class Parameters:
    """Replacement for onnxruntime-genai's ``GeneratorParams``."""

    def __init__(self, ends) -> None:
        """Begin without options; ``ends`` are the end tokens."""
        self.ends, self.search, self.drafts = ends, {}, {}

    def set_search_options(self, **options):
        """Store the options with which tokens are sampled."""
        self.search = options

    def set_speculative_options(self, **options):
        """Store the options with which tokens are drafted."""
        self.drafts = options


class Generator:
    """Replacement for the library's ``Generator``; it holds all tokens and those already decided for later calls."""

    def __init__(self, ends, parameters) -> None:
        """Begin with an empty text."""
        self.ends, self.search, self.drafts = ends, parameters.search, parameters.drafts
        self.tokens, self.decided, self.ended = (), [], False
        self.draws = np.random.default_rng(self.search["random_seed"])
        choosing = {name: self.search[name] for name in ("temperature", "top_k", "top_p", "repetition_penalty")}
        self.pmf = warped(self._logits, **choosing)

    def append_tokens(self, tokens):
        """Append tokens to the text; tokens that were decided for later calls are discarded."""
        self.tokens, self.decided = (*self.tokens, *tokens), []

    def rewind_to(self, length):
        """Keep only the first ``length`` tokens of the text."""
        self.tokens, self.decided, self.ended = self.tokens[:length], [], False

    def is_done(self):
        """Return whether an end token was drawn or the text has its maximum length."""
        return self.ended or len(self.tokens) >= self.search["max_length"]

    def get_sequence(self, row):
        """Return the tokens of the text."""
        return np.array(self.tokens)

    def generate_next_token(self):
        """Append one token to the text, unless it is an end token."""
        self.decided = self.decided or self._round()
        token = self.decided.pop(0)
        self.ended = token in self.ends
        if not self.ended:
            self.tokens = (*self.tokens, token)

    def _round(self):
        """Return the tokens of one round.

        Drafts are copied from the text. The round consists of draws from p: those equal to their drafts, and the first
        one that differs or ends the text.
        """
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
    """Return the target model, opened by ONNX Runtime itself."""
    import onnxruntime

    from specverify.engines.onnxruntime.adapter import MODELS

    return onnxruntime.InferenceSession(str(MODELS / "target.onnx"))


@cache
def logits(tokens: Tokens) -> Any:
    """Return the logits after ``tokens``, computed in one forward pass without a cache."""
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
    "plain: the last token before `append_tokens` is never read by the model": RIGHT,
}
