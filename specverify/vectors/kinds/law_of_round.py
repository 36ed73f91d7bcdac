"""Test vectors ``law_of_round``: the exact law of the tokens of one round, and of whole texts.

A model is a table of pmfs; the input ``context`` states how a text selects a row (``json_models.CONTEXTS``). For every
algorithm there is a vector with the law of its first round. For every lossless decoder there is a vector with the law
of its text over several rounds, which is the target's own law.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.laws.enumeration import decoder_law, program_law
from specverify.laws.law import target_law
from specverify.reference import ALGORITHMS, Algorithm, Claim, Task, Tokens
from specverify.reference.models import draft_model
from specverify.vectors.json_models import CONTEXTS, row_pairs, rows_of
from specverify.vectors.judging import equal_laws, judged_by, rows_by_tokens
from specverify.vectors.sample_counts import judged_counts
from specverify.vectors.vector import Answer, Judged, Kind, Outcome, Vector, text, valid
from specverify.vectors.warped_models import processed

KIND = "law_of_round"
LOSSLESS = "any lossless decoder"
PROCESSED = "sampling parameters"
ROUND, TEXT = "round", "text"


class RoundCase(NamedTuple):
    """The models, prompt and limits of a vector.

    ``shape`` is the kind of weights of p and q, a key of ``json_models.ROWS``, and ``vocabulary`` their number of
    tokens; ``context`` is the part of the text that selects their row. ``horizon`` is the largest number of new tokens,
    and ``eos`` are the end tokens.
    """

    shape: str
    vocabulary: int
    prompt: Tokens
    horizon: int
    eos: Tokens = ()
    context: str = "last token"

    @property
    def name(self) -> str:
        """Return the name of the case, one word made of its fields; it is a part of the id of a vector."""
        end = f"-e{''.join(map(str, self.eos))}" if self.eos else ""
        far = "" if self.context == "last token" else "-all"
        return f"{self.shape}-v{self.vocabulary}-p{''.join(map(str, self.prompt))}-h{self.horizon}{end}{far}"


ROUNDS = (
    RoundCase("generic", 2, (0, 1, 0), 5),
    RoundCase("zeros", 3, (0, 1, 0), 4),
    RoundCase("untied", 3, (0, 2, 0), 4),
    RoundCase("generic", 3, (1, 2), 4),
)
BIASED_TEXTS = (RoundCase("generic", 2, (0, 1), 5), RoundCase("generic", 3, (0, 1, 0), 3))
"""Cases of several rounds for algorithms that are not lossless."""
SHAPES = ("generic", "peaked", "zeros", "disjoint", "equal", "point_target", "point_draft", "ties")
TEXTS = (
    *(RoundCase(shape, 2, (0, 1, 0), 4) for shape in SHAPES),
    *(RoundCase(shape, 3, prompt, 3) for shape in SHAPES for prompt in ((0,), (0, 2, 0))),
    *(RoundCase(shape, 3, (0, 1), 4, eos) for shape in ("generic", "peaked", "equal") for eos in ((2,), (0, 1))),
    *(RoundCase(shape, 2, (0,), horizon) for shape in ("generic", "zeros") for horizon in (1, 2, 6)),
    *(RoundCase("untied", 3, (prompt,), horizon) for prompt, horizon in ((0, 4), (2, 5))),
    RoundCase("untied", 4, (1, 0), 3),
    *(RoundCase(shape, 3, (0, 1), 4, context="all tokens") for shape in ("generic", "peaked", "untied")),
    *(RoundCase(shape, 2, (0, 1, 1, 0, 1), 5, context="all tokens") for shape in ("generic", "untied")),
    *(RoundCase(shape, 3, (0, 1, 2, 1, 0), 3, context="all tokens") for shape in ("generic", "untied")),
)


ROWS_OF_ALL = 7
"""Rows of a table whose row depends on all tokens: a prime, so that the position of every token has an effect."""
UNTIED = RoundCase("untied", 3, (0, 1), 3)
PARAMETERS: dict[str, dict[str, Any]] = {
    "cold": {"temperature": "1/2"},
    "greedy": {"temperature": "0"},
    "top-k": {"top_k": 2},
    "top-p": {"top_p": "3/5"},
    "min-p": {"min_p": "11/20"},
    "cold-top-k": {"temperature": "1/2", "top_k": 2},
    "cold-top-p": {"temperature": "1/2", "top_p": "3/4"},
    "presence": {"presence": "1/2"},
    "frequency": {"frequency": "1/3"},
    "penalties": {"presence": "1/2", "frequency": "1/3"},
    "bias": {"bias": {"0": "5"}},
    "bad-words": {"bad_words": [[1, 2], [2, 0, 1], [0, 0]]},
    "allowed": {"allowed": [0, 2], "vocabulary": 3},
    "min-new": {"min_new": 3},
    "grammar": {"grammar": [[0, 0, 1], [0, 1, 0], [1, 2, 2], [1, 1, 0], [2, 0, -1], [2, 1, 2]], "vocabulary": 3},
    "grammar-after-1": {
        "grammar": [[0, 0, 1], [0, 1, 0], [1, 2, 2], [1, 1, 0], [2, 0, -1], [2, 1, 2]],
        "vocabulary": 3,
        "trigger": 1,
    },
    "short-grammar": {"grammar": [[0, 0, 1], [0, 1, 1], [1, 2, -1]], "vocabulary": 3},
}
"""Name -> sampling parameters in the form of ``processed``. A grammar is a list of (state, token, next state) that
starts in state 0 at the first new token, or after the first ``trigger`` among the new tokens."""


NOTES_OF = {"min_new": "least-length", "grammar": "grammar"}
"""Sampling parameter -> the note of its vectors, if it is not ``parameters``."""


def vectors() -> tuple[Vector, ...]:
    """Return all test vectors of the kind ``law_of_round``."""
    return (*map(_of_text, TEXTS), *_of_parameters(), *(vector for row in ALGORITHMS for vector in _of_algorithm(row)))


def task_of(inputs: Mapping[str, Any]) -> Task:
    """Return the decoding task with the target model, draft model, end tokens and length limit of a vector's inputs."""
    target, draft = (CONTEXTS[inputs["context"]](inputs[name]) for name in ("target", "draft"))
    return Task(target, draft, eos=tuple(inputs["eos"]), horizon=inputs["horizon"])


