"""Transformers models with their key-value caches, as language models for the reference decoders and as batches.

``CachedBatch`` is the cache: rows of left-padded tokens, fed and cropped together. ``CachedModel`` is one row of it and
a ``LanguageModel``: it returns p(. | tokens) from rows that it has computed, or feeds the tokens that its cache lacks.
A cache is rolled back by ``keep`` only, at lengths from ``reference.kv_cache``; a query for tokens that contradict the
cache is an error. ``speculate`` runs a decoder of ``reference`` round by round: the verifying pass is one forward pass
of gamma + 1 rows, all other tokens are fed one at a time. ``greedy`` and ``whole_logits`` compute the target's output
without any algorithm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache

from reference import Decoder, Sampled, Tokens, crop, keep_lengths, tokens_to_feed


class CachedBatch:
    """Rows of tokens in one cache, each left-padded to the longest prompt.

    An encoder-decoder's prompts go to its encoder, padded on the right (an absolute position must not move), and its
    decoder's rows begin with the start token. ``plain`` leaves mask and positions to the library, as with one row.
    """

    def __init__(self, model: Any, prompts: list[Tokens]) -> None:
        """Start with an empty cache; the prompts of an encoder-decoder are encoded."""
        self.model = model
        self.plain = len(prompts) == 1
        self.past: Any
        width = max(map(len, prompts))
        pads = [width - len(prompt) for prompt in prompts]
        self.encoded: dict[str, Any] = {}
        if model.config.is_encoder_decoder:
            ids = [(*prompt, *(0,) * pad) for prompt, pad in zip(prompts, pads, strict=True)]
            seen = [(1,) * len(prompt) + (0,) * pad for prompt, pad in zip(prompts, pads, strict=True)]
            mask = self.tensor(seen)
            with torch.no_grad():
                hidden = model.get_encoder()(input_ids=self.tensor(ids), attention_mask=mask)
            self.encoded = {"encoder_outputs": hidden, "attention_mask": mask}
            self.past = EncoderDecoderCache(DynamicCache(config=model.config), DynamicCache())
            self.layers = self.past.self_attention_cache.layers
            self.pads = [0] * len(prompts)
        else:
            self.past = DynamicCache(config=model.config)
            self.layers = self.past.layers
            self.pads = pads
        for layer in self.layers:
            if layer.is_sliding:
                layer.activate_past_recording()  # otherwise it forgets what a crop brings back into the window
        self.mask = self.tensor([()] * len(prompts))

    def tensor(self, rows: list[Tokens]) -> torch.Tensor:
        """Return rows of tokens as integers ``[batch, length]`` on the model's device."""
        return torch.tensor(rows, dtype=torch.int64, device=self.model.device)

    @property
    def held(self) -> int:
        """Return the number of entries of the cache, including padding."""
        return int(self.mask.shape[1])

    def feed(self, rows: list[Tokens], valid: list[Tokens] | None = None, shift: int = 0) -> torch.Tensor:
        """Feed one token row per sequence, all of one length; return the logits ``[batch, length, vocabulary]``.

        ``valid`` is 0 where a token is padding. ``shift`` moves the position ids: a planted mistake.
        """
        ids = self.tensor(rows)
        self.mask = torch.cat((self.mask, torch.ones_like(ids) if valid is None else self.tensor(valid)), dim=1)
        named: dict[str, Any] = {"decoder_input_ids" if self.encoded else "input_ids": ids}
        if self.encoded:
            named |= self.encoded if self.plain else {**self.encoded, "decoder_attention_mask": self.mask}
        elif not self.plain or shift:
            positions = (self.mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            named |= {"attention_mask": self.mask, "position_ids": positions + shift}
        with torch.no_grad():
            return self.model(**named, past_key_values=self.past, use_cache=True).logits

    def keep(self, count: int) -> None:
        """Crop to the first ``count`` entries: full attention by ``reference.crop``, windows by the library."""
        surplus = self.held - count
        assert surplus >= 0
        if surplus:
            for layer in self.layers:
                if layer.is_sliding:
                    layer.crop(-surplus)
                else:
                    layer.keys, layer.values = crop(layer.keys, count), crop(layer.values, count)
            self.mask = self.mask[:, :count]

    def hide(self, row: int, start: int) -> None:
        """Mask the entries of a row from ``start`` on.

        They cannot be cropped: other rows need theirs at these places.
        """
        self.mask[row, start:] = 0


class Plant(NamedTuple):
    """A planted mistake: numbers added to position ids, to the index of logits, and to the kept length."""

    shift: int = 0
    row: int = 0
    keep: int = 0


NO_PLANT = Plant()
PLANTS = {"position": Plant(shift=1), "row": Plant(row=1), "rejected entry": Plant(keep=1)}


class CachedModel:
    """One model on one text: returns the logits after any tokens that continue those in the cache."""

    def __init__(self, model: Any, prompt: Tokens, plant: Plant = NO_PLANT) -> None:
        """Store ``prompt``, which is fed with the first call; ``plant`` applies to passes of more than one token."""
        self.batch = CachedBatch(model, [prompt])
        self.offset = len(prompt) - 1 if self.batch.encoded else 0
        self.start: Tokens = (model.config.decoder_start_token_id,) if self.batch.encoded else prompt[:1]
        self.fed: Tokens = ()
        self.rows: dict[Tokens, torch.Tensor] = {}
        self.plant = plant

    def own(self, tokens: Tokens) -> Tokens:
        """Return the tokens as the cache counts them: for an encoder-decoder, the start token replaces the prompt."""
        return self.start + tokens[self.offset + 1 :]

    def verify(self, tokens: Tokens, draft: Tokens = ()) -> list[torch.Tensor]:
        """Feed, in one pass, the tokens that the cache lacks and all of ``draft``.

        Return the gamma + 1 rows of logits.
        """
        known = self.own(tokens)
        assert self.fed == known[: len(self.fed)], f"the cache holds {self.fed}, which does not begin {known}"
        new = tokens_to_feed(known, len(self.fed)) + draft
        logits = self.batch.feed([new], shift=self.plant.shift if draft else 0)[0]
        self.fed += new
        rows = [
            logits[min(len(new) - 1 - len(draft) + i + self.plant.row, len(new) - 1)] for i in range(len(draft) + 1)
        ]
        self.rows |= {tokens + draft[:i]: row for i, row in enumerate(rows)}
        return rows

    def __call__(self, tokens: Tokens) -> torch.Tensor:
        """Return the logits ``[vocabulary]`` after ``tokens``, computed once."""
        return self.rows[tokens] if tokens in self.rows else self.verify(tokens)[0]

    def keep(self, count: int) -> None:
        """Crop the cache to the first ``count`` tokens and forget the logits of the round."""
        surplus = len(self.fed) - count
        assert surplus >= 0
        self.batch.keep(self.batch.held - max(surplus - self.plant.keep, 0))
        self.fed, self.rows = self.fed[:count], {}


class Run(NamedTuple):
    """The new tokens of a text, with the number of drafts that were made and accepted."""

    tokens: Tokens
    drafted: int
    accepted: int


def speculate(
    decoder: Decoder, prompt: Tokens, target: CachedModel, draft: CachedModel | None = None, seed: int = 0
) -> Run:
    """Run ``decoder``, whose models are ``target`` and ``draft``, with one verifying pass a round.

    The drafting half of a round runs first, to know what to verify; the whole round then repeats it, answered from rows
    that are already there, and the caches are cropped to ``keep_lengths``.
    """
    state = decoder.init(prompt)
    drafted = accepted = 0
    while state.remaining:
        known = len(target.own(state.tokens))
        proposed = decoder.propose(_draws(seed, known), state).tokens
        target.verify(state.tokens, proposed)
        assert len(target.fed) == known + len(proposed)
        state, done = decoder.step(_draws(seed, known), state)
        assert done.draft == proposed
        drafted, accepted = drafted + len(proposed), accepted + done.accepted
        if state.remaining:
            held = None if draft is None else len(draft.fed)
            keep = keep_lengths(known, len(proposed), done.accepted, held)
            target.keep(keep.target)
            if draft is not None:
                draft.keep(keep.draft)
    return Run(state.tokens[len(prompt) :], drafted, accepted)


def _draws(seed: int, known: int) -> Sampled:
    return Sampled(np.random.default_rng([seed, known]))


def cut(tokens: Tokens, eos: Tokens) -> Tokens:
    """Return ``tokens`` up to and including the first end-of-sequence token."""
    return tokens[: next((index + 1 for index, token in enumerate(tokens) if token in eos), len(tokens))]


def greedy(model: Any, prompt: Tokens, horizon: int, eos: Tokens = ()) -> Tokens:
    """Return the target's own greedy continuation: a prefill of the prompt, then one token at a time."""
    batch = CachedBatch(model, [prompt])
    logits = batch.feed([(model.config.decoder_start_token_id,) if batch.encoded else prompt])
    new = (first_largest(logits[0, -1]),)
    while len(new) < horizon and new[-1] not in eos:
        new = (*new, first_largest(batch.feed([new[-1:]])[0, -1]))
    return new


def first_largest(row: torch.Tensor) -> int:
    """Return the lowest id among the largest logits.

    ``argmax`` on a device guarantees no order, and bfloat16 has many ties.
    """
    return int((row == row.max()).nonzero()[0, 0])


def whole_logits(model: Any, prompt: Tokens, new: Tokens) -> torch.Tensor:
    """Return the logits before every token of ``new``, ``[len(new), vocabulary]``, by one pass without a cache."""
    ids = torch.tensor([[*prompt, *new[:-1]]], device=model.device)
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            start = torch.tensor([[model.config.decoder_start_token_id, *new[:-1]]], device=model.device)
            return model(input_ids=ids[:, : len(prompt)], decoder_input_ids=start, use_cache=False).logits[0]
        return model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 :]
