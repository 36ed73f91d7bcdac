"""Networks made of the models of a scenario: the text of a query token is what a real network would attend to."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, StaticCache
from transformers.cache_utils import Cache, Fp8QuantizedLayer

from specverify.base.verdict import Status
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.testing import torch_network
from test_support.subjects.engine_laws import law_verdict

SIZE = dict(vocab_size=5, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2)
EVERY = [0, 1, 2, 3, 4]


@pytest.fixture(scope="module")
def real():
    """Return a small Llama with random weights, in float64."""
    torch.manual_seed(7)
    config = LlamaConfig(**SIZE, initializer_range=1.0, bos_token_id=None, eos_token_id=None)
    return LlamaForCausalLM(config).double().eval()


@pytest.fixture(scope="module")
def network(real):
    """Return the network of the pmfs of the Llama, by whole texts."""

    @torch.no_grad()
    def model(tokens):
        return real(torch.tensor([tokens])).logits[0, -1].softmax(-1).numpy()

    return torch_network(model, SIZE["vocab_size"], dtype="float64")


@torch.no_grad()
def rows(model, *passes):
    """Return the pmfs ``[rows, length, vocabulary]`` of the last of ``passes``, which share a cache."""
    past = DynamicCache(config=model.config)
    for given in passes:
        (past.crop(-given["cropped"]) if "cropped" in given else None)
        tensors = {name: torch.tensor(value) for name, value in given.items() if name != "cropped"}
        result = model(**tensors, past_key_values=past, use_cache=True)
    return result.logits.softmax(-1)


FIRST = [[0, 1, 2], [3, 4, 1]]
TREE = torch.tensor([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]).bool()[None, None].tolist()
"""Three nodes after a text of one token: two children of it, and a child of the second."""
PASSES = {
    "a cache": [dict(input_ids=FIRST), dict(input_ids=[[3], [0]])],
    "a cropped cache": [dict(input_ids=FIRST), dict(input_ids=[[3, 3], [0, 0]], cropped=2)],
    "a cache not cropped": [dict(input_ids=FIRST), dict(input_ids=[[3, 3], [0, 0]]), dict(input_ids=[[4], [4]])],
    "padding on the left": [dict(input_ids=FIRST, attention_mask=[[0, 1, 1], [1, 1, 1]])],
    "padding on the left, with positions": [
        dict(input_ids=FIRST, attention_mask=[[0, 1, 1], [1, 1, 1]], position_ids=[[0, 0, 1], [0, 1, 2]]),
        dict(input_ids=[[2], [2]], attention_mask=[[0, 1, 1, 1], [1, 1, 1, 1]], position_ids=[[2], [3]]),
    ],
    "a hidden token, and positions without it": [
        dict(input_ids=FIRST),
        dict(input_ids=[[2], [2]], attention_mask=[[1, 1, 0, 1], [1, 1, 1, 1]], position_ids=[[2], [3]]),
    ],
    "a tree": [dict(input_ids=[[4]]), dict(input_ids=[[0, 1, 2]], attention_mask=TREE, position_ids=[[1, 1, 2]])],
}


@pytest.mark.parametrize("name", PASSES)
def test_a_query_token_reads_the_text_that_a_real_network_attends_to(real, network, name):
    ours, theirs = (rows(model, *PASSES[name]) for model in (network, real))
    hidden = PASSES[name][-1].get("attention_mask", [[1]])
    if torch.tensor(hidden).dim() == 2 and len(PASSES[name]) == 1:  # rows of padding mean nothing
        ours, theirs = ours[:, 1:], theirs[:, 1:]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)  # its rotary embeddings are computed in float32


def test_a_wrong_position_is_shown_in_the_text_of_a_query():
    asked = []

    def model(tokens):
        asked.append(str(tokens))
        return [0.5, 0.5]

    given = torch.tensor([[1, 0, 1]])
    torch_network(model, 2, cache=None)(given, position_ids=torch.tensor([[0, 2, 2]]))
    assert asked == ["(1,)", "(1, _, 0)", "(1, _, 0, _, 1)"]


def test_a_wrong_position_gives_another_row(network):
    right = rows(network, dict(input_ids=FIRST), dict(input_ids=[[3], [0]], position_ids=[[3], [3]]))
    shifted = rows(network, dict(input_ids=FIRST), dict(input_ids=[[3], [0]], position_ids=[[4], [4]]))
    stale = rows(network, dict(input_ids=FIRST), dict(input_ids=[[3], [0]], position_ids=[[2], [2]]))
    assert not torch.equal(right, shifted)
    assert not torch.equal(right, stale)


def dynamic_window(config):
    """Return a sliding-window cache that can be cropped."""
    cache = DynamicCache(config=config)
    cache.activate_past_recording()
    return cache


@torch.no_grad()
@pytest.mark.parametrize(
    ("new_cache", "cropped"),
    [
        (dynamic_window, 2),
        (lambda config: DynamicCache(config=config), 0),
        (lambda config: StaticCache(config=config, max_cache_len=12), 0),
    ],
    ids=["cropped", "dynamic", "static"],
)
@pytest.mark.parametrize("padded", [False, True])
def test_a_query_token_reads_the_window_of_a_sliding_window_cache(new_cache, cropped, padded):
    torch.manual_seed(8)
    config = MistralConfig(**{**SIZE, "num_hidden_layers": 1}, num_key_value_heads=1, sliding_window=3)
    config.initializer_range, config.bos_token_id, config.eos_token_id = 1.0, None, None
    mistral = MistralForCausalLM(config).double().eval()
    network = torch_network(
        lambda tokens: mistral(torch.tensor([tokens])).logits[0, -1].softmax(-1).numpy(), 5, dtype="float64"
    )
    caches, held = [new_cache(config) for _ in range(2)], 0
    for ids in ([0, 1, 2, 3], [4, 1, 0], [2], [3, 3]):
        mask = torch.tensor([[0] + [1] * (held + len(ids) - 1)]) if padded else None
        results = [
            model(torch.tensor([ids]), attention_mask=mask, past_key_values=cache).logits.softmax(-1)[:, padded:]
            for model, cache in zip((network, mistral), caches, strict=True)
        ]
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-6)
        removed = min(cropped, len(ids) - 1)
        held += len(ids) - removed
        for cache in caches if cropped else ():
            cache.crop(-removed)


def test_a_quantised_cache_is_refused():
    network, cache = torch_network(lambda tokens: [0.25] * 4, 4), Cache(layers=[Fp8QuantizedLayer()])
    network(torch.tensor([[0, 1, 3]]), past_key_values=cache)
    with pytest.raises(ValueError, match="quantised caches are not covered"):
        network(torch.tensor([[2]]), past_key_values=cache)


class _Forgetful(DynamicCache):
    """A cache that returns only its last two entries, although it has no window."""

    def update(self, *args, **kwargs):
        return [entries[:, :, -2:] for entries in super().update(*args, **kwargs)]


def test_a_cache_that_loses_entries_without_a_window_is_refused():
    with pytest.raises(ValueError, match="the cache returned 2 entries, expected 3"):
        torch_network(lambda tokens: [0.25] * 4, 4)(torch.tensor([[0, 1, 3]]), past_key_values=_Forgetful())


def test_caches_of_other_kinds_and_other_results(real):
    model = lambda tokens: [1 / (2 + len(tokens)), 1 - 1 / (2 + len(tokens))]  # noqa: E731
    whole = torch_network(model, 2, returns="logits")(torch.tensor([0, 1, 1]))
    assert whole.shape == (3, 2)
    pairs = torch_network(model, 2, cache="tuple")
    first = pairs(torch.tensor([[0, 1]]))
    ((keys, values),) = first.past_key_values
    assert keys.flatten().tolist() == [0, 1]
    after = pairs(torch.tensor([[1]]), past_key_values=((keys, values),))
    assert torch.equal(after.logits[0, -1], whole[-1])
    cut = pairs(torch.tensor([[1, 1]]), past_key_values=((keys[:, :, :1], values[:, :, :1]),))
    assert torch.equal(cut.logits[0], whole[1:])
    fixed = torch_network(model, 2)
    past = StaticCache(config=fixed.config, max_cache_len=8)
    fixed(torch.tensor([[0, 1]]), past_key_values=past)
    assert torch.equal(fixed(torch.tensor([[1]]), past_key_values=past).logits[0, -1], whole[-1])
    assert fixed(torch.tensor([[0, 1, 1]]), use_cache=False, logits_to_keep=1).logits.shape == (1, 1, 2)


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        (dict(cache="paged"), {}, "cache is 'paged', expected one of"),
        (dict(dtype="float"), {}, "dtype is 'float', expected one of"),
        (dict(returns="output", cache=None), dict(past_key_values=((torch.zeros(1, 1, 1, 1),) * 2,)), "no past_key"),
        ({}, dict(attention_mask=torch.ones(1, 5)), r"attention_mask has shape \(1, 5\), expected \[1, 2\] or"),
        ({}, dict(input_ids=torch.tensor([[0, 2]])), "contain the token 2, expected 0 to 1"),
    ],
)
def test_what_does_not_fit_is_refused(options, given, message):
    with pytest.raises(ValueError, match=message):
        torch_network(lambda tokens: [0.5, 0.5], 2, **options)(**{"input_ids": torch.tensor([[0, 1]]), **given})


def dropped(cache, length):
    """Remove all entries of ``cache`` after the first ``length``."""
    (cache.crop(length - cache.get_seq_length()) if cache.get_seq_length() > length else None)


def loop(prompt, target, draft, new_tokens, *, keeps=0):
    """Decode with two networks and caches; ``keeps``: how many entries of rejected drafts the target's cache keeps."""
    text, end, caches = list(prompt), len(prompt) + new_tokens, (DynamicCache(), DynamicCache())
    while len(text) < end:
        gamma, drafts, rows_of_q = min(2, end - len(text) - 1), [], []
        fed = text[caches[1].get_seq_length() :] or text[-1:]
        for _ in range(gamma):
            rows_of_q.append(draft(torch.tensor([fed]), past_key_values=caches[1]).logits[0, -1].softmax(-1))
            drafts.append(int(torch.multinomial(rows_of_q[-1], 1)))
            fed = [drafts[-1]]
        fed = [*(text[caches[0].get_seq_length() :] or text[-1:]), *drafts]
        p = target(torch.tensor([fed]), past_key_values=caches[0]).logits[0, -gamma - 1 :].softmax(-1)
        kept = 0
        while kept < gamma and torch.rand(()) * rows_of_q[kept][drafts[kept]] < p[kept][drafts[kept]]:
            kept += 1
        weights = p[kept] if kept == gamma else torch.clamp(p[kept] - rows_of_q[kept], min=0)
        held = len(text) + kept
        text += [*drafts[:kept], int(torch.multinomial(weights, 1))]
        dropped(caches[0], held + keeps * (kept < gamma))
        dropped(caches[1], held)
    return text[len(prompt) :]


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("keeps", "status"), [(0, Status.HOLDS), (1, Status.REFUTED)])
def test_a_loop_with_caches_is_examined_on_the_models_of_a_scenario(keeps, status):
    def make(scenario):
        target, draft = (torch_network(model, scenario.vocabulary) for model in (scenario.target, scenario.draft))
        return lambda prompt: loop(prompt, target, draft, scenario.horizon, keeps=keeps)

    assert law_verdict(make, SCENARIOS[:3]).status is status


