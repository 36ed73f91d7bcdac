"""Recorded defects that cannot be planted in the serving engine or elsewhere: citation -> the reason."""

from __future__ import annotations

NOT_EXPRESSED: dict[str, str] = {
    "vllm-ascend issue #13608 (commit 05f0855da1)": "The law is right. The number of draws from a seed changes, and "
    "no check compares the seeds of two calls.",
    "local-inference-lab/vllm PR #98 (the part about ranks)": "The fault needs several ranks. The hidden generator "
    "of this report is planted.",
    "romsto/Speculative-Decoding ngram_storage.py:84,165": "The law is right. Lookups advance the global generator, "
    "and no check compares seeded runs with and without drafts.",
    "vLLM issue #34583, PR #43369": "The code reads beyond a buffer of the device. No decision changes.",
    "MLC-LLM PR #2824 (6a5f63b4)": "The code raises on every chain. A crash has the verdict UNUSABLE, which is not a "
    "refutation.",
    "romsto/Speculative-Decoding speculative_decoding.py:94-189; base_decoding.py:51-65": "The code raises at "
    "horizons 0 to 2.",
    "romsto/Speculative-Decoding ngram_storage.py:171,174,187": "The code raises for prompts of one token.",
    "romsto/Speculative-Decoding speculative_decoding.py:73,107,122": "The code raises if the vocabularies differ.",
    "romsto/Speculative-Decoding ngram_assisted.py:64; speculative_decoding.py:80": "The code raises for long prompts.",
    "romsto/Speculative-Decoding ngram_storage.py:171,185,200,226,102,110": "Some n-grams are not found, so there "
    "are fewer drafts. Each draft is accepted with the right probability, and no check tests which drafts should "
    "exist.",
    "romsto/Speculative-Decoding ngram_assisted.py:150-155": "A count of n-grams is wrong, so the drafts are "
    "different. No check tests which drafts should exist.",
    "romsto/Speculative-Decoding speculative_decoding.py:125,147": "A reported rate is wrong, but no token.",
    "romsto/Speculative-Decoding infer.py:131-136,300-369": "Only the output and the commands of a console program "
    "are wrong.",
    "romsto/Speculative-Decoding base_decoding.py:124-165": "The fault is in beam search. No subject of this page "
    "uses beam search.",
    "romsto/Speculative-Decoding utils/caching.py:21-24,49-53,72-75": "The fault is in caches that a table model "
    "does not have.",
    "romsto/Speculative-Decoding README, requirements.txt, no tests": "The fault is in documents, not in a program.",
    "plausible: streaming emits tokens before they are verified": "The subjects of this page return a text and do "
    "not stream.",
    "plausible: beam search reorders caches with the draft's beam indices": "No subject of this page uses beam search.",
    "TensorRT-LLM issue #2208 (5 drafts)": "The project does not consider it a bug. The control `gamma-by-position` "
    "has this behaviour.",
    "vLLM issue #9423": "Speculation breaks guided decoding. The report shows no cause, and every cause that we "
    "could plant is planted under another citation.",
}

"""Citation of a real defect -> why no planted bug expresses it."""
