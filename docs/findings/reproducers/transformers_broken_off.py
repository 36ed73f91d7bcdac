"""transformers 5.23.0: the call after one that was broken off while it drafted by early exit runs fewer layers.

    python transformers_broken_off.py

Status 0 fixed, 1 present, 125 cannot be tested. ``EarlyExitCandidateGenerator.get_candidates`` lowers
``config.num_hidden_layers`` of the target while it drafts, and puts it back behind its forward passes, not in a
``finally``: an exception that comes between leaves the target so, and whoever catches it and goes on gets another text.
"""

import sys

try:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
    CONFIG = LlamaConfig(vocab_size=16, bos_token_id=None, eos_token_id=None, initializer_range=1.0, **sizes)
    MODEL = LlamaForCausalLM(CONFIG).eval()
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)


class InterruptedDraftError(Exception):
    """Somebody's timeout, say."""


def interrupt(*_):
    if MODEL.config.num_hidden_layers < 2:
        raise InterruptedDraftError


def text(**more):
    ids = torch.tensor([[1, 2, 0, 1]])
    given = dict(attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False)
    return MODEL.generate(ids, **given, **more)[0].tolist()


def present():
    before = text()
    hook = MODEL.register_forward_pre_hook(interrupt)
    try:
        text(assistant_early_exit=1)
    except InterruptedDraftError:
        pass
    else:
        raise RuntimeError("nothing was drafted by fewer layers, so nothing was broken off")
    hook.remove()
    after = text()
    print(f"expected {before} with 2 layers, as before; got {after} with {MODEL.config.num_hidden_layers}")
    return (after, MODEL.config.num_hidden_layers) != (before, 2)


try:
    status = int(present())
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
