"""Draft trees: a node's logits are those of its path as a chain, and after acceptance its path is all the cache keeps.

Every tree is fed in one pass, and every node of it is then accepted in turn: layers and next logits must equal a fresh
prefill. float64 with the bound of ``cache_comparison``; planted mistakes are off by more than ``VISIBLE``. Relative
position biases (T5) count entries, not positions, and cannot hold a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.kv_cache import crop, keep_path, tree_depths, tree_mask, tree_path
from test_support.gpu.cache_comparison import VISIBLE, bound
from test_support.gpu.cache_kinds import DYNAMIC, STATIC
from test_support.gpu.cache_rounds import KNOWN
from test_support.gpu.tiny_models import FULL, WINDOWS, model_of
from test_support.gpu.tree_caches import Choices, accepted_difference, feed_tree, logits_difference

TREES: dict[str, tuple[int, ...]] = {
    "a chain": (-1, 0, 1, 2),
    "siblings": (-1, -1, -1),
    "two branches": (-1, -1, 0, 1, 2, 3),
    "branches at every depth": (-1, 0, 0, 1, 1, 2, 2, 3),
    "an early leaf": (-1, -1, 1, -1, 2, 4, 3),
    "no node": (),
}
BRANCHING = TREES["two branches"]
SUBJECTS = [*((name, DYNAMIC) for name in (*FULL, *WINDOWS)), *((name, STATIC) for name in FULL)]


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
@pytest.mark.parametrize(("architecture", "kind_name"), SUBJECTS)
def test_logits_of_every_node_are_those_of_its_path(
    architecture: str, kind_name: str, parents: tuple[int, ...], device: torch.device
) -> None:
    model = model_of(architecture, device)
    assert logits_difference(model, feed_tree(model, kind_name, parents), parents) < bound(architecture)


@pytest.mark.parametrize("parents", TREES.values(), ids=TREES)
@pytest.mark.parametrize(("architecture", "kind_name"), SUBJECTS)
def test_any_accepted_path_leaves_the_cache_of_a_prefill(
    architecture: str, kind_name: str, parents: tuple[int, ...], device: torch.device
) -> None:
    fed = feed_tree(model_of(architecture, device), kind_name, parents)
    for node in range(-1, len(parents)):
        assert accepted_difference(fed, parents, node) < bound(architecture)


trees = st.integers(0, 9).flatmap(lambda nodes: st.tuples(*(st.integers(-1, node - 1) for node in range(nodes))))


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
def test_any_tree_is_its_chains(architecture: str, device: torch.device) -> None:
    model = model_of(architecture, device)

    @settings(max_examples=25, deadline=None, derandomize=True, database=None)
    @given(trees, st.data())
    def check(parents: tuple[int, ...], data: st.DataObject) -> None:
        fed = feed_tree(model, DYNAMIC, parents)
        assert logits_difference(model, fed, parents) < bound(architecture)
        node = data.draw(st.integers(-1, len(parents) - 1))
        assert accepted_difference(fed, parents, node) < bound(architecture)

    check()


# Planted mistakes: how the tree is fed


def by_index(parents: Sequence[int]) -> Sequence[int]:
    return range(len(parents))


def one_deeper(parents: Sequence[int]) -> Sequence[int]:
    return [depth + 1 for depth in tree_depths(parents)]


def causal(parents: Sequence[int], known: int) -> Any:
    """Planted bug: a node sees every node before it, including its siblings."""
    return np.tri(1 + len(parents), known + len(parents), known - 1, dtype=bool)


def without_grandparents(parents: Sequence[int], known: int) -> Any:
    mask = tree_mask(parents, known)
    for node, parent in enumerate(parents):
        mask[1 + node, known : known + len(parents)] = False
        mask[1 + node, [known + near for near in (node, parent) if near >= 0]] = True
    return mask


def without_known(parents: Sequence[int], known: int) -> Any:
    """Planted bug: nodes do not see the last known token."""
    mask = tree_mask(parents, known)
    mask[1:, known - 1] = False
    return mask


MISFED = {
    "positions by index": Choices(depths=by_index),
    "positions one too deep": Choices(depths=one_deeper),
    "siblings are seen": Choices(mask=causal),
    "only the parent is seen": Choices(mask=without_grandparents),
    "the root is not seen": Choices(mask=without_known),
}


@pytest.mark.parametrize("choices", MISFED.values(), ids=MISFED)
@pytest.mark.parametrize("architecture", FULL)
def test_planted_mistake_in_feeding_a_tree_is_found(architecture: str, choices: Choices, device: torch.device) -> None:
    """The control feeds the same tree; on a chain, positions by index and a causal mask are right."""
    model, parents = model_of(architecture, device), BRANCHING
    assert logits_difference(model, feed_tree(model, DYNAMIC, parents), parents) < bound(architecture)
    assert logits_difference(model, feed_tree(model, DYNAMIC, parents, choices), parents) > VISIBLE
    if choices in {MISFED["positions by index"], MISFED["siblings are seen"]}:
        chain = TREES["a chain"]
        assert logits_difference(model, feed_tree(model, DYNAMIC, chain, choices), chain) < bound(architecture)


# Planted mistakes: what is kept


def crop_alone(entries: torch.Tensor, path: tuple[int, ...]) -> torch.Tensor:
    """Planted bug: the entries are cropped as for a chain, without gathering the accepted path."""
    return crop(entries, len(KNOWN) + len(path))


def crop_then_gather(entries: torch.Tensor, path: tuple[int, ...]) -> torch.Tensor:
    """Planted bug: the entries are cropped before the path is gathered.

    An index beyond the end reads the last entry.
    """
    cropped = crop(entries, len(KNOWN) + len(path))
    positions = [*range(len(KNOWN)), *(min(len(KNOWN) + node, cropped.shape[-2] - 1) for node in path)]
    return cropped[..., positions, :]


def leaf_first(entries: torch.Tensor, path: tuple[int, ...]) -> torch.Tensor:
    return keep_path(entries, len(KNOWN), path[::-1])


def one_row_early(entries: torch.Tensor, path: tuple[int, ...]) -> torch.Tensor:
    """Planted bug: nodes are counted from the last known token, which is fed before them."""
    return entries[..., [*range(len(KNOWN)), *(len(KNOWN) + node - 1 for node in path)], :]


def gather_without_crop(entries: torch.Tensor, path: tuple[int, ...]) -> torch.Tensor:
    rest = entries[..., len(KNOWN) + len(path) :, :]
    return torch.cat([keep_path(entries, len(KNOWN), path), rest], dim=-2)


MISKEPT: dict[str, tuple[Callable[[torch.Tensor, tuple[int, ...]], Any], int]] = {
    "crop without gather": (crop_alone, 5),
    "crop before gather": (crop_then_gather, 5),
    "path from the leaf": (leaf_first, 5),
    "one row early": (one_row_early, 5),
    "gather without crop": (gather_without_crop, 2),
}


@pytest.mark.parametrize(("pruned", "node"), MISKEPT.values(), ids=MISKEPT)
@pytest.mark.parametrize("architecture", FULL)
def test_planted_mistake_in_keeping_a_path_is_found(
    architecture: str, pruned: Callable[..., Any], node: int, device: torch.device
) -> None:
    fed = feed_tree(model_of(architecture, device), DYNAMIC, BRANCHING)
    assert accepted_difference(fed, BRANCHING, node) < bound(architecture)
    assert accepted_difference(fed, BRANCHING, node, pruned) > VISIBLE


@pytest.mark.parametrize("architecture", FULL)
def test_planted_crop_without_gather_is_invisible_on_a_chain(architecture: str, device: torch.device) -> None:
    """Why a chain cannot test a tree's cache: there, a crop alone is right."""
    fed = feed_tree(model_of(architecture, device), DYNAMIC, TREES["a chain"])
    assert accepted_difference(fed, TREES["a chain"], 2, crop_alone) < bound(architecture)


