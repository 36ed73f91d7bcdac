"""LitGPT 0.5.13: with a draft model, the first token is not returned, and ``temperature=0`` is not greedy.

    python litgpt_greedy_draft.py [SEED]

SEED is a seed. Status 0 fixed, 1 present, 125 cannot be tested. At ``temperature=0`` nothing may be random: the text
with a draft must be the text without. ``generate`` begins its list of tokens behind the one that the target gives after
the prompt (upstream #2307), and ``speculative_decoding`` accepts an argmax of the draft by its ratio of softmax
probabilities.
"""

from __future__ import annotations

import sys

try:
    import torch
    from litgpt import GPT, Config
    from litgpt.generate.base import generate as plain
    from litgpt.generate.speculative_decoding import generate
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

LENGTH = 15


def network(seed: int) -> GPT:
    torch.manual_seed(seed)
    made = GPT(Config(block_size=32, vocab_size=8, padded_vocab_size=8, n_layer=1, n_head=2, n_embd=16))
    for weight in made.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, 0.0, 0.3)
    made.set_kv_cache(batch_size=1)
    return made.eval()


def present() -> bool:
    prompt, given = torch.tensor([3, 1, 2]), dict(temperature=0.0, include_prompt=False)
    target, draft = network(1), network(2)
    expected = plain(target, prompt, LENGTH, **given).tolist()
    alone = generate(network(1), target, prompt, LENGTH, speculative_k=2, **given)[0].tolist()
    print(f"expected {expected}, from the target as its own draft {alone}")
    texts = set()
    for seed in range(first := int(*sys.argv[1:]), first + 20):
        torch.manual_seed(seed)
        texts.add(tuple(generate(draft, target, prompt, LENGTH, speculative_k=2, **given)[0].tolist()[: len(expected)]))
    print(f"another draft, twenty seeds at temperature 0: {len(texts)} texts, expected 1; such as {list(min(texts))}")
    return alone[: len(expected)] != expected or texts != {tuple(expected)}


try:
    status = int(present())
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
