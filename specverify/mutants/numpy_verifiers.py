"""Correct verifiers in NumPy, of one row, of batches and of logits, and the functions that make mutants of them.

A mutant verifies a row by ``decided`` with another ratio, other weights or other random numbers. ``p`` and ``q`` are
pmfs of the target and the draft model, ``draft_tokens`` are the drafts, and ``rng`` is a generator of NumPy. A verifier
returns the accepted drafts and one more token, for a batch a list of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np

from specverify.laws.enumeration import whole_run
from specverify.mutants.mutant import Mutant
from specverify.reference import Draws, LanguageModel, Task, Tokens, warped
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.forms import BATCHED, LOGITS, ROW, Form
from specverify.subjects.given_calls import calls_subject
from specverify.subjects.hard_calls import hard_calls
from specverify.subjects.logits_verifier import PARAMETERS, Setting
from specverify.subjects.subject import SampledSetting, Subject, Variant
from specverify.subjects.verifier import variant_at, verifier_subject
from specverify.subjects.warped_tasks import Processed

BARE = ("p", "q", "draft_tokens")
"""Parameter names of a verifier of one row."""
TEXT_GAMMA = 2
"""Number of drafts of a round when a text is decoded for a test vector."""
TRUNCATED: Setting = (("temperature", 1.5), ("top_k", 2), ("top_p", 0.8))
"""A setting in which every processor except min-p changes the pmf."""

Ratio = Callable[[Any, Any, int], Any]
"""``ratio(p, q, token)``: the acceptance threshold; the draft is accepted if its uniform is below."""
ReplacementWeights = Callable[[Any, Any], Any]
"""``weights(p, q)``: the unnormalised law of the replacement, ``[vocabulary]``."""


def ratio(p: Any, q: Any, token: int) -> Any:
    """Return p[token] / q[token], the acceptance ratio of a drafted token."""
    return p[token] / q[token]


def excess(p: Any, q: Any) -> Any:
    """Return ``(p - q)+``."""
    return np.maximum(p - q, 0)


def owed(p: Any, q: Any) -> Any:
    """Return the weights of a replacement: ``(p - q)+``, or p if rounding leaves no positive entry."""
    result = excess(p, q)
    return result if result.any() else p


def drawn(rng: Any, weights: Any) -> int:
    """Return a token drawn by ``rng`` in proportion to ``weights``."""
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def decided(
    rng: Any, p: Any, q: Any, drafts: Sequence[int], accept: Ratio = ratio, weights: ReplacementWeights = owed
) -> list[int]:
    """Verify one row by speculative sampling; return the accepted drafts and one more token.

    ``p`` has one row more than ``q``. ``accept(p, q, token)`` is the acceptance ratio, and ``weights(p, q)`` the
    weights of a replacement. ``rng`` makes all random choices.
    """
    for i, token in enumerate(drafts):
        if not rng.random() < accept(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, weights(p[i], q[i]))]
    return [*drafts, drawn(rng, p[len(drafts)])]


def one_row(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Verify one request by speculative sampling, with p ``[gamma + 1, V]`` and q ``[gamma, V]``."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


def batch(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Verify a batch by speculative sampling, row by row: p ``[rows, gamma + 1, V]``, q ``[rows, gamma, V]``."""
    rng = np.random.default_rng()
    return [decided(rng, *row) for row in zip(p, q, draft_tokens.tolist(), strict=True)]


