"""Transformers models with their key-value caches, as language models for the reference decoders and as batches.

``CachedBatch`` is the cache: rows of left-padded tokens, fed and cropped together. ``CachedModel`` is one row of it and
a ``LanguageModel``: it answers p(. | tokens) from rows it has computed, or feeds what its cache lacks. A cache is never
rolled back behind the caller's back: being asked for tokens that contradict it is an error, and the only way back is
``keep``, at lengths from ``reference.kv_cache``. ``speculate`` drives a decoder of ``reference`` through its rounds:
the verifying pass is one forward of gamma + 1 rows, everything else one token at a time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers
from transformers import DynamicCache, EncoderDecoderCache
from transformers.utils import is_flash_attn_2_available

from reference import (
    Decoder,
    LanguageModel,
    Sampled,
    Task,
    Tokens,
    crop,
    greedy_batched,
    keep_lengths,
    lookup,
    tokens_to_feed,
    warped,
)
from reference.algorithms import egag, greedy_speculation, nasd, prompt_lookup, speculative_sampling
from specverify.subjects.huggingface_architectures import ARCHITECTURES as ALL_ARCHITECTURES
from specverify.subjects.huggingface_architectures import build_model, fill

ARCHITECTURES = ("llama", "gpt2", "qwen2", "mistral", "gemma2", "gemma3", "t5", "bart")
"""Full, sliding (mistral) and alternating (gemma2, gemma3) attention; t5 and bart are encoder-decoders."""
ABSOLUTE_OR_ROTARY = ("llama", "gpt2", "qwen2", "mistral", "gemma2", "gemma3")
"""Models that take position ids."""
ANY_MASK = ("llama", "gpt2", "qwen2")
"""Models whose attention follows mask and position ids alone, so that a cache may have holes."""
ATTENTIONS = ("eager", "sdpa", "flash_attention_2")
VOCABULARY = 11
WIDE_VOCABULARY = 500
WIDER = 8
"""Factor of every size of a wide model: sums of 128 and 256 products, which kernels group by the number of rows."""
SIZES = ("hidden_size", "intermediate_size", "n_embd", "d_model", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim")
HEAD_SIZES = ("head_dim", "query_pre_attn_scalar", "d_kv")


@cache
def real_model(
    architecture: str, seed: int, dtype: torch.dtype, attention: str, device: torch.device, *, wide: bool = False
) -> Any:
    """Return a tiny model with seeded weights; skips, with the reason, where it has no such attention.

    ``wide`` makes it eight times as wide, its weights smaller in proportion to the roots of their sums' lengths.
    """
    if attention == "flash_attention_2" and (not is_flash_attn_2_available() or dtype.itemsize > 2):
        pytest.skip("flash_attention_2 needs its own package, a CUDA device and a dtype of 16 bits")
    built = wide_model(architecture, seed) if wide else build_model(architecture, VOCABULARY, seed)
    model = built.to(device=device, dtype=dtype)
    try:
        model.set_attn_implementation(attention)
    except ValueError as error:
        pytest.skip(str(error).split(" yet.")[0])
    return model


def wide_model(architecture: str, seed: int) -> Any:
    """Return a model of the recipe of ``build_model`` with ``WIDER`` sizes and ``WIDE_VOCABULARY`` tokens."""
    row = ALL_ARCHITECTURES[architecture]
    sizes = {name: size * WIDER for name, size in row.options.items() if name in (*SIZES, *HEAD_SIZES)}
    options = {**row.options, **sizes, "vocab_size": WIDE_VOCABULARY}
    with torch.random.fork_rng(devices=[]):
        model = getattr(transformers, row.model)(getattr(transformers, row.config)(**options))
    return fill(model, seed, row.scale / WIDER**0.5, row.fills)


@cache
def in_float64(model: Any) -> Any:
    """Return the same weights, rounded as they are, in a model that computes in float64 with eager attention.

    It is made once: a model must not change afterwards.

    A norm that the library hard-codes in float32 stays so: the copy's logits are good to some 1e-6, not 1e-15.
    """
    widened = copy.deepcopy(model).to(torch.float64)
    widened.set_attn_implementation("eager")
    return widened


class CachedBatch:
    """Rows of tokens in one cache, each left-padded to the longest prompt.

    An encoder-decoder's prompts go to its encoder, padded on the right (an absolute position must not move), and its
    decoder's rows begin with the start token. ``plain`` leaves mask and positions to the library, as with one row.
    """

    def __init__(self, model: Any, prompts: list[Tokens]) -> None:
        """Nothing is fed yet, but an encoder-decoder's prompts are encoded."""
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
        """Integers ``[batch, length]`` on the model's device."""
        return torch.tensor(rows, dtype=torch.int64, device=self.model.device)

    @property
    def held(self) -> int:
        """Entries of the cache, padding included."""
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
        """Mask what a row holds from ``start`` on, instead of cropping it: other rows need their entries there."""
        self.mask[row, start:] = 0