def law_data(law: Mapping[Tokens, Any]) -> Answer:
    """Return a law (tokens -> probability) as an answer: its rows in ascending order of tokens, and the mean length."""
    mean = sum(len(tokens) * mass for tokens, mass in law.items())
    rows = [{"tokens": list(tokens), "probability": text(law[tokens])} for tokens in sorted(law)]
    return {"law": rows, "expected_tokens": text(mean)}


def options_data(value: Any) -> Any:
    """Return ``value``, an option of an algorithm, as JSON data: rationals become strings, tuples lists."""
    if isinstance(value, Fraction):
        return text(value)
    if isinstance(value, Mapping):
        return {name: options_data(item) for name, item in value.items()}
    return list(map(options_data, value)) if isinstance(value, (tuple, list, frozenset)) else value


def _inputs(case: RoundCase, what: str) -> dict[str, Any]:
    number = case.vocabulary if case.context == "last token" else ROWS_OF_ALL
    target, draft = row_pairs(case.shape, case.vocabulary, number, KIND)
    return {
        "what": what,
        "context": case.context,
        "target": rows_of(target),
        "draft": rows_of(draft),
        "prompt": list(case.prompt),
        "horizon": case.horizon,
        "eos": list(case.eos),
    }


def _of_text(case: RoundCase) -> Vector:
    inputs = _inputs(case, TEXT)
    answer = law_data(target_law(task_of(inputs), case.prompt))
    return valid(f"text/{case.name}", KIND, inputs, answer, LOSSLESS, notes=("several-rounds", "round", "proposal"))


