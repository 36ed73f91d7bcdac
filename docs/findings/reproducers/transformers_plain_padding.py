"""transformers 5.23.0: options of ``generate`` that take padding for text, without any speculation.

    python transformers_plain_padding.py [NAME]

Status 0 fixed, 1 present (one of them, or the one named), 125 cannot be tested. The prompt is 1 2 0 1 behind one token
that the attention mask hides. ``repetition_penalty`` leaves such tokens out; with a prompt of embeddings, whose tokens
are not there at all, it leaves out as many new tokens instead (``GenerationMixin._get_logits_processor``).
"""

import math
import sys

try:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    MODEL = LlamaForCausalLM(LlamaConfig(vocab_size=8, bos_token_id=None, eos_token_id=None, **sizes)).eval()
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    sys.exit(125)
PAD, END = 3, 4


def decoded(embedded=False, **options):
    """Return the new tokens, the model's logits for each, and what the options made of them."""
    ids, mask = torch.tensor([[PAD, 1, 2, 0, 1]]), torch.tensor([[0, 1, 1, 1, 1]])
    prompt = {"inputs_embeds": MODEL.get_input_embeddings()(ids)} if embedded else {"input_ids": ids}
    asked = dict(return_dict_in_generate=True, output_scores=True, output_logits=True, max_new_tokens=2)
    found = MODEL.generate(**prompt, attention_mask=mask, do_sample=False, **asked, **options)
    return found["sequences"][0].tolist()[-2:], found["logits"], found["scores"]


def present(wanted):
    """Say of each option what is expected of a logit and what is got."""
    rows = []
    for option in ({"encoder_repetition_penalty": 1.5}, {"no_repeat_ngram_size": 1}):
        _, logits, scores = decoded(**option)
        rows.append((*option, "of the padding's token", float(logits[0][0, PAD]), float(scores[0][0, PAD])))
    scores = decoded(min_length=5, eos_token_id=END, pad_token_id=END)[2]
    rows.append(("min_length", "of an end after four tokens of five", -math.inf, float(scores[0][0, END])))
    (first, _), logits, scores = decoded(embedded=True, repetition_penalty=1.5)
    logit = float(logits[1][0, first])
    penalised = logit * 1.5 if logit < 0 else logit / 1.5
    rows.append(("repetition_penalty", "of the first new token", penalised, float(scores[1][0, first])))
    chosen = [row for row in rows if wanted in ("", row[0])]
    for name, what, expected, got in chosen:
        print(f"{name}: the logit {what}: expected {expected:.4g}, got {got:.4g}")
    return any(expected != got and not math.isclose(expected, got, rel_tol=1e-5) for *_, expected, got in chosen)


try:
    status = int(present("".join(sys.argv[1:])))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
