"""Token Recycling against the adjacency matrix in a loop."""

from __future__ import annotations

from reference import top_tokens
from reference.drafters.recycled import recycling_drafter
from reference.lengths.constant import never
from specverify.laws.tables import one_hot_rows, table_pair


def _paths(draft):
    paths = {-1: ()}
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
        paths[node] = (*paths[parent], token)
    return [path for node, path in paths.items() if node >= 0]


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
