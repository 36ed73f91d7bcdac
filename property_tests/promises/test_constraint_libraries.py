"""Engines whose masks come from xgrammar, llguidance and outlines-core; each library is examined where it is installed.

The language has one ``a`` at most. A matcher reads the drafts to mask the rows behind them, and is rolled back.
"""

import string
from functools import cache

import numpy as np
import pytest

from specverify.testing import Made, check_engine

LETTERS = string.ascii_letters + string.digits + "+/"


class OfXgrammar:
    def __init__(self, vocabulary):
        self.size = vocabulary
        self.library, self.matcher = compiled_by_xgrammar(vocabulary)
        self.row = self.library.allocate_token_bitmask(1, vocabulary + 1)

    def mask(self):
        self.matcher.fill_next_token_bitmask(self.row)
        return [bool(int(self.row[0, token // 32]) >> token % 32 & 1) for token in range(self.size)]

    def read(self, token):
        assert self.matcher.accept_token(token)

    def back(self, count):
        self.matcher.rollback(count)


def compiled_by_xgrammar(vocabulary):
    xgrammar = pytest.importorskip("xgrammar")
    return xgrammar, xgrammar.GrammarMatcher(grammar_of_xgrammar(vocabulary))


@cache
def grammar_of_xgrammar(vocabulary):
    import xgrammar

    tokens = [*LETTERS[:vocabulary], "<end>"]
    info = xgrammar.TokenizerInfo(
        tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=vocabulary + 1, stop_token_ids=[vocabulary]
    )
    others = " | ".join(f'"{letter}"' for letter in LETTERS[1:vocabulary])
    return xgrammar.GrammarCompiler(info).compile_grammar(f'root ::= ({others})* "a"? ({others})*\n')


class OfOutlines:
    def __init__(self, vocabulary):
        outlines_core = pytest.importorskip("outlines_core")
        self.size, self.guide = vocabulary, outlines_core.Guide(index_of_outlines(vocabulary))

    def mask(self):
        allowed = set(self.guide.get_tokens())
        return [token in allowed for token in range(self.size)]

    def read(self, token):
        self.guide.advance(token)

    def back(self, count):
        self.guide.rollback_state(count)


@cache
def index_of_outlines(vocabulary):
    import outlines_core

    others = "|".join(map(escaped, LETTERS[1:vocabulary]))
    ids = {letter: [token] for token, letter in enumerate(LETTERS[:vocabulary])}
    return outlines_core.Index(f"({others})*a?({others})*", outlines_core.Vocabulary(vocabulary, ids))


def escaped(letter):
    return "\\+" if letter == "+" else letter


class OfLlguidance:
    def __init__(self, vocabulary):
        llguidance = pytest.importorskip("llguidance")
        others = "|".join(letter if letter not in "+/" else f"\\{letter}" for letter in LETTERS[1:vocabulary])
        grammar = llguidance.LLMatcher.grammar_from_regex(f"({others})*a?({others})*")
        self.size, tokenizer = vocabulary, tokenizer_of_llguidance(vocabulary)
        self.matcher = llguidance.LLMatcher(tokenizer, grammar)

    def mask(self):
        bits = self.matcher.compute_bitmask()
        return [bool(bits[token // 8] >> token % 8 & 1) for token in range(self.size)]

    def read(self, token):
        assert self.matcher.consume_token(token)

    def back(self, count):
        self.matcher.rollback(count)


@cache
def tokenizer_of_llguidance(vocabulary):
    import llguidance

    class Tokenizer:
        def __init__(self):
            self.eos_token_id, self.bos_token_id, self.special_token_ids = vocabulary, None, [vocabulary]
            self.tokens = [*(letter.encode() for letter in LETTERS[:vocabulary]), b"<end>"]

        def __call__(self, text):
            return [self.tokens.index(bytes([byte])) for byte in (text.encode() if isinstance(text, str) else text)]

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokenizer()))


def engine(matcher_of, fault=""):
    def make(s):
        def allowed(new):
            return [token != 0 or 0 not in new for token in range(s.vocabulary)]

        def decode():
            matcher, new = matcher_of(s.vocabulary), ()
            while len(new) < s.horizon:
                mask = matcher.mask()
                q = weighted(s.draft(s.prompt + new), mask)
                draft = int(np.random.choice(s.vocabulary, p=q))
                p = weighted(s.target(s.prompt + new), mask)
                matcher.read(draft)
                behind = mask if fault == "stale mask" else matcher.mask()
                if np.random.random() < p[draft] / q[draft]:
                    new += (draft,)
                    token = int(np.random.choice(s.vocabulary, p=weighted(s.target(s.prompt + new), behind)))
                else:
                    if fault != "no rollback":
                        matcher.back(1)
                    left = np.maximum(p - q, 0)
                    left = left if left.sum() > 0 else p
                    token = int(np.random.choice(s.vocabulary, p=left / left.sum()))
                if fault and not matcher.mask()[token]:
                    return (new + (token,) * s.horizon)[: s.horizon]
                matcher.read(token)
                new += (token,)
            return new[: s.horizon]

        return Made(decode, allowed=allowed)

    return make


def weighted(row, mask):
    weights = np.array(row) * np.array(mask, dtype=float)
    weights = weights if weights.sum() > 0 else np.array(mask, dtype=float)
    return weights / weights.sum()


LIBRARIES = [OfXgrammar, OfOutlines, OfLlguidance]


@pytest.mark.thorough
@pytest.mark.parametrize("library", LIBRARIES)
def test_masks_that_are_rolled_back_hold_and_others_are_refuted(library):
    library(3)
    how = {"quick": True, "on_fail": None, "checks": ["constraint_is_kept", "law_is_target"]}
    assert {v.status for v in check_engine(engine(library), **how)} == {"holds"}
    for fault in ("no rollback", "stale mask"):
        assert "refuted" in {v.status for v in check_engine(engine(library, fault), **how)}
