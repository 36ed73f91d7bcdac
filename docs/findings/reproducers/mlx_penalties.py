"""mlx-lm 0.32.2: with a draft model, logits processors are not shown the prompt.

    python mlx_penalties.py

Status 0 fixed, 1 present, 125 cannot be tested. The processor writes down what it is shown: the tokens before the one
that is decided, as without a draft model. With one, only the last token of the prompt is among them, so that
penalties of repetition, presence and frequency are others.
"""

from __future__ import annotations

import sys

try:
    import mlx.core as mx
    import mlx_lm
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.models.llama import Model, ModelArgs
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)

PROMPT, NEW = [3, 1, 2, 3, 1], 3


def model(seed: int) -> Model:
    mx.random.seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32, "num_attention_heads": 2}
    return Model(ModelArgs(model_type="llama", rms_norm_eps=1e-5, vocab_size=8, **sizes, tie_word_embeddings=False))


def shown(steps, *models, **options) -> tuple[list[int], list[list[int]]]:
    seen: list[list[int]] = []

    def processor(tokens, logits):
        seen.append(tokens.tolist())
        return logits

    found = steps(mx.array(PROMPT), *models, max_tokens=NEW, logits_processors=[processor], **options)
    return [int(token) for token, *_ in found], seen


def present() -> bool:
    mx.set_default_device(mx.cpu)
    target, draft = model(1), model(2)
    text, expected = shown(generate_step, target)
    same, got = shown(speculative_generate_step, target, draft, num_draft_tokens=1)
    print(f"mlx-lm {mlx_lm.__version__}; new tokens {text}, with a draft model {same}")
    print(f"expected the first token to be decided after {expected[0]}")
    print(f"got {got[0]}")
    return got[0] != expected[0]


try:
    status = int(present())
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
