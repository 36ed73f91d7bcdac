"""speculative-decoding 0.2.0 (lucidrains): rows of a batch that accept different numbers of drafts read padding.

    python lucidrains_batch.py

Status 0 fixed, 1 present, 125 cannot be tested. Greedy, so nothing is random: four prompts decoded in one batch must
give what each gives by itself. ``Decoder.forward`` makes a mask of the padding at the left (``self_attn_kv_mask``) and
does not pass it to the attention of its main layers.
"""

from __future__ import annotations

import sys

try:
    import torch
    from speculative_decoding import Decoder, speculative_decoding
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

PROMPTS, LENGTH = [[3, 1, 2, 3, 1], [0, 4, 4, 2, 1], [2, 2, 0, 1, 3], [4, 0, 3, 3, 0]], 17


def network(seed: int, depth: int) -> Decoder:
    torch.manual_seed(seed)
    made = Decoder(num_tokens=5, dim=16, depth=depth, heads=2, dim_head=8)
    for weight in made.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, 0.0, 0.5)
    return made.eval()


def text(prompts: list[list[int]]) -> list[list[int]]:
    nets = network(1, 2), network(2, 1)
    return speculative_decoding(*nets, torch.tensor(prompts), LENGTH, gamma=2, temperature=0.0)[0].tolist()


def present() -> bool:
    expected = [text([prompt])[0] for prompt in PROMPTS]
    got = text(PROMPTS)
    for prompt, one, other in zip(PROMPTS, expected, got, strict=True):
        print(f"prompt {prompt}: expected {one}, got {other}")
    return got != expected


try:
    status = int(present())
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