class Plant(NamedTuple):
    """A mistake to make: what is added to the position ids of a verifying pass, to its rows, to the entries kept."""

    shift: int = 0
    row: int = 0
    keep: int = 0


NO_PLANT = Plant()


class CachedModel:
    """One model, one text: the logits after any tokens that continue what the cache holds."""

    def __init__(self, model: Any, prompt: Tokens, plant: Plant = NO_PLANT) -> None:
        """``prompt`` is fed with the first call; ``plant`` is made in passes of more than one row."""
        self.batch = CachedBatch(model, [prompt])
        self.offset = len(prompt) - 1 if self.batch.encoded else 0
        self.start: Tokens = (model.config.decoder_start_token_id,) if self.batch.encoded else prompt[:1]
        self.fed: Tokens = ()
        self.rows: dict[Tokens, torch.Tensor] = {}
        self.plant = plant

    def own(self, tokens: Tokens) -> Tokens:
        """The tokens as the cache counts them: an encoder-decoder's start token stands for the prompt."""
        return self.start + tokens[self.offset + 1 :]

    def verify(self, tokens: Tokens, draft: Tokens = ()) -> list[torch.Tensor]:
        """Feed, in one pass, what the cache lacks of ``tokens`` and all of ``draft``; return the gamma + 1 rows."""
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
        """Crop to the first ``count`` tokens and forget the rows of the round."""
        surplus = len(self.fed) - count
        assert surplus >= 0
        self.batch.keep(self.batch.held - max(surplus - self.plant.keep, 0))
        self.fed, self.rows = self.fed[:count], {}


class Run(NamedTuple):
    """New tokens, and how many drafts were made and kept on the way."""

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


WITH_DRAFTER: dict[str, Callable[[Task, int], Decoder]] = {
    "greedy-speculation": greedy_speculation.build,
    "speculative-sampling": speculative_sampling.build,
    "egag": lambda task, gamma: egag.build(task, gamma_min=0, gamma_max=gamma),
}
WITHOUT_DRAFTER: dict[str, Callable[[Task, int], Decoder]] = {
    "nasd": lambda task, gamma: nasd.build(task, order=3, gamma=gamma),
    "nasd with filler": lambda task, gamma: nasd.build(task, order=2, gamma=gamma, filler_top_k=2),
    "prompt-lookup": lambda task, gamma: prompt_lookup.build(task, max_ngram=2, gamma=gamma),
}
DRAFTERS: dict[str, tuple[bool, Callable[[LanguageModel], LanguageModel]]] = {
    "identical": (True, lambda logits: warped(logits, temperature=0)),
    "other": (False, lambda logits: warped(logits, temperature=0)),
    "other, sampled": (False, lambda logits: warped(lambda tokens: logits(tokens).double())),
    "least likely": (True, lambda logits: warped(lambda tokens: -logits(tokens), temperature=0)),
}
"""Whether a drafter has the target's weights or another seed's, and its pmf from its logits."""


class Configuration(NamedTuple):
    """An algorithm at temperature 0, its drafter if it takes one, and gamma."""

    algorithm: str
    drafter: str | None
    gamma: int


CONFIGURATIONS = tuple(
    Configuration(*row)
    for gamma in range(9)
    for row in (
        *((algorithm, drafter, gamma) for algorithm in WITH_DRAFTER for drafter in DRAFTERS),
        *((algorithm, None, gamma) for algorithm in WITHOUT_DRAFTER),
    )
)


def cached_run(
    configuration: Configuration,
    model: Any,
    other: Any,
    prompt: Tokens,
    *,
    horizon: int,
    eos: Tokens = (),
    seed: int = 0,
    plant: Plant = NO_PLANT,
) -> Run:
    """Decode ``prompt`` at temperature 0 with a cache for the target and one for the drafter, if there is one."""
    target = CachedModel(model, prompt, plant)
    greedy_target = warped(target, temperature=0)
    if configuration.drafter is None:
        decoder = WITHOUT_DRAFTER[configuration.algorithm](
            Task(greedy_target, eos=eos, horizon=horizon), configuration.gamma
        )
        return speculate(decoder, prompt, target, seed=seed)
    same, pmf = DRAFTERS[configuration.drafter]
    draft = CachedModel(model if same else other, prompt)
    task = Task(greedy_target, pmf(draft), warped(lambda tokens: draft(tokens).double()), eos, horizon)
    decoder = WITH_DRAFTER[configuration.algorithm](task, configuration.gamma)
    return speculate(decoder, prompt, target, draft, seed)