@pytest.mark.parametrize("architecture", FULL)
def test_planted_gather_after_the_crop_is_refused_by_the_reference(architecture: str, device: torch.device) -> None:
    layer = feed_tree(model_of(architecture, device), DYNAMIC, BRANCHING).held.cache.layers[0]
    path = tree_path(BRANCHING, 5)
    with pytest.raises(ValueError, match=r"path \(1, 3, 5\) behind 5 known tokens is not among the 8 entries"):
        keep_path(crop(layer.keys, len(KNOWN) + len(path)), len(KNOWN), path)


# The arithmetic, without a model


def test_depths_paths_and_mask_of_two_branches() -> None:
    assert tree_depths(BRANCHING) == (0, 0, 1, 1, 2, 2)
    assert [tree_path(BRANCHING, node) for node in (-1, 0, 4, 5)] == [(), (0,), (0, 2, 4), (1, 3, 5)]
    assert tree_mask((-1, -1, 0), 2).astype(int).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 1, 0, 1],
    ]


def test_a_path_is_gathered_behind_the_known_entries() -> None:
    entries = np.arange(2 * 7).reshape(1, 1, 7, 2)
    assert keep_path(entries, 3, (1, 3))[0, 0, :, 0].tolist() == [0, 2, 4, 8, 12]
    assert keep_path(entries, 0, ()).shape == (1, 1, 0, 2)


@pytest.mark.parametrize("parents", [(0,), (-1, 1), (-2,)])
def test_a_node_hangs_from_an_earlier_one(parents: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected an earlier node, or -1"):
        tree_depths(parents)


@pytest.mark.parametrize("path", [(-1,), (4,)])
def test_padding_and_missing_nodes_are_refused(path: tuple[int, ...]) -> None:
    """Ragged tables of paths are padded with -1, which must never be read as an entry."""
    with pytest.raises(ValueError, match="behind 3 known tokens is not among the 7 entries"):
        keep_path(np.zeros((1, 1, 7, 2)), 3, path)