@torch.no_grad()
def rows_after_prefill(model, masks, kept=None, next_position=3):
    """Return the pmf after a text whose tokens 0, 1, 2 are fed one by one, each with one of ``masks``.

    ``kept`` are the entries of the cache that stay; None: all.
    """
    past = DynamicCache(config=model.config)
    for place, mask in enumerate(masks):
        given = dict(attention_mask=torch.tensor([mask]), position_ids=torch.tensor([[place]]))
        model(torch.tensor([[place]]), **given, past_key_values=past, use_cache=True)
    for layer in past.layers if kept is not None else ():
        layer.keys, layer.values = layer.keys[:, :, kept], layer.values[:, :, kept]
    return model(torch.tensor([[3]]), position_ids=torch.tensor([[next_position]]), past_key_values=past).logits[0, -1]


RIGHT = ([1], [1, 1], [1, 1, 1])
ALONE = ([1], [0, 1], [1, 1, 1])
"""The second token does not attend to the first, and the third attends to both."""


def test_entries_of_another_context_give_another_row_as_in_a_real_network(real, network):
    for model in (real, network):
        right, alone = (rows_after_prefill(model, masks).softmax(-1) for masks in (RIGHT, ALONE))
        assert (right - alone).abs().max() > 1e-6


def test_an_entry_after_a_removed_one_has_another_context(real, network):
    for model in (real, network):
        right = rows_after_prefill(model, RIGHT[:2], next_position=2).softmax(-1)
        removed = rows_after_prefill(model, (*RIGHT[:2], [1, 1, 1]), kept=[0, 2], next_position=3).softmax(-1)
        assert (right - removed).abs().max() > 1e-6


