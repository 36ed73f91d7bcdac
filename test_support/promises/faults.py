"""Texts with reported values, right and wrong, for tests of promises in process, as samplers and over HTTP."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PIECES = ("a", "bc", " d", "e", "fg", "h", "i ", "j")


def text_of(new):
    return "".join(PIECES[token % len(PIECES)] for token in new)


class Text(NamedTuple):
    """One decoded text, whose values a planted fault may change."""

    tokens: list
    p: list
    """The rows that the tokens were drawn from, an array ``[vocabulary]`` each."""
    q: list
    """The draft model's rows at the same places."""
    row: int
    """Its place in the batch."""

    @property
    def rejected(self):
        """Return whether the greedy draft of the first position was rejected."""
        return self.tokens[0] != self.draft(0)

    def draft(self, place):
        """Return the greedy draft of a position."""
        return int(np.argmax(self.q[place]))


def log(mass):
    """Return the logarithm of a probability, -inf for 0."""
    return float(np.log(mass)) if mass > 0 else -np.inf


def logs(text, rows=None):
    return [log(row[token]) for row, token in zip(rows or text.p, text.tokens, strict=True)]


def lists(text, keep=slice(2), rows=None):
    return [
        [(int(token), log(told[token])) for token in sorted(range(len(row)), key=lambda each: -row[each])[keep]]
        for row, told in zip(text.p, rows or text.p, strict=True)
    ]


def pieces(text):
    return [PIECES[token % len(PIECES)] for token in text.tokens]


def sent(text):
    """Return the piece of the first draft where it was rejected."""
    return [PIECES[text.draft(0) % len(PIECES)]] if text.rejected else []


FAULTS = {
    "logprobs": {
        "row of the first": lambda text: logs(text, [text.p[0]] * len(text.p)),
        "of the draft": lambda text: logs(text, text.q),
        "accepted are certain": lambda text: [
            0.0 if token == text.draft(place) else value
            for place, (token, value) in enumerate(zip(text.tokens, logs(text), strict=True))
        ],
        "last has none": lambda text: logs(text)[: -1 if text.tokens[-1] == 1 else None],
    },
    "top_logprobs": {
        "least first": lambda text: [each[::-1] for each in lists(text)],
        "likeliest left out": lambda text: lists(text, slice(1, 3)),
        "list of the draft": lambda text: lists(text, rows=text.q),
        "list of the first place": lambda text: [lists(text)[0]] * len(text.tokens),
    },
    "text": {
        "end lost": lambda text: text_of(text.tokens)[:-1],
        "draft in the text": lambda text: "".join(sent(text)) + text_of(text.tokens),
        "letter lost": lambda text: text_of(text.tokens).replace("b", ""),
        "piece twice": lambda text: text_of((*text.tokens, *text.tokens[text.tokens[0] != 1 :][-1:])),
    },
    "chunks": {
        "chunk lost": lambda text: pieces(text)[:-1],
        "chunk twice": lambda text: [*pieces(text), pieces(text)[-1]],
        "chunks swapped": lambda text: pieces(text)[::-1],
        "draft sent": lambda text: [*sent(text), *pieces(text)],
    },
    "finish_reason": {
        "always stop": lambda text: "stop",
        "stop by the last draft": lambda text: "stop" if text.tokens[-1] == text.draft(-1) else "length",
        "reason of another row": lambda text: "stop" if text.row == 1 else "length",
        "reason lost": lambda text: "abort" if text.tokens[0] == 1 else "length",
    },
    "usage": {
        "drafts counted": lambda text: {"completion_tokens": len(text.tokens) + 1},
        "prompt counted": lambda text: {"completion_tokens": len(text.tokens) + 2},
        "bonus not counted": lambda text: {"completion_tokens": len(text.tokens) - 1},
        "rejected counted": lambda text: {"completion_tokens": len(text.tokens) + int(text.rejected)},
    },
}
"""Value -> four faults, each the wrong value of a text."""


def values_of(text, name="", fault=""):
    """Return the reported values of a text; ``fault`` changes the value called ``name``."""
    values = {
        "logprobs": logs(text),
        "top_logprobs": lists(text),
        "text": text_of(text.tokens),
        "chunks": pieces(text),
        "finish_reason": "length",
        "usage": {"completion_tokens": len(text.tokens)},
    }
    return values | ({name: FAULTS[name][fault](text)} if fault else {})