def cut(tokens: Tokens, eos: Tokens) -> Tokens:
    """Return ``tokens`` up to and including the first end-of-sequence token."""
    return tokens[: next((index + 1 for index, token in enumerate(tokens) if token in eos), len(tokens))]


def greedy(model: Any, prompt: Tokens, horizon: int, eos: Tokens = ()) -> Tokens:
    """Target-only greedy decoding: a prefill of the prompt, then one token at a time. Uses no algorithm."""
    batch = CachedBatch(model, [prompt])
    logits = batch.feed([(model.config.decoder_start_token_id,) if batch.encoded else prompt])
    new = (first_largest(logits[0, -1]),)
    while len(new) < horizon and new[-1] not in eos:
        new = (*new, first_largest(batch.feed([new[-1:]])[0, -1]))
    return new


def first_largest(row: torch.Tensor) -> int:
    """The lowest id among the largest logits: ``argmax`` on a device promises no order, and in bfloat16 ties abound."""
    return int((row == row.max()).nonzero()[0, 0])


def whole_logits(model: Any, prompt: Tokens, new: Tokens) -> torch.Tensor:
    """The row before every token of ``new``, by one forward without a cache: ``[len(new), vocabulary]``."""
    ids = torch.tensor([[*prompt, *new[:-1]]], device=model.device)
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            start = torch.tensor([[model.config.decoder_start_token_id, *new[:-1]]], device=model.device)
            return model(input_ids=ids[:, : len(prompt)], decoder_input_ids=start, use_cache=False).logits[0]
        return model(input_ids=ids, use_cache=False).logits[0, len(prompt) - 1 :]


Propose = Callable[[int, Tokens, int], Tokens]
"""``propose(row, tokens, gamma)``: at most gamma drafts after all tokens of one row."""


def speculate_batched(
    model: Any,
    prompts: list[Tokens],
    propose: Propose,
    *,
    gamma: int,
    horizon: int,
    eos: Tokens = (),
    holes: bool = False,
    shift: int = 0,
) -> list[Tokens]:
    """Greedy speculation on left-padded rows with drafts of ragged lengths, verified by ``greedy_batched``.

    Rows accept differently many drafts. In step, every row commits as many as the row that accepts fewest, and the
    cache is cropped to them. With ``holes``, every row commits its own, and what a row rejected stays in the cache,
    masked. A row that has ended is fed padding until all have. ``shift`` plants wrong positions.
    """
    batch = CachedBatch(model, prompts)
    texts = [((model.config.decoder_start_token_id,) if batch.encoded else prompt) for prompt in prompts]
    waiting = [(0,) * pad + text for pad, text in zip(batch.pads, texts, strict=True)]
    valid = [(0,) * pad + (1,) * len(text) for pad, text in zip(batch.pads, texts, strict=True)]
    new: list[Tokens] = [()] * len(prompts)

    def ended(row: int) -> bool:
        return len(new[row]) >= horizon or any(token in eos for token in new[row])

    while not all(map(ended, range(len(prompts)))):
        drafts = [
            () if ended(row) else propose(row, prompt + new[row], min(gamma, horizon - len(new[row]) - 1))
            for row, prompt in enumerate(prompts)
        ]
        width, fed = max(map(len, drafts)), batch.held
        padded = [draft + (0,) * (width - len(draft)) for draft in drafts]
        seen = [(1,) * len(draft) + (0,) * (width - len(draft)) for draft in drafts]
        logits = batch.feed(_joined(waiting, padded), _joined(valid, seen), shift if fed else 0)
        lengths = torch.tensor([len(draft) for draft in drafts], device=logits.device)
        ids = torch.tensor(padded, dtype=torch.int64, device=logits.device).reshape(len(drafts), width)
        verified = greedy_batched(logits[:, -width - 1 :], ids, lengths)
        accepted = verified.accepted.tolist()
        base = batch.held - width
        if holes:
            for row, count in enumerate(accepted):
                batch.hide(row, base + count)
        else:
            fewest = min(count for row, count in enumerate(accepted) if not ended(row))
            accepted = [fewest] * len(prompts)
            batch.keep(base + fewest)
        was = [ended(row) for row in range(len(prompts))]
        for row, emitted in enumerate(verified.emitted.tolist()):
            if not was[row]:
                new[row] = cut(new[row] + tuple(emitted[: accepted[row] + 1]), eos)
        waiting = [(0,) if was[row] else new[row][-1:] for row in range(len(prompts))]
        valid = [(0,) if was[row] and holes else (1,) for row in range(len(prompts))]
    return new