@torch.no_grad()
def test_the_accepted_path_of_a_tree_has_its_own_context(real, network):
    """The second child and its child stay in the cache, and the first child does not."""
    for model in (real, network):
        past = DynamicCache(config=model.config)
        model(torch.tensor([[4]]), past_key_values=past, use_cache=True)
        given = dict(attention_mask=torch.tensor(TREE), position_ids=torch.tensor([[1, 1, 2]]))
        model(torch.tensor([[0, 1, 2]]), **given, past_key_values=past, use_cache=True)
        for layer in past.layers:
            layer.keys, layer.values = layer.keys[:, :, [0, 2, 3]], layer.values[:, :, [0, 2, 3]]
        kept = model(torch.tensor([[3]]), position_ids=torch.tensor([[3]]), past_key_values=past).logits[0, -1]
        torch.testing.assert_close(kept, model(torch.tensor([[4, 1, 2, 3]])).logits[0, -1], rtol=1e-4, atol=1e-5)


class Copied(DynamicCache):
    """A cache that returns copies, such as one that gathers pages."""

    def update(self, *given, **named):
        """Store the entries; return copies of all."""
        return tuple(kept.clone() for kept in super().update(*given, **named))


class OfSixteenBits(DynamicCache):
    """A cache that stores bfloat16."""

    def update(self, keys, values, *given, **named):
        """Store the entries with fewer digits."""
        return super().update(keys.bfloat16(), values.bfloat16(), *given, **named)


