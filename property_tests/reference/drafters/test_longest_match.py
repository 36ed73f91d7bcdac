"""The longest match of SAM Decoding against a suffix automaton."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reference.drafters.longest_match import longest_match

texts = st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple)


class Automaton:
    """A suffix automaton whose states know where they ended first."""

    def __init__(self) -> None:
        """Know the empty text."""
        self.edges, self.link, self.length, self.end, self.last = [{}], [-1], [0], [0], 0

    def _state(self, edges, length, end):
        self.edges.append(dict(edges))
        self.link.append(0)
        self.length.append(length)
        self.end.append(end)
        return len(self.edges) - 1

    def add(self, token):
        """Add a token at the end."""
        size = self.length[self.last] + 1
        new, at = self._state({}, size, size), self.last
        while at >= 0 and token not in self.edges[at]:
            self.edges[at][token] = new
            at = self.link[at]
        if at >= 0:
            there = self.edges[at][token]
            if self.length[there] != self.length[at] + 1:
                split = self._state(self.edges[there], self.length[at] + 1, self.end[there])
                self.link[split] = self.link[there]
                while at >= 0 and self.edges[at].get(token) == there:
                    self.edges[at][token] = split
                    at = self.link[at]
                self.link[there] = there = split
            self.link[new] = there
        self.last = new

    def move(self, state, matched, token):
        """Return where a match goes on with ``token``, and its length."""
        while state and token not in self.edges[state]:
            state = self.link[state]
            matched = self.length[state]
        return (self.edges[state][token], matched + 1) if token in self.edges[state] else (0, 0)


def by_automaton(text, least, predict):
    automaton, state, matched = Automaton(), 0, 0
    for token in text[:-1]:
        state, matched = automaton.move(state, matched, token)
        automaton.add(token)
    state, matched = automaton.move(state, matched, text[-1])
    if matched < least:
        return ()
    known = len(text) - 1
    while automaton.link[state] > 0 and predict > known - automaton.end[state]:
        state = automaton.link[state]
    return text[:-1][automaton.end[state] :][: predict - 1]


@given(texts, st.integers(1, 3), st.integers(1, 5))
def test_the_longest_match_is_the_automaton_s(text, least, predict):
    assert longest_match(text, least, predict) == by_automaton(text, least, predict)


def test_the_last_token_is_looked_up_and_never_copied():
    """The release has it not yet in the automaton: (2, 1, 3) of this text, and no fourth token."""
    assert longest_match((3, 2, 3, 3, 3, 3, 1, 2, 1, 3, 1), 1, 6) == (2, 1, 3)
    assert longest_match((1, 1), 1, 6) == ()