def _joined(first: list[Tokens], second: list[Tokens]) -> list[Tokens]:
    return [a + b for a, b in zip(first, second, strict=True)]


def chunks(length: int, size: int) -> Iterator[slice]:
    """Cut ``length`` positions into runs of ``size``."""
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def forced_logits(model: Any, prompts: list[Tokens], new: list[Tokens], gamma: int) -> torch.Tensor:
    """The row before every token of ``new``, teacher-forced through the cache in passes of gamma + 1 rows.

    The first pass takes the prompt too, as in the first round of ``speculate``; gamma 0 is one token at a time.
    ``[batch, new, vocabulary]``; all rows have equally many new tokens.
    """
    batch = CachedBatch(model, prompts)
    texts = [((model.config.decoder_start_token_id,) if batch.encoded else prompt) for prompt in prompts]
    rows = []
    for run in chunks(len(new[0]), gamma + 1):
        fed, valid = [], []
        for pad, text, tokens in zip(batch.pads, texts, new, strict=True):
            before = tokens[run.start - 1 : run.stop - 1] if run.start else (0,) * pad + text + tokens[: run.stop - 1]
            fed.append(before)
            valid.append((0,) * pad + (1,) * (len(before) - pad) if not run.start else (1,) * len(before))
        rows.append(batch.feed(fed, valid)[:, run.start - run.stop :])
    return torch.cat(rows, dim=1)


HORIZON = 12
PROMPT_LENGTHS = (1, 2, 4, 5, 9)
"""Shorter than a sliding window of 4, as long, and longer."""
CLEAR = 2e-3
"""Texts whose two largest float64 logits come closer anywhere are not used where equality is demanded."""


class Text(NamedTuple):
    """A prompt of one target, the model that drafts for it, and what the target alone answers, to the horizon."""

    model: Any
    other: Any
    prompt: Tokens
    plain: Tokens


@cache
def texts_of(
    architecture: str, dtype: torch.dtype, attention: str, device: torch.device, seed: int, *, wide: bool = False
) -> tuple[Text, ...]:
    """One text of every prompt length. Those of tiny models are clear of ties, by the float64 model's own margins."""
    model, other = (
        real_model(architecture, weights, dtype, attention, device, wide=wide) for weights in (seed, seed + 1)
    )
    rng = np.random.default_rng([seed, ARCHITECTURES.index(architecture)])
    found = []
    for length in PROMPT_LENGTHS:
        while True:
            prompt = tuple(rng.integers(VOCABULARY, size=length).tolist())
            if wide or clear_of_ties(architecture, seed, prompt):
                break
        found.append(Text(model, other, prompt, greedy(model, prompt, HORIZON)))
    return tuple(found)


@cache
def clear_of_ties(architecture: str, seed: int, prompt: Tokens) -> bool:
    """Whether the two largest logits are ``CLEAR`` apart at every position; asked of the CPU, for every device."""
    model = real_model(architecture, seed, torch.float64, "eager", torch.device("cpu"))
    largest = whole_logits(model, prompt, greedy(model, prompt, HORIZON)).topk(2, dim=-1).values
    return float((largest[:, 0] - largest[:, 1]).min()) > CLEAR


def some_configurations(architecture: str, attention: str, dtype: torch.dtype) -> tuple[Configuration, ...]:
    """An eighth of all configurations: two neighbouring architectures go through all, by two attentions and dtypes."""
    narrow = dtype in (torch.float32, torch.float16)
    start = 4 * (ARCHITECTURES.index(architecture) % 2) + 2 * (ATTENTIONS.index(attention) % 2) + narrow
    return CONFIGURATIONS[start::8]


class Setting(NamedTuple):
    """One run: what is run, on which text, where it ends, and the output that is right."""

    configuration: Configuration
    text: Text
    eos: Tokens
    expected: Tokens


