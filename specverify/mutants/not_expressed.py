"""Recorded defects that cannot be planted in the serving engine or elsewhere: citation -> the reason."""

from __future__ import annotations

NOT_EXPRESSED: dict[str, str] = {
    "vllm-ascend issue #13608 (commit 05f0855da1)": "the law is right: another number of draws is made from one seed, "
    "and no check compares the seeds of two calls",
    "local-inference-lab/vllm PR #98 (the part about ranks)": "needs several ranks; the hidden generator is planted",
    "romsto/Speculative-Decoding ngram_storage.py:84,165": "the law is right: lookups advance the global generator, "
    "and no check compares seeded runs with and without drafts",
    "vLLM issue #34583, PR #43369": "a read beyond a buffer: memory of a device, no decision changes",
    "MLC-LLM PR #2824 (6a5f63b4)": "raises on every chain: a crash is unusable, which is no refutation",
    "romsto/Speculative-Decoding speculative_decoding.py:94-189; base_decoding.py:51-65": "raises at horizons 0 to 2",
    "romsto/Speculative-Decoding ngram_storage.py:171,174,187": "raises for prompts of one token",
    "romsto/Speculative-Decoding speculative_decoding.py:73,107,122": "raises where the vocabularies differ",
    "romsto/Speculative-Decoding ngram_assisted.py:64; speculative_decoding.py:80": "raises for long prompts",
    "romsto/Speculative-Decoding ngram_storage.py:171,185,200,226,102,110": "n-grams are not found: fewer drafts, "
    "each accepted as often as it can be, and no check knows which drafts there should be",
    "romsto/Speculative-Decoding ngram_assisted.py:150-155": "a count of n-grams is off: other drafts, as above",
    "romsto/Speculative-Decoding speculative_decoding.py:125,147": "a reported rate is wrong, no token is",
    "romsto/Speculative-Decoding infer.py:131-136,300-369": "a console's numbers and commands, no token",
    "romsto/Speculative-Decoding base_decoding.py:124-165": "beam search: no subject here searches",
    "romsto/Speculative-Decoding utils/caching.py:21-24,49-53,72-75": "caches that a table model does not have",
    "romsto/Speculative-Decoding README, requirements.txt, no tests": "documents, no program",
    "plausible: streaming emits tokens before they are verified": "a subject returns text, it does not stream",
    "plausible: beam search reorders caches with the draft's beam indices": "no subject here searches",
    "TensorRT-LLM issue #2208 (5 drafts)": "labelled not a bug; a control has the class",
    "vLLM issue #9423": (
        "guided decoding broken by speculation: the report shows no cause, and every cause we could plant is planted "
        "under another citation"
    ),
}

"""Citation of a real defect -> why no planted bug expresses it."""
