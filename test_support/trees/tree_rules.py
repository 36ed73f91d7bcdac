"""Verifiers of draft trees in the layouts that projects use, in torch and NumPy, and common mistakes in them.

Each takes the part in question as a parameter, so that the right verifier and its wrong twins are the same code.
"""

from __future__ import annotations

import random

import numpy as np
import torch

from reference.kv_cache import tree_path
from reference.tree_layouts import (
    child_lists,
    conditional_pmfs,
    linked_siblings,
    path_candidates,
    path_indices,
    predicted_tokens,
)
from reference.trees import leaves

# What is owed after a rejection


def residual(p, q):
    """Return the residual max(0, p - q), or p if rounding makes it zero."""
    left = torch.clamp(p - q, min=0)
    return left / left.sum() if left.any() else p


def not_updated(p, q):
    """Planted bug: the next sibling is tested against p instead of the residual."""
    return p


def one_entry(p, q):
    """Planted bug: the most probable token of q is removed from p, instead of subtracting all of q."""
    left = p.clone()
    left[q.argmax()] = torch.clamp(p[q.argmax()] - q.max(), min=0)
    return left / left.sum() if left.any() else p


# Parents: SpecInfer, RSD


def by_parents(owed=residual, own=lambda q, parents, tokens: q, coin=None, below=None):
    """Return a verifier by recursive rejection from the root, in torch; ``own`` makes the pmf of each node's draft."""

    def verify(p, q, parents, tokens):
        rows, node, kept = own(q, parents, tokens), -1, []
        while (children := (parents == node).nonzero().flatten().tolist()) != []:
            law, once, found = p[1 + node], torch.rand(()), None
            for child in children:
                uniform = torch.rand(()) if coin is None else coin(once)
                if uniform * rows[child, tokens[child]] < law[tokens[child]]:
                    found = child
                    break
                law = owed(law, rows[child])
            if found is None:
                return [*kept, int(torch.multinomial(law, 1))]
            kept.append(int(tokens[found]))
            node = found if below is None else below(tokens, found)
        return [*kept, int(torch.multinomial(p[1 + node], 1))]

    return verify


def of_the_root(q, parents, tokens):
    """Planted bug: every level is verified with the q of the first level."""
    return conditional_pmfs(q[:1].expand_as(q), parents, tokens)


def of_the_node_before(q, parents, tokens):
    """Planted bug: the row of another node, with another parent, is used."""
    return conditional_pmfs(q, parents, tokens).roll(1, 0)


def used_again(once):
    """Planted bug: one uniform decides all siblings."""
    return once


def first_of_the_token(tokens, node):
    """Planted bug: the walk continues below the last node with the token, whatever its parent is."""
    return int((tokens == tokens[node]).nonzero()[-1])


def in_numpy(p, q, parents, tokens):
    """Return the tokens of one round: draws from p, while a child of the present node has the drawn token.

    This is right for any tree that was not drawn from q.
    """
    rng, node, kept = np.random.default_rng(), -1, []
    while True:
        kept.append(int(rng.choice(p.shape[1], p=p[1 + node])))
        found = [child for child in np.flatnonzero(parents == node) if tokens[child] == kept[-1]]
        if not found:
            return kept
        node = found[0]


# Paths: EAGLE, Medusa


def depth_first(parents):
    return path_indices(parents)


def by_leaf(parents):
    """Planted bug for drawn siblings: the paths are ordered by their leaves."""
    rows = path_indices(parents)
    shape = parents.tolist()
    order = [rows.tolist().index(row) for leaf in leaves(shape) for row in rows.tolist() if 1 + leaf == max(row)]
    assert all(len(tree_path(shape, leaf)) for leaf in leaves(shape))
    return rows[torch.tensor(order)]