def settings(configurations: Sequence[Configuration], texts: Sequence[Text]) -> Iterator[Setting]:
    """Every configuration on a text; two of three end at a token of the text, wherever that is."""
    rng = np.random.default_rng(0)
    for configuration in configurations:
        text = texts[rng.integers(len(texts))]
        eos = (text.plain[rng.integers(HORIZON)],) if rng.integers(3) else ()
        yield Setting(configuration, text, eos, cut(text.plain, eos))


def run_setting(setting: Setting, plant: Plant = NO_PLANT) -> Run:
    configuration, text, eos, _ = setting
    return cached_run(configuration, text.model, text.other, text.prompt, horizon=HORIZON, eos=eos, plant=plant)


def ragged_drafts(texts: Sequence[Text]) -> Propose:
    """Drafts of other lengths in every row: some right to the end, some with a wrong token, some none."""
    rng = np.random.default_rng(0)

    def propose(row: int, tokens: Tokens, gamma: int) -> Tokens:
        done = len(tokens) - len(texts[row].prompt)
        draft = texts[row].plain[done : done + rng.integers(gamma + 1)]
        wrong = rng.integers(2 * len(draft) + 1)
        return tuple(token if i != wrong else (token + 1) % VOCABULARY for i, token in enumerate(draft))

    return propose


def looked_up(row: int, tokens: Tokens, gamma: int) -> Tokens:
    """Prompt lookup in every row."""
    return lookup(tokens, 2, gamma)


class BatchedSetting(NamedTuple):
    """One batched run: gamma, drafts, where rows end, and how rows that accept differently go on."""

    gamma: int
    propose: Propose
    eos: Tokens
    holes: bool


def batched_settings(architecture: str, dtype: torch.dtype, texts: Sequence[Text]) -> Iterator[BatchedSetting]:
    """The even gammas in one dtype, the odd ones in the other, each both in step and, where it can be, with holes."""
    narrow = dtype in (torch.float32, torch.float16)
    for gamma in range(narrow, 9, 2):
        for holes in (False, True) if architecture in ANY_MASK else (False,):
            eos = (texts[gamma % len(texts)].plain[gamma + holes],) if gamma % 3 else ()
            yield BatchedSetting(gamma, looked_up if (gamma // 2) % 2 else ragged_drafts(texts), eos, holes)


def run_batched(setting: BatchedSetting, texts: Sequence[Text], shift: int = 0) -> list[Tokens]:
    prompts = [text.prompt for text in texts]
    gamma, propose, eos, holes = setting
    return speculate_batched(
        texts[0].model, prompts, propose, gamma=gamma, horizon=HORIZON, eos=eos, holes=holes, shift=shift
    )


def skip_unless_padding_is_finite(texts: Sequence[Text]) -> None:
    """Skip where the library's own forward of left-padded prompts is NaN: nothing is speculated there.

    Its eager attention masks with the smallest float64 and takes a float32 softmax, in which that is minus infinity: a
    padded position, which sees nothing, becomes NaN, and so does every row of its sequence one layer later.
    """
    passed = forced_logits(texts[0].model, [text.prompt for text in texts], [text.plain[:1] for text in texts], 0)
    if not bool(passed.isfinite().all()):
        pytest.skip("transformers' own forward of left-padded rows is NaN in float64 with eager attention")


def library_outputs(text: Text, eos: Tokens, gamma: int, device: torch.device) -> tuple[Tokens, dict[str, Tokens]]:
    """The new tokens of the library's ``generate``: plain, and by its own ways to speculate."""
    ids = torch.tensor([text.prompt], device=device)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    generation_config: Any = transformers.GenerationConfig  # its constructor is not annotated
    text.other.generation_config.num_assistant_tokens = gamma
    text.other.generation_config.num_assistant_tokens_schedule = "constant"
    text.other.generation_config.assistant_confidence_threshold = 0.0
    skipped = 1 if text.model.config.is_encoder_decoder else len(text.prompt)

    def generated(call: dict[str, Any], **drafting: Any) -> Tokens:
        config = generation_config(
            do_sample=False,
            max_new_tokens=HORIZON,
            eos_token_id=list(eos) or None,
            pad_token_id=eos[0] if eos else None,
            **drafting,
        )
        return tuple(text.model.generate(**inputs, generation_config=config, **call)[0, skipped:].tolist())

    found = {"assisted": generated({"assistant_model": text.other})}
    found["prompt lookup"] = generated({}, prompt_lookup_num_tokens=gamma, max_matching_ngram_size=2)
    return generated({}), found
