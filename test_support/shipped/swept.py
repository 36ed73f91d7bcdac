"""The sampler of SJD-PAC, which judges a whole window of drafts and draws the next one, in the loop around it."""

from __future__ import annotations

from typing import Any

import torch

from specverify.testing import EngineScenario
from test_support.shipped.networks import logits_of
from test_support.shipped.sources import functions_of

FILE = "scheduler/sjd_pac_iteration_lumina_mgpt.py"
SOME_OF_EACH = ("res_p[..., 0].add_(1e-20)", "res_p.add_(1e-20)")


def sjd_pac(scenario: EngineScenario, *, nodes: int, depth: int = 1, apart: bool = False) -> Any:
    """``SJDPACSpeculativeSampler`` with the tree of ``generate_tree_mask_and_retrieve``: ``nodes`` a sweep, 2 siblings.

    At depth 1 the tree is the root alone, and siblings are drawn and dropped. Two tokens are drawn without replacement
    from residuals that may hold one: all tokens get the 1e-20 that the release gives to token 0. ``apart`` makes the
    even siblings of the first sweep two tokens; the release draws them independently, and judges them as two.
    The release decodes images: its even draws go over image tokens, which are all tokens here. The loop is that of
    ``_sample`` without its caches: what stands behind each node is read from the tables, along the node's path.
    """
    names = ("SJDPACSpeculativeSampler", "generate_tree_mask_and_retrieve", "setup_speculative_tree_buffers")
    own = functions_of("SJD-PAC", FILE, *names, mended=SOME_OF_EACH, torch=torch)
    _, paths, from_tree = own.generate_tree_mask_and_retrieve(nodes, 2, depth)
    size, width = scenario.vocabulary, 2

    def made() -> Any:
        sampler = own.SJDPACSpeculativeSampler()
        sampler.img_start, sampler.img_end, sampler.uni_val = 0, size, 1 / size
        own.setup_speculative_tree_buffers(sampler, width, depth, "cpu")
        return sampler

    def first_drafts() -> Any:
        """Return the even draws of the first sweep, a token for each node behind the root."""
        if not apart:
            return torch.randint(0, size, (nodes - 1,))
        return torch.multinomial(torch.ones(paths.shape[1], size), 2).T.flatten()[from_tree[1:]]

    def rows(text: list[int], tree: list[int]) -> Any:
        """Return the logits ``[leaves, path, vocabulary]`` behind each node of each path."""
        return torch.stack([_row(text, tree, path) for path in paths.tolist()])

    def _row(text: list[int], tree: list[int], path: list[int]) -> Any:
        tokens = [tree[node] for node in path if node >= 0]
        logits = logits_of(scenario.target, [[*text[:-1], *tokens]])[0, len(text) - 1 :]
        return torch.cat([logits, logits[-1:].expand(len(path) - len(tokens), -1)])

    def speculative() -> Any:
        text, sampler = list(scenario.prompt), made()
        tree = torch.cat([torch.tensor(text[-1:]), first_drafts()])
        declared = torch.full((1, nodes, size), 1 / size, dtype=torch.float64)
        while len(text) < len(scenario.prompt) + scenario.horizon:
            tokens = torch.cat([tree, torch.tensor([-1])])[paths]
            p = rows(text, [int(token) for token in tree]).softmax(-1)
            count, row, swept, declared = sampler(draft_tokens=tokens, draft_prob=declared, advanced_prob=p)
            tree = swept.flatten()[from_tree]
            text += [int(token) for token in tokens[row, 1:count]] + [int(tree[0])]
        return text[len(scenario.prompt) :][: scenario.horizon]

    return speculative
