"""A node of a tree that is found by the last tokens of its path, and not by the whole path."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import check_engine, check_verifier

LEVELS = 4


def verifier(seen):
    """Return a verifier of trees that finds a node by the last ``seen`` tokens of its path."""

    def verify(p, q, parents, tokens):
        paths = [()]
        for parent, token in zip(parents, tokens, strict=True):
            paths.append((*paths[parent + 1], int(token)))
        at, path = 0, ()
        while True:
            token = int(np.random.choice(p.shape[1], p=p[at]))
            path += (token,)
            found = [node for node, other in enumerate(paths) if len(other) == len(path)]
            found = [node for node in found if paths[node][-seen:] == path[-seen:]]
            if not found:
                return list(path)
            at = found[0]

    return verify


def engine(seen):
    """Return the factory of an engine that drafts two chains, and finds p by the last ``seen`` tokens of a path."""

    def make(scenario):
        def chains(text):
            q = scenario.draft(text)
            for token in sorted((token for token in range(len(q)) if q[token]), key=lambda token: -q[token])[:2]:
                chain = (token,)
                while len(chain) < LEVELS:
                    chain += (int(np.argmax(scenario.draft((*text, *chain)))),)
                yield chain

        def decode(prompt):
            text, end = tuple(prompt), len(prompt) + scenario.horizon
            while len(text) < end:
                rows = {(): scenario.target(text)}
                for chain in chains(text):
                    for level in range(1, LEVELS + 1):
                        rows.setdefault((level, *chain[:level][-seen:]), scenario.target((*text, *chain[:level])))
                new, p = (), rows[()]
                while p is not None and len(text) + len(new) < end:
                    new += tuple(random.choices(range(len(p)), p))
                    p = rows.get((len(new), *new[-seen:]))
                text += new
            return text[len(prompt) :]

        return decode

    return make


@pytest.mark.usefixtures("unexplained", "named_checks_alone")
@pytest.mark.parametrize(("seen", "status"), [(LEVELS, Status.HOLDS), (3, Status.REFUTED), (2, Status.REFUTED)])
@pytest.mark.parametrize("kind", ["verifier", "engine"])
def test_only_the_whole_path_tells_nodes_apart(kind, seen, status):
    how = {"quick": True, "checks": ["law_is_target"], "on_fail": None}
    if kind == "verifier":
        (verdict,) = check_verifier(verifier(seen), form="tree", drafts="top_k", **how)
    else:
        (verdict,) = check_engine(engine(seen), **how)
    assert verdict.status is status
