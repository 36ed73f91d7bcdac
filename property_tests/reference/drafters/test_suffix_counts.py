"""The drafter of SuffixDecoding against tries of all suffixes."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from reference.drafters.suffix_counts import suffix_drafter
from reference.lengths.constant import never

texts = st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple)


def by_tries(corpus, begin, text, factor, least, most):
    own, shared = (by_trie(texts, text, factor, least, most) for texts in ((text,), (*corpus, text[begin:])))
    return max(own, shared, key=lambda found: found[1])[0]


def by_trie(corpus, text, factor, least, most):
    trie = {}
    for each in corpus:
        for start in range(len(each)):
            node = trie
            for token in each[start:]:
                node = node.setdefault(token, {"times": 0})
                node["times"] += 1
    best, best_score = (), 0
    for size in range(1, len(text)):
        node = trie
        for token in text[len(text) - size :]:
            node = node.get(token) if node else None
        if not node or len(node) == 1:
            break
        path, chance, score = (), Fraction(1), Fraction(0)
        while len(path) < min(most, int(size * factor)) and len(node) > 1:
            token = max((key for key in node if key != "times"), key=lambda key: (node[key]["times"], -key))
            chance *= Fraction(node[token]["times"], node["times"])
            if chance < least:
                break
            path, score, node = (*path, token), score + chance, node[token]
        if score >= best_score:
            best, best_score = path, score
    return best, best_score


@given(texts, st.lists(texts, max_size=2).map(tuple), st.integers(0, 2), st.data())
def test_the_best_suffix_is_the_trie_s(text, corpus, factor, data):
    least, begin = Fraction(1, 4), data.draw(st.integers(1, len(text)))
    drafter = suffix_drafter(corpus, factor, least)
    state = drafter.observe(drafter.init(text[:begin]), text, begin, None)
    assert drafter.propose(None, state, text, 4, never).tokens == by_tries(corpus, begin, text, factor, least, 4)


def test_the_tree_of_this_request_and_that_of_all_responses_do_not_add_up():
    """The release's answer for two responses and a prompt of six; counting all texts together would draft (1, 0)."""
    text = (0, 1, 0, 0, 0, 1, 1, 0, 1)
    drafter = suffix_drafter(((0, 1, 1, 0), (1, 0, 1)), 1, Fraction(1, 3))
    assert drafter.propose(None, drafter.init(text[:6]), text, 3, never).tokens == (0, 0)