def _of_parameters() -> Iterator[Vector]:
    """Yield vectors of texts under sampling parameters; no row has ties, and no probability equals a threshold."""
    for name, parameters in PARAMETERS.items():
        for case in (UNTIED, UNTIED._replace(horizon=4, prompt=(0,))):
            case = case._replace(eos=(1,)) if "min_new" in parameters else case  # noqa: PLW2901 - the same, ended
            inputs = _inputs(case, TEXT) | {"parameters": parameters}
            task = task_of(inputs)
            model = processed(task.target, parameters, case.prompt, case.eos)
            answer = law_data(target_law(task._replace(target=model), case.prompt))
            notes = [note for word, note in NOTES_OF.items() if word in parameters] or ["parameters"]
            yield valid(f"{TEXT}/{name}-{case.name}", KIND, inputs, answer, PROCESSED, notes=notes)


def _of_algorithm(row: Algorithm) -> Iterator[Vector]:
    asked = [(ROUND, case) for case in ROUNDS]
    if Claim.LOSSLESS not in row.claims:
        asked += [(TEXT, case) for case in BIASED_TEXTS]
    for what, case in asked:
        for number, options in enumerate(row.examples):
            inputs = _inputs(case, what) | {"algorithm": row.name, "options": options_data(options)}
            law = LAWS[what](row, options, task_of(inputs), case.prompt)
            name = f"{row.name}/{what}-{case.name}-o{number}"
            yield valid(name, KIND, inputs, law_data(law), row.name, notes=("round",))


def round_law(decoder: Any, prompt: Tokens) -> Mapping[Tokens, Any]:
    """Return the law of the tokens of a decoder's first round after ``prompt``: tokens -> probability."""
    state = decoder.init(prompt)
    return program_law(lambda draws: decoder.step(draws, state)[1].tokens).probabilities


def _round_law(row: Algorithm, options: Any, task: Task, prompt: Tokens) -> Mapping[Tokens, Any]:
    return round_law(row.build(task._replace(draft=draft_model(task)), **options), prompt)


def _text_law(row: Algorithm, options: Any, task: Task, prompt: Tokens) -> Mapping[Tokens, Any]:
    return decoder_law(row.build(task, **options), prompt).probabilities


LAWS = {ROUND: _round_law, TEXT: _text_law}
"""``round`` or ``text`` -> the function that computes the law of a round or of a whole text."""


def judge(vector: Vector, answer: Answer) -> Judged:
    """Grade an answer against the law in ``vector``: a law must be equal to it, and counts of samples must fit it."""
    return judged_by(_same, vector, answer)


def _same(expected: Answer, answer: Answer) -> Judged:
    wanted = {tuple(item["tokens"]): item["probability"] for item in expected["law"]}
    if "counts" in answer:
        return judged_counts({tokens: Fraction(mass) for tokens, mass in wanted.items()}, answer["counts"])
    if "law" not in answer:
        return Judged(Outcome.NOT_ANSWERED, "the answer has neither law nor counts")
    result = rows_by_tokens(answer["law"], "probability")
    if result is None:
        said = "the law is no list of different {tokens, probability}"
        return Judged(Outcome.FAILED, said)
    same = equal_laws(wanted, result, decisions=3 * max(map(len, wanted)))
    if same.outcome is not Outcome.PASSED or answer.get("expected_tokens") is None:
        return same
    mean = equal_laws({"mean": expected["expected_tokens"]}, {"mean": answer["expected_tokens"]}, decisions=24)
    return same if mean.outcome is Outcome.PASSED else Judged(mean.outcome, "expected_tokens does not fit the law")


LAW = Kind(
    KIND,
    "the law of the tokens of a round, or of a whole text",
    vectors,
    {
        "law": "a list of {tokens, probability}; probabilities are rationals as strings, or float64 numbers",
        "counts": "instead of the law, a list of {tokens, count} of independent samples",
        "expected_tokens": "the mean number of tokens, if the program computes it",
    },
    judge,
)
