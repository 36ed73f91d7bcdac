"""transformers 5.23.0: ``top_h`` and ``bad_words_ids`` do not do what they say, without any speculation.

    python transformers_plain_truncation.py [NAME]

Status 0 fixed, 1 present (one of them, or the one named), 125 cannot be tested. ``GenerationConfig`` documents that
``top_h`` keeps the most likely tokens while their *renormalized* entropy is within the budget; ``TopHLogitsWarper``
sums the terms of the whole distribution. A forbidden word that is an end of sequence is dropped from the list unsaid
(``NoBadWordsLogitsProcessor.__init__``).
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
END, SHARE = 4, 0.9


def decoded(**options):
    """Return the model's logits for the one new token, and what the options made of them."""
    ids = torch.tensor([[1, 2, 0, 1]])
    asked = dict(return_dict_in_generate=True, output_scores=True, output_logits=True, max_new_tokens=1)
    given = dict(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0)
    found = MODEL.generate(**given, **asked, **options)
    return found["logits"][0][0].tolist(), found["scores"][0][0].tolist()


def entropy(masses):
    return -sum(mass / sum(masses) * math.log(mass / sum(masses)) for mass in masses)


def present(wanted):
    logits, scores = decoded(top_h=SHARE)
    masses = sorted(map(math.exp, logits), reverse=True)
    kept = max(size for size in range(1, 9) if size == 1 or entropy(masses[:size]) <= SHARE * entropy(masses))
    _, forbidden = decoded(bad_words_ids=[[2], [END]], eos_token_id=END, pad_token_id=END)
    rows = [("top_h", "tokens kept", kept, sum(score > -math.inf for score in scores))]
    rows.append(("bad_words_ids", "the logit of a forbidden end", -math.inf, forbidden[END]))
    chosen = [row for row in rows if wanted in ("", row[0])]
    for name, what, expected, got in chosen:
        print(f"{name}: {what}: expected {expected:.4g}, got {got:.4g}")
    return any(expected != got for *_, expected, got in chosen)


try:
    status = int(present("".join(sys.argv[1:])))
except Exception as error:
    print(f"cannot be tested: {type(error).__name__}: {error}")
    status = 125
sys.exit(status)