@torch.no_grad()
@pytest.mark.parametrize("new_cache", [Copied, OfSixteenBits])
def test_a_cache_that_keeps_no_digests_is_read_without_them(network, new_cache):
    past = new_cache(config=network.config)
    network(torch.tensor([[0, 1]]), past_key_values=past, use_cache=True)
    row = network(torch.tensor([[2]]), past_key_values=past, use_cache=True).logits[0, -1]
    torch.testing.assert_close(row, network(torch.tensor([[0, 1, 2]])).logits[0, -1])


@pytest.mark.parametrize("row", [None, [0.5, 0.5], [3.0, -1.0, -1.0], [float("nan"), 0.5, 0.5], "ab"])
def test_a_row_that_is_no_pmf_of_the_vocabulary_is_refused(row):
    with pytest.raises(ValueError, match=r"the model's pmf after \(0,\) is .*, expected 3 numbers >= 0"):
        torch_network(lambda tokens: row, 3, cache=None)(torch.tensor([[0]]))


def test_token_ids_that_are_no_tensor_are_refused():
    with pytest.raises(ValueError, match=r"input_ids is \[\[0\]\], expected a tensor \[B, length\]"):
        torch_network(lambda tokens: [0.5, 0.5], 2, cache=None)([[0]])


WINDOW = 3


@torch.no_grad()
def row_of_window(network, passes, cut):
    """Return the last row after ``passes``, lists of tokens, of a loop with a band as mask and a cache of its own.

    With ``cut`` the entries that no later token attends to are removed after each pass.
    """
    held, seen = None, 0
    for tokens in passes:
        old, new = (0 if held is None else held[0][0].shape[2]), len(tokens)
        query, entry = torch.arange(old, old + new)[:, None], torch.arange(old + new)
        band = ((entry <= query) & (entry > query - WINDOW))[None, None]
        places = torch.arange(seen, seen + new)[None]
        result = network(torch.tensor([tokens]), attention_mask=band, past_key_values=held, position_ids=places)
        held, seen = result.past_key_values, seen + new
        if cut:
            held = tuple((keys[:, :, 1 - WINDOW :], values[:, :, 1 - WINDOW :]) for keys, values in held)
    return result.logits[0, -1].tolist()


@pytest.mark.parametrize("cut", [False, True])
def test_a_window_of_the_loop_gives_the_same_row_however_the_passes_are_divided(cut):
    network = torch_network(lambda tokens: np.random.default_rng(tokens).dirichlet(np.ones(5)), 5, cache="tuple")
    text = [0, 1, 2, 3, 2, 1, 0, 4]
    divided = ([text], [text[:5], text[5:]], [text[:6], *([token] for token in text[6:])], [[token] for token in text])
    rows_found = [row_of_window(network, passes, cut) for passes in divided]
    assert rows_found == [rows_found[0]] * len(divided)
    assert rows_found[0] == network(torch.tensor([text[-WINDOW:]])).logits[0, -1].tolist()
    assert row_of_window(network, [[*text[:-2], 1, text[-1]]], cut) != rows_found[0]


def test_an_entry_of_a_part_of_a_text_gives_another_row_in_the_whole_text(network):
    """The prefill hides the first token from the others; the next pass sees all."""
    hidden = torch.ones(3, 3).tril().bool()
    hidden[1:, 0] = False
    passes = [dict(input_ids=[[0, 1, 2]], attention_mask=hidden[None, None].tolist()), dict(input_ids=[[3]])]
    right = rows(network, dict(input_ids=[[0, 1, 2]]), dict(input_ids=[[3]]))
    assert not torch.equal(rows(network, *passes), right)
