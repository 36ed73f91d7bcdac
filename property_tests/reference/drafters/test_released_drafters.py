"""Drafters and length rules as papers' code has them, against the same stated again with other data structures."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Sampled, Task, generate, top_tokens
from reference.algorithms import adaedl, kangaroo, specdec_pp, svip
from reference.algorithms.redrafter import beam_search
from reference.algorithms.specexec import best_paths
from reference.drafters.longest_match import longest_match
from reference.drafters.recycled import recycling_drafter
from reference.drafters.suffix_counts import suffix_drafter
from reference.lengths.bandit import bandit
from reference.lengths.constant import never
from specverify.laws.tables import one_hot_rows, table_pair
from test_support.laws.rational import P, Q, always, law_of, project

texts = st.lists(st.integers(0, 2), min_size=1, max_size=14).map(tuple)


# SAM Decoding: the automaton


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


# SuffixDecoding: a trie of all suffixes of this request, and one of all responses


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


# Token Recycling: the adjacency matrix


def test_recycled_tokens_are_those_of_the_matrix_in_the_loop():
    template, width = ((0,), (1,), (0, 0), (0, 1)), 2
    target = one_hot_rows(table_pair("generic", 3, 3)[0])
    soft = table_pair("generic", 3, 3)[0]
    matrix, text = [[0] * width for _ in range(3)], (0, 1)
    drafter = recycling_drafter(template, width)
    state = drafter.init(text)
    for _ in range(6):
        nodes, fed = [(text[-1], ())], [()]
        for ranks in template:
            above = nodes[([(), *template]).index(ranks[:-1])]
            token = matrix[above[0]][ranks[-1]]
            nodes.append((token, (*above[1], token)))
            fed.append(nodes[-1][1])
        drafted = drafter.propose(None, state, text, 9, never)
        assert {*fed[1:]} == set(_paths(drafted))
        path = ()
        while (*path, answer := target(text + path).tolist().index(1)) in fed:
            path = (*path, answer)
        for token, walked in nodes:
            matrix[token] = list(top_tokens(soft(text + walked), width))
        start, text = len(text), (*text, *path, answer)
        state = drafter.observe(state, text, start, soft)
        assert all(list(row) == matrix[token] for token, row in state)


def _paths(draft):
    paths = {-1: ()}
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
        paths[node] = (*paths[parent], token)
    return [path for node, path in paths.items() if node >= 0]


# SpecExec and ReDrafter: every path at once


def chances(draft, prefix, depth):
    found = {(): Fraction(1)}
    for length in range(depth):
        for path in [path for path in found if len(path) == length]:
            for token, mass in enumerate(draft(prefix + path).tolist()):
                found[*path, token] = found[path] * mass
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_budget_buys_the_most_probable_paths(seed):
    draft = table_pair("generic", 3, seed)[1]
    every = chances(draft, (0,), 3)
    for budget in (1, 3, 6):
        bought = best_paths(draft, (0,), budget, 3)
        dearest = sorted((every[path] for path in every if path), reverse=True)[:budget]
        assert sorted((every[path] for path in bought), reverse=True) == dearest
        assert all(path[:-1] in [(), *bought] for path in bought)


@pytest.mark.parametrize("seed", range(4))
def test_beams_are_the_best_extensions_of_the_beams_before(seed):
    draft = table_pair("generic", 3, seed)[1]
    every = chances(draft, (0,), 3)
    kept = [()]
    for length in range(1, 4):
        grown = [path for path in every if len(path) == length and path[:-1] in kept]
        kept = sorted(grown, key=lambda path: -every[path])[:2]
        assert sorted(beam_search(draft, (0,), 2, length)) == sorted(kept)
    assert sorted(beam_search(draft, (0,), 99, 2)) == sorted(product(range(3), repeat=2))


# Lengths


def test_the_bandit_is_the_loop_with_running_means():
    """Steps below arms x tries are forced, then the best mean; the bonus is one number for all arms."""
    rule = bandit(3, 2, Fraction(1, 10))
    state, means, calls = rule.init, [0.0] * 3, [0] * 3
    for step in range(1, 20):
        if step < 3 * 2:
            gamma = (step - 1) % 3 + 1
        else:
            bonus = math.sqrt(6 * math.log(step) / sum(calls))
            scores = [mean + bonus for mean in means]
            gamma = scores.index(max(scores)) + 1
        planned = rule.plan(state, (0,))
        assert planned.gamma == gamma
        accepted = (step * 7) % (gamma + 1)
        earned = (accepted + 1) / (1 + gamma / 10)
        means[gamma - 1] = (means[gamma - 1] * calls[gamma - 1] + earned) / (calls[gamma - 1] + 1)
        calls[gamma - 1] += 1
        state = rule.update(planned.state, gamma, accepted)


def predicted_lengths(q, threshold, most):
    """Steps 1.1 to 1.4: the head is asked about the token fed last, and not at all in the first step."""

    def program(draws):
        cumulated, fed, drafted = Fraction(1), None, 0
        while drafted < most:
            token = draws.categorical(q, ("draft", drafted))
            drafted += 1
            cumulated *= 1 if drafted == 1 else q[fed]
            fed = token
            if 1 - cumulated > threshold:
                break
        return drafted

    return law_of(program)


@pytest.mark.parametrize("threshold", [Fraction(1, 3), Fraction(1, 2), Fraction(4, 5)])
def test_the_predicted_rejection_ends_the_draft_after_a_token_not_yet_judged(threshold):
    decoder = specdec_pp.build(Task(always(P), always(Q), horizon=5), threshold=threshold, gamma=4)
    drafts = law_of(lambda draws: decoder.propose(draws, decoder.init((0,))).tokens)
    assert project(drafts, len) == predicted_lengths(Q, threshold, 4)
    assert min(project(drafts, len)) == 2  # nothing is known after the first


@pytest.mark.parametrize(("row", "options", "limit"), [(svip, {"scale": 0.15}, None), (adaedl, {"scale": 0.2}, 1)])
def test_a_draft_of_high_entropy_is_kept_and_is_the_last(row, options, limit):
    for seed in range(6):
        task = Task(*table_pair("generic", 3, seed), horizon=5)
        threshold = 0.37 if limit is None else 0.57
        decoder = row.build(task, threshold=threshold, gamma=4, **options)
        for drafted in law_of(lambda draws, d=decoder: d.propose(draws, d.init((0,))).tokens):
            rows = [task.draft((0, *drafted[:i])) for i in range(len(drafted))]
            roots = [math.sqrt(options["scale"] * -math.fsum(float(m) * math.log(m) for m in row if m)) for row in rows]
            late = [root > threshold if limit is None else 1 - root < threshold for root in roots]
            assert late[:-1] == [False] * (len(late) - 1)
            assert late[-1] or len(drafted) == 4


def test_kangaroo_s_loop_drafts_past_the_first_unsure_token_and_no_further():
    for seed in range(6):
        task = Task(*table_pair("peaked", 3, seed), horizon=6)
        exit_row = [(a + 3 * b) / 4 for a, b in zip(task.target((0,)), task.draft((0,)), strict=True)]
        decoder = kangaroo.build(task, threshold=0.7, gamma=3, exit_layer=1, layers=4)
        drafted, text, score = [], (0,), None
        for step in range(4):
            if step == 3 or (step > 0 and score < 0.7):
                break
            exit_row = [(a + 3 * b) / 4 for a, b in zip(task.target(text), task.draft(text), strict=True)]
            score = max(exit_row)
            drafted.append(exit_row.index(score))
            text = (*text, drafted[-1])
        assert decoder.propose(None, decoder.init((0,))).tokens == tuple(drafted)
        assert generate(decoder, (0,), Sampled(0)).tokens == _greedy_text(task)


def _greedy_text(task):
    text = (0,)
    while len(text) <= task.horizon:
        row = task.target(text).tolist()
        text = (*text, row.index(max(row)))
    return text[1:]
