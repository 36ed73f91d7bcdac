"""Test vectors ``stop``: where a text ends, which must not depend on where its rounds end.

``rounds`` are the tokens that the verifier emits, round by round. The output must be that of plain decoding, token by
token: cut at the first end token or stop sequence, and at ``max_new``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from specverify.reference import Tokens, commit
from specverify.vectors.judging import judged_exactly
from specverify.vectors.vector import REFUSED, Answer, Kind, Vector, by_convention

KIND = "stop"
ENDS, SEQUENCES = "end tokens", "stop sequences"


def committed(inputs: Mapping[str, Any]) -> Answer:
    """Return the text that ``reference`` commits for the rounds in ``inputs``, and whether it has ended.

    The text ends at an end token or at the length limit of the inputs. Stop sequences in the inputs are ignored.
    """
    remaining: int = inputs["max_new"]
    new: Tokens = ()
    for tokens in inputs["rounds"]:
        if remaining:
            more, remaining = commit(tuple(tokens), remaining, tuple(inputs["eos"]))
            new += more
    return {"tokens": list(new), "finished": remaining == 0}


def token_by_token(inputs: Mapping[str, Any], *, kept: bool) -> Answer:
    """Return the output of plain decoding, which emits the tokens of all rounds in ``inputs`` one by one.

    The output ends at a stop sequence, at the length limit of the inputs, or at an end token if the text is then longer
    than ``min_new``. With ``kept`` the output includes the end token or stop sequence.
    """
    text: Tokens = ()
    for token in [token for tokens in inputs["rounds"] for token in tokens]:
        if len(text) == inputs["max_new"]:
            break
        text += (token,)
        if token in inputs["eos"] and len(text) > inputs.get("min_new", 0):
            return {"tokens": list(text if kept else text[:-1]), "finished": True}
        ending = next((end for end in map(tuple, inputs["stop"]) if text[-len(end) :] == end), None)
        if ending:
            return {"tokens": list(text if kept else text[: -len(ending)]), "finished": True}
    return {"tokens": list(text), "finished": len(text) == inputs["max_new"]}


def vectors() -> tuple[Vector, ...]:
    """Return all test vectors of the kind ``stop``."""
    return (*_ends(), *_no_end(), *_least(), *_sequences())


def _ends() -> Iterator[Vector]:
    """Yield vectors with an end token at every position of every round; the length limit lies before or after it."""
    text = (3, 1, 4, 1, 5, 2, 6)
    for cuts in ((3, 6), (2, 4, 6), (1, 5), (7,)):
        rounds = _cut(text, cuts)
        for eos in ((4,), (5,), (2, 5), (6,), (3,)):
            for most in (3, 5, 7, 9):
                inputs = {"rounds": rounds, "eos": list(eos), "stop": [], "max_new": most}
                kept = committed(inputs)
                assert kept == token_by_token(inputs, kept=True), f"{inputs}: two ways to the same text differ"
                name = f"eos{_word(eos)}-cut{_word(cuts)}-max{most}"
                answers = {"end-kept": kept, "end-dropped": token_by_token(inputs, kept=False)}
                notes = ("end-in-a-block", "end-of-the-target", "end-and-length")
                yield by_convention(f"end/{name}", KIND, inputs, answers, ENDS, notes=notes)


def _no_end() -> Iterator[Vector]:
    """Yield vectors without an end token, so that only the length limit ends the text.

    Token 0 is an ordinary token in them.
    """
    for cuts in ((3, 6), (1, 2, 6)):
        for most in (1, 4, 6):
            inputs = {"rounds": _cut((0, 0, 1, 0, 2, 0), cuts), "eos": [], "stop": [], "max_new": most}
            answers = {"end-kept": committed(inputs)}
            name = f"end/none-cut{_word(cuts)}-max{most}"
            yield by_convention(name, KIND, inputs, answers, ENDS, notes=("end-and-length",))


def _least() -> Iterator[Vector]:
    """Yield vectors with an end token before the minimum length. This length counts tokens, not rounds."""
    for cuts in ((3, 6), (1, 2, 6)):
        for least in (2, 3, 4):
            inputs = {"rounds": _cut((1, 2, 0, 1, 0, 1), cuts), "eos": [2], "stop": [], "max_new": 6, "min_new": least}
            answers = {"end-does-not-count": token_by_token(inputs, kept=True), "end-is-refused": REFUSED}
            yield by_convention(
                f"end/least{least}-cut{_word(cuts)}", KIND, inputs, answers, ENDS, notes=("least-length",)
            )


def _sequences() -> Iterator[Vector]:
    """Yield vectors with stop sequences at every offset in the rounds, also across rounds and near the length limit."""
    text = (1, 2, 1, 2, 3, 1, 3)
    for cuts in ((3, 6), (2, 4, 6), (1, 4), (7,)):
        for stop in (((2, 3),), ((1, 2, 3),), ((3, 1), (3,)), ((2, 1, 2, 3, 1),), ((4,),)):
            for most in (4, 7):
                inputs = {
                    "rounds": _cut(text, cuts),
                    "eos": [],
                    "stop": [list(end) for end in stop],
                    "max_new": most,
                }
                answers = {
                    "stop-kept": token_by_token(inputs, kept=True),
                    "stop-dropped": token_by_token(inputs, kept=False),
                }
                name = f"sequence/{'+'.join(map(_word, stop))}-cut{_word(cuts)}-max{most}"
                yield by_convention(
                    name, KIND, inputs, answers, SEQUENCES, notes=("stop-across-rounds", "end-and-length")
                )


def _cut(text: Tokens, cuts: Sequence[int]) -> list[list[int]]:
    """Split ``text`` into rounds that end at the positions ``cuts``.

    The tokens after the last position form one more round.
    """
    edges = [0, *cuts, *([len(text)] if cuts[-1] < len(text) else [])]
    return [list(text[low:high]) for low, high in pairwise(edges)]


def _word(tokens: Sequence[int]) -> str:
    return "".join(map(str, tokens))


STOP = Kind(
    KIND,
    "where a text ends, for any division into rounds",
    vectors,
    {"tokens": "the output", "finished": "true if the text has ended, so that no round follows"},
    judged_exactly,
)
