"""A tree in one pass of a real transformer: every node's logits are those of its path fed as a chain.

The mask is 4-D and additive, positions go by depth: what tree attention asks of an engine (Medusa, arXiv 2401.10774;
SpecInfer, arXiv 2305.09781). In float64 the two passes differ by rounding alone: sums of some hundred products of
numbers around 1, a few layers deep, are off by less than 1e-9, where a wrong mask or position moves logits by far more.
"""

from __future__ import annotations

import pytest
import torch

from reference import Draft
from reference.kv_cache import tree_depths
from reference.trees import (
    accepted_indices,
    additive_mask,
    path_tokens,
    position_ids,
    regular_tree,
    retrieve_indices,
)
from specverify.engines.huggingface.architectures import build_model
from specverify.engines.huggingface.real_generate import quiet_and_seeded

VOCABULARY = 7
PROMPT = (0, 3, 1, 5)
BOUND = 1e-9
LOWEST = torch.finfo(torch.float64).min
SHAPES = {
    "chain": (-1, 0, 1),
    "siblings": (-1, -1, -1),
    "regular": regular_tree((2, 2, 1)),
    "ragged": (-1, -1, 0, 2, 1, 0, 3),
}
every_shape = pytest.mark.parametrize("parents", SHAPES.values(), ids=SHAPES)


@pytest.fixture(scope="module")
def model():
    with quiet_and_seeded(0):
        return build_model("llama", VOCABULARY, seed=2).double()


def tree_of(parents):
    """Siblings hold different tokens, cousins may hold the same."""
    tokens = tuple((2 * node + 1) % VOCABULARY for node in range(len(parents)))
    return Draft(tokens, parents, (None,) * len(parents))


def forward(model, tokens, **named):
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens]), use_cache=False, **named).logits[0]


def chain_logits(model, draft):
    """One pass for every node, and one for the root."""
    paths = [(), *(path_tokens(draft, node) for node in range(len(draft.tokens)))]
    return torch.stack([forward(model, PROMPT + path)[-1] for path in paths])


def whole_mask(parents):
    """Rows for the prompt too: causal, and none of them sees a node."""
    known, rows = len(PROMPT), additive_mask(parents, len(PROMPT))
    size = known + len(parents)
    mask = torch.full((1, 1, size, size), LOWEST, dtype=torch.float64)
    mask[..., :known, :known].triu_(1)
    mask[..., known - 1 :, :] = torch.from_numpy(rows)
    return mask


def whole_positions(parents):
    return torch.tensor([[*range(len(PROMPT) - 1), *position_ids(parents, len(PROMPT))]])


def tree_logits(model, draft, mask=None, positions=None):
    """The rows of the root and of every node, from one pass over the prompt and the tree."""
    mask = whole_mask(draft.parents) if mask is None else mask
    positions = whole_positions(draft.parents) if positions is None else positions
    logits = forward(model, PROMPT + draft.tokens, attention_mask=mask, position_ids=positions)
    return logits[len(PROMPT) - 1 :]


def largest_difference(one, other):
    return float((one - other).abs().max())


@every_shape
def test_tree_logits_are_the_chain_logits_of_every_path(model, parents):
    draft = tree_of(parents)
    assert largest_difference(tree_logits(model, draft), chain_logits(model, draft)) < BOUND


@every_shape
def test_the_path_table_reads_the_rows_of_every_leaf(model, parents):
    draft = tree_of(parents)
    rows = tree_logits(model, draft)
    for padded in retrieve_indices(parents):
        path = padded[padded >= 0]
        tokens = tuple(draft.tokens[row - 1] for row in path[1:])
        alone = forward(model, PROMPT + tokens)[len(PROMPT) - 1 :]
        assert largest_difference(rows[path], alone) < BOUND


@every_shape
def test_after_gathering_a_path_decoding_goes_on_as_from_a_chain(model, parents):
    """Keys and values of the accepted path, taken out of the pass over the tree, stand for the chain's."""
    draft, node = tree_of(parents), len(parents) - 1
    with torch.no_grad():
        cache = model(
            input_ids=torch.tensor([PROMPT + draft.tokens]),
            attention_mask=whole_mask(parents),
            position_ids=whole_positions(parents),
            use_cache=True,
        ).past_key_values
        kept = torch.from_numpy(accepted_indices(parents, len(PROMPT), node))
        for layer in cache.layers:
            layer.keys, layer.values = layer.keys[..., kept, :], layer.values[..., kept, :]
        following = model(input_ids=torch.tensor([[6]]), past_key_values=cache).logits[0, -1]
    alone = forward(model, (*PROMPT, *path_tokens(draft, node), 6))[-1]
    assert largest_difference(following, alone) < BOUND


# What breaks it


@pytest.mark.parametrize("parents", [SHAPES["siblings"], SHAPES["regular"], SHAPES["ragged"]])
def test_a_causal_mask_shows_siblings_to_each_other(model, parents):
    draft = tree_of(parents)
    size = len(PROMPT) + len(parents)
    causal = torch.full((1, 1, size, size), LOWEST, dtype=torch.float64).triu(1)
    assert largest_difference(tree_logits(model, draft, mask=causal), chain_logits(model, draft)) > 1e-3


@pytest.mark.parametrize("parents", [SHAPES["regular"], SHAPES["ragged"]])
def test_a_node_that_does_not_see_its_parent_is_found(model, parents):
    draft, mask = tree_of(parents), whole_mask(parents)
    child = next(node for node, parent in enumerate(parents) if parent >= 0)
    mask[..., len(PROMPT) + child, len(PROMPT) + parents[child]] = LOWEST
    assert largest_difference(tree_logits(model, draft, mask=mask), chain_logits(model, draft)) > 1e-3


@pytest.mark.parametrize("parents", [SHAPES["siblings"], SHAPES["regular"], SHAPES["ragged"]])
def test_positions_by_row_instead_of_depth_are_found(model, parents):
    draft = tree_of(parents)
    by_row = torch.arange(len(PROMPT) + len(parents))[None]
    assert largest_difference(tree_logits(model, draft, positions=by_row), chain_logits(model, draft)) > 1e-3


@every_shape
def test_positions_one_off_are_found(model, parents):
    draft, positions = tree_of(parents), whole_positions(parents)
    positions[0, len(PROMPT) :] += 1
    assert max(tree_depths(parents)) >= 0
    assert largest_difference(tree_logits(model, draft, positions=positions), chain_logits(model, draft)) > 1e-3