def by_paths(paths=depth_first, seen_once=True, own=None, at_the_end=True):
    """Return a verifier of candidates along paths, which tests siblings in path order and returns the next row.

    ``own`` makes the pmf from which each node was drawn; without it every candidate is a point mass.
    """

    def verify(p, q, parents, tokens):
        indices = paths(parents)
        candidates, rows = path_candidates(tokens, indices), None if own is None else own(q, parents, tokens)
        kept, best = 1, 0
        while kept < candidates.shape[1]:
            agree = (candidates[:, :kept] == candidates[best, :kept]).all(1).nonzero().flatten().tolist()
            law, seen, found = p[indices[agree[0], kept - 1]], [], None
            for path in agree:
                node, token = int(indices[path, kept]) - 1, int(candidates[path, kept])
                if token < 0 or (seen_once and node in seen):
                    continue
                seen.append(node)
                mass = 1.0 if rows is None else float(rows[node, token])
                if random.random() * mass < law[token]:
                    found = path
                    break
                point = torch.nn.functional.one_hot(candidates[path, kept], p.shape[1])
                law = residual(law, point if rows is None else rows[node])
            if found is None:
                return candidates[best, 1:kept], law
            best, kept = found, kept + 1
        last = p[indices[best, kept - 1]]
        return candidates[best, 1:kept], last if at_the_end else law

    return verify


def greedy_by_paths(padding=-1, row=lambda best: best):
    """Return a greedy verifier: it accepts the path that agrees longest with the argmax of its rows, in NumPy."""

    def verify(p, q, parents, tokens):
        indices = path_indices(parents)
        candidates = path_candidates(tokens, indices, padding=padding)
        wanted = p[indices].argmax(-1)
        lengths = (candidates[:, 1:] == wanted[:, :-1]).cumprod(-1).sum(-1)
        best = int(lengths.argmax())
        return [*candidates[best, 1 : 1 + lengths[best]], wanted[row(best), lengths[best]]]

    return verify


# Linked siblings: SGLang


def cumulated(before, mass):
    return before + mass


def alone(before, mass):
    """Planted bug: the coin of a level is compared with each candidate's own probability."""
    return mass


def by_links(reach=cumulated, rest=True, place=lambda tree, rows: tree * rows, coins_of=lambda tree: tree):
    """Return a verifier of a batch with one coin for each level, and flat outputs that are filled in place.

    The coin is compared with the p of the candidates of the level.
    """

    def verify(p, q, parents, tokens):
        links, (trees, rows, vocabulary) = linked_siblings(parents), p.shape
        flat = p.reshape(-1, vocabulary)
        coins = torch.rand(trees, rows)
        predicts = torch.full((trees * rows,), -1)
        accepted = torch.full((trees, rows), -1)
        for tree in range(trees):
            row, steps = 0, 0
            while True:
                law, sought, child = flat[place(tree, rows) + row].clone(), 0.0, int(links.next_token[tree, row])
                accepted[tree, steps] = links.index[tree, row]
                while child >= 0:
                    token = int(tokens[tree, child - 1])
                    sought = reach(sought, flat[place(tree, rows) + row, token])
                    if coins[coins_of(tree), row] < sought:
                        break
                    law[token] = 0 if rest else law[token]
                    child = int(links.next_sibling[tree, child])
                if child < 0:
                    law = law if law.any() else flat[place(tree, rows) + row]
                    predicts[links.index[tree, row]] = torch.multinomial(law, 1)[0]
                    break
                predicts[links.index[tree, row]] = tokens[tree, child - 1]
                row, steps = child, steps + 1
        return predicted_tokens(predicts, accepted)

    return verify


# Lists of children: Sequoia


def by_lists(masks=True, rows_of=lambda row: row):
    """Return a verifier of lists of successors, in torch; the drafter's row is masked after every rejection."""

    def verify(p, q, parents, tokens):
        successors, row, kept = child_lists(parents), 0, []
        while True:
            law, found = p[rows_of(row)], None
            drafter = q[successors[row][0] - 1].clone() if successors[row] else None
            for child in successors[row]:
                token = int(tokens[child - 1])
                own = drafter / drafter.sum()
                if law[token] > torch.rand(()) * own[token]:
                    found = child
                    break
                law = residual(law, own)
                drafter[token] = 0 if masks else drafter[token]
            if found is None:
                return torch.cat([torch.tensor(kept, dtype=torch.int64), torch.multinomial(law, 1)])
            kept.append(int(tokens[found - 1]))
            row = found

    return verify


def in_batch(verify):
    """Return a verifier of a batch that calls ``verify`` for one tree after another."""

    def batch(p, q, parents, tokens):
        none = [None] * len(p)
        return [verify(*tree) for tree in zip(p, none if q is None else q, parents, tokens, strict=True)]

    return batch
