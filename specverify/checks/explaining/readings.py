"""A reading: a path described as rounds of speculative decoding, and the models that show which role a draw has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from specverify.checks.explaining.engine_paths import OF_A_COIN, PathDraw, draws_of
from specverify.checks.explaining.round_rules import Row
from specverify.laws.draws import Decision
from specverify.reference import LanguageModel, Tokens

OF_EACH_DRAW = 1.0
"""A reading may cost this number times the draws of its path."""
WIDE = 3.0
"""The limit for each draw, in place of ``OF_EACH_DRAW``, for programs in which no number of any row may be right."""
UNDRAWN_WORDS = "chosen without a draw"
"""The beginning of the words about a token that no draw produced although several tokens are possible."""
ROLES: Mapping[str, frozenset[str]] = {
    "draft": frozenset({"draft"}),
    "accept": frozenset({"test"}),
    "residual": frozenset({"replace"}),
    "bonus": frozenset({"bonus"}),
}
"""Label of a draw of a decoder -> the roles that the draw can have."""

UNDRAFTED = "next token "
"""The beginning of the words for the token of a round without drafts."""


class Models(NamedTuple):
    """The models and queries with which the draws of a path are assigned to rounds.

    ``p`` is the target. The path begins after ``prompt`` and has at most ``horizon`` new tokens.
    """

    p: LanguageModel
    q: LanguageModel | None
    """The draft model; None if unknown: a draft is then any token drawn before a test."""
    prompt: Tokens
    horizon: int
    asked: tuple[Tokens, ...] = ()
    """The texts with which a model was queried; a program may have used their rows wrongly."""
    queries: tuple[tuple[int, str, Tokens], ...] = ()
    """The model queries of the path as (number of earlier draws, model name, queried text)."""
    roles: Mapping[str, frozenset[str]] = {}
    """Program line -> the roles that its draws have on most paths."""
    guesses: bool = True
    """Whether a draft may come without a draw."""
    open_end: bool = True
    """Whether the last token of the path may be a draw that nothing reads."""
    learned: Mapping[Tokens, Row] = {}
    """Text -> the row that drafts after it are drawn from on most paths, if the draft model is unknown."""
    greedy: bool = False
    """Whether a draft may be the argmax of q, without a draw."""
    unshown: bool = True
    """Whether a replacement beside its draft is read too where neither a draw nor the text shows it."""
    of_each_draw: float = OF_EACH_DRAW
    """A reading may cost this number times the draws of the path."""
    emitted: LanguageModel | None = None
    """The law of the program's next token after a text; None if unknown."""
    last_draws: Mapping[tuple[str, tuple[int, ...]], frozenset[int]] = {}
    """(place, outcomes of the earlier draws) of a draw that is the last one on each path -> its outcomes."""
    eos: int | None = None
    """The end-of-sequence token, at which the path may end before its horizon."""
    upside_down: bool = False
    """Whether a draft is accepted if u is above a bound, as by ``u > 1 - p/q``, and not below it."""


class ReadRound(NamedTuple):
    """One round of a path, with the role and the probability of each draw.

    ``text`` is the text before the round, ``drafts`` are the drafts of the round, and ``fault`` is the first deviation
    from the rule of speculative sampling, in words, or "".
    """

    text: Tokens
    drafts: Tokens
    q: tuple[Row, ...]
    """The rows that the drafts are drawn from."""
    accept: tuple[float, ...]
    """P(draft i is accepted), for each tested draft."""
    end: tuple[str, Row] = ("", ())
    """``replace``, ``bonus`` or ``plain``, and the row that the last token is drawn from."""
    places: tuple[tuple[str, int, str], ...] = ()
    """(role, position, program line) of each draw."""
    fault: str = ""
    structure: str = ""
    """A step that no right round has, such as an untested draft or a test after a rejection; or ""."""
    dropped: int | None = None
    """A token that was drafted and then neither tested nor emitted; None if there is none."""
    shown: bool = True
    """Whether a draw or a token of the text shows the step ``structure``."""
    begin: int = 0
    """The number of draws of the path before the round; draws with a certain outcome do not count."""


class Reading(NamedTuple):
    """A path described as rounds of speculative decoding: one of the possible ways to give each draw a role.

    ``words`` describe each round. ``cost`` is the sum of the costs of all deviations from the rule and of all unusual
    steps: the best reading has the lowest cost.
    """

    words: tuple[str, ...]
    fault: str
    """The first deviation from the rule, or ""."""
    used: tuple[Tokens, ...]
    """The texts after which the rows of p and q decide the rounds."""
    cost: float
    rounds: tuple[ReadRound, ...] = ()


def items_of_decisions(decisions: Sequence[Decision]) -> list[PathDraw]:
    """Return the decisions of a decoder that labels its draws, as path draws; those labelled "accept" become coins.

    A comparison of a uniform with a bound is a coin too: a verifier draws by itself, and only its drafts are labelled.
    """
    return [_labelled(item) for item in draws_of(decisions)]


def _labelled(item: PathDraw) -> PathDraw:
    """Return a draw of a decoder with the kind that its label means: a coin for "accept", an outcome for a lookup."""
    if item.call == "accept" and len(item.pmf) == OF_A_COIN:
        low, high = (0.0, item.pmf[0]) if item.outcome == 0 else (item.pmf[0], 1.0)
        return PathDraw(item.call, "", low, high, None, item.before)
    token, masses = item.looked_up
    if masses:
        return PathDraw(item.call, item.place, 0.0, masses[token], token, item.before, masses)
    return item