def ragged(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Verify a batch by speculative sampling.

    Row r has ``lengths[r]`` drafts, and the rest of its arrays is padding.
    """
    rng = np.random.default_rng()
    return [decided(rng, p[row], q[row], draft_tokens[row, :n].tolist()) for row, n in enumerate(lengths)]


def softmax_rows(logits: Any, temperature: float = 1.0) -> Any:
    """Return the softmax of logits / temperature for rows ``[rows, vocabulary]``; temperature 0 gives point masses."""
    if temperature == 0:
        return np.eye(logits.shape[1])[logits.argmax(-1)]
    weights = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
    return weights / weights.sum(-1, keepdims=True)


def likeliest(rows: Any, top_k: float) -> Any:
    """Return each row restricted to its ``top_k`` most probable tokens and renormalised."""
    return restricted(rows, rows >= np.sort(rows, axis=-1)[:, ::-1][:, [int(top_k) - 1]])


def nucleus(rows: Any, top_p: float) -> Any:
    """Return a mask ``[rows, vocabulary]`` of the tokens that top-p keeps in each row.

    Top-p keeps the most probable tokens, as few as have a total probability of at least ``top_p``.
    """
    order = (-rows).argsort(axis=-1)
    ranked = np.take_along_axis(rows, order, -1)
    mask = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(mask, order, ranked.cumsum(-1) - ranked < top_p, -1)
    return mask


def restricted(rows: Any, mask: Any) -> Any:
    """Return the rows with the tokens outside ``mask`` set to 0, renormalised."""
    return rows * mask / (rows * mask).sum(-1, keepdims=True)


def processed_rows(logits: Any, temperature: float, top_k: float, top_p: float, min_p: float) -> Any:
    """Return the pmfs of rows of logits after temperature, top-k, top-p and min-p."""
    rows = likeliest(softmax_rows(logits, temperature), top_k)
    rows = restricted(rows, nucleus(rows, top_p))
    return restricted(rows, rows >= rows.max(-1, keepdims=True) * min_p)


def decided_by_rows(rows: Callable[..., tuple[Any, Any]]) -> BareVerifier:
    """Return a verifier of logits: speculative sampling with the p and q that the decorated function ``rows`` computes.

    ``rows(target_logits, draft_logits, temperature, top_k, top_p, min_p)`` returns p and q, each ``[rows, V]``.
    """

    def verify(
        target_logits: Any,
        draft_logits: Any,
        draft_tokens: Any,
        temperature: float,
        top_k: float,
        top_p: float,
        min_p: float,
    ) -> list[int]:
        p, q = rows(target_logits, draft_logits, temperature, top_k, top_p, min_p)
        return decided(np.random.default_rng(), p, q, draft_tokens.tolist())

    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(verify, attribute, getattr(rows, attribute))
    return verify


@decided_by_rows
def of_logits(target_logits: Any, draft_logits: Any, *processing: float) -> tuple[Any, Any]:
    """Return p and q computed from logits with the same ``processing``: temperature, top-k, top-p and min-p."""
    return processed_rows(target_logits, *processing), processed_rows(draft_logits, *processing)


def in_company(verify: BareVerifier, name: str, gammas: tuple[int, ...]) -> Subject:
    """Return the subject of a verifier of batches, examined only by calls that verify several random rows.

    ``gammas`` are the numbers of drafts with which ``verify`` is examined.
    """
    subject = verifier_subject(verify, name, gammas, BATCHED)
    return subject.with_situations(Variant, tuple(variant for variant in subject.variants if variant.joint))


def at_large(verify: BareVerifier, name: str, gammas: tuple[int, ...]) -> Subject:
    """Return the subject of ``verify``, examined only by the calls of ``hard_calls`` with a vocabulary of 40 000.

    These calls have p, q and drafts on which code for a large vocabulary often fails. Each has max(``gammas``) drafts.
    """
    return calls_subject(verify, name, hard_calls(40_000, max(gammas), "float32"))


def logits_at(setting: Setting, verify: BareVerifier, name: str, gammas: tuple[int, ...]) -> Subject:
    """Return the subject of a verifier of logits, examined only at ``setting`` (temperature, top-k, top-p, min-p).

    ``gammas`` are the numbers of drafts with which ``verify`` is examined.
    """
    variants = tuple(variant_at(verify, LOGITS, gamma, setting) for gamma in gammas)
    subject = verifier_subject(verify, name, gammas, LOGITS)
    return subject.with_situations(Variant, variants).with_situations(SampledSetting, ())


_RIGHT: Mapping[Form, tuple[BareVerifier, Callable[[BareVerifier, str, tuple[int, ...]], Subject]]] = {
    ROW: (one_row, verifier_subject),
    BATCHED: (batch, in_company),
    LOGITS: (of_logits, partial(verifier_subject, form=LOGITS)),
}
"""Form -> the correct verifier, and the function that returns the subject of a planted bug."""


def planted_verifier(
    name: str,
    summary: str,
    *,
    category: str,
    citation: str,
    killed_by: str,
    gammas: tuple[int, ...] = (2,),
    setting: Setting = (),
    control: BareVerifier | None = None,
    form: Form | None = None,
    make: Callable[[BareVerifier, str, tuple[int, ...]], Subject] | None = None,
) -> Callable[[BareVerifier], Mutant]:
    """Return a decorator that makes a verifier a mutant, examined with the numbers of drafts ``gammas``.

    * ``setting``: the only setting (temperature, top-k, ...) in which a verifier of logits is examined.
    * ``control``: the correct verifier; by default the one in this module with the same form of arguments.
    * ``form``: the form of the arguments, such as one row or a batch; by default read from the verifier's parameters,
      which is not possible for a batch without ``lengths``.
    * ``make(verify, name, gammas)`` returns the subject; by default ``verifier_subject`` makes it.

    The other parameters are fields of ``Mutant``, such as ``killed_by``, the check that must detect the bug.
    """

    def plant(verify: BareVerifier) -> Mutant:
        taken = tuple(inspect.signature(verify).parameters)
        taken_form = form or Form(bool(set(taken) & set(PARAMETERS)), "lengths" in taken)
        right, examined = _RIGHT[taken_form]
        right = ragged if "lengths" in taken else right
        subject_of = make or (partial(logits_at, setting) if setting else examined)
        texts = (partial(text_under, verify), partial(text_under, control or right)) if taken_form == LOGITS else None
        return Mutant(
            name,
            summary,
            category,
            citation,
            killed_by,
            open=partial(subject_of, verify, f"mutant:{name}", gammas),
            control=lambda: subject_of(control or right, _name_of(control or right), gammas),
            verifiers=(verify, control or right) if right is one_row and taken == BARE else None,
            texts=texts,
        )

    return plant


def text_under(
    verify: BareVerifier, target: LanguageModel, draft: LanguageModel, inputs: Mapping[str, Any]
) -> Callable[[Draws], Tokens] | None:
    """Return the program that decodes the text of a test vector with ``verify`` and returns its new tokens.

    ``verify`` is a verifier of logits. A test vector is a decode with a known law: the models ``target`` and ``draft``,
    and ``inputs`` such as the prompt. Returns None if ``inputs`` have no sampling parameters, have others than
    temperature, top-k, top-p and min-p, or permit a text to end early.
    """
    given = inputs.get("parameters", {})
    if inputs["eos"] or inputs.get("stop") or not given or not set(given) <= set(PARAMETERS):
        return None
    setting = tuple((name, float(Fraction(value))) for name, value in given.items())
    values: dict[str, Any] = {name: int(value) if name == "top_k" else value for name, value in setting}

    def under(model: LanguageModel) -> Processed:
        logits = lru_cache(maxsize=None)(lambda tokens: np.log(model(tokens).astype(np.float64)))
        return Processed(logits, warped(logits, **values))

    task = Task(under(target), under(draft), horizon=inputs["horizon"])
    decoder = variant_at(verify, LOGITS, TEXT_GAMMA, setting).build(task)
    return whole_run(decoder, tuple(inputs["prompt"]))


def _name_of(verify: BareVerifier) -> str:
    return f"correct {verify.__module__.rpartition('.')[2]}.{verify.__name__}"
