"""A verifier of chains: the form in which most projects ship their rejection sampler.

    verify(p, q, draft_tokens) -> emitted tokens

``p`` is ``[gamma + 1, vocabulary]`` and ``q`` ``[gamma, vocabulary]``, float64 probabilities; ``draft_tokens`` is
``[gamma]``. They are arrays of the library with which the verifier computes: NumPy, torch or JAX (``array_kinds``).
Exception: p and q are float32 in the scenarios that examine rounding, for a torch verifier that raises on float64, and
for JAX unless ``jax_enable_x64`` is on. Random calls (torch, NumPy, JAX, random) are intercepted, so the verifier is
enumerated unchanged. The drafts are drawn here from q. In a round without drafts the token is drawn from p, and the
verifier is not called. Emitted tokens are integers (``emitted``) and end at the first negative placeholder. The
verifier must not write to its arguments, and must not change a result that it has returned (``checked_calls``).

A verifier of logits also takes sampling parameters (``logits_verifier``). A verifier of batches takes arrays with a
leading dimension for the rows of the batch (``batched_verifier``). A verifier may be both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from specverify.base.callables import first_line
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.deep_scenarios import CROWDED, PAIRED, TRUNCATED
from specverify.reference import Claim, Decoder, Draft, Draws, State, Task, Tokens
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.batch_call import (
    BESIDE,
    CROWD,
    Arguments,
    BatchRow,
    Company,
    arguments_of,
    emitted,
    takes_lengths,
)
from specverify.subjects.batched_verifier import certain_batches, crowd_together, place_of, two_row_program
from specverify.subjects.certain_drafts import with_certain_drafts
from specverify.subjects.deep import deep_of
from specverify.subjects.emitted import drawn_row, ends_left_open
from specverify.subjects.forms import ROW, Form
from specverify.subjects.logits_verifier import GREEDY, Setting, combined_of, processed, settings_of
from specverify.subjects.remembered_calls import remembered
from specverify.subjects.subject import Context, Subject, Variant
from specverify.subjects.verifier_rounds import rounds, setting_of_decoder, variant_of


def verifier_subject(
    verify: BareVerifier, name: str, gammas: tuple[int, ...] | None = None, form: Form = ROW
) -> Subject:
    """Return the subject of ``verify``, a verifier of chains, which claims to be lossless and of optimal acceptance.

    * ``name``: The name of the subject.
    * ``gammas``: The numbers of drafts at which every check runs, by default 1, 2 and 3 for one row of probabilities
      and 2 for other forms. A few further scenarios have more drafts (``deep``).
    * ``form``: One row or a batch, of probabilities or logits.

    A verifier of logits is examined with several settings of sampling parameters, all but the first only at the largest
    of ``gammas``; each of a few more settings (``COMBINED``) has one scenario. A verifier of batches is also
    examined on several random rows together, and on a batch of one row.
    """
    settings: tuple[Setting, ...] = settings_of(verify) if form.logits else ((),)
    combined = combined_of(verify) if form.logits else ()
    chosen = gammas or ((1, 2, 3) if form.kind == ROW.kind else (2,))
    most, first, full = max(chosen), settings[0], settings[min(2, len(settings) - 1)]
    at = partial(variant_at, verify, form)
    pairs = [(gamma, first) for gamma in chosen if gamma != most] + [(most, setting) for setting in settings]
    sampled = at(most, full)
    assert sampled.intercepted is not None
    large = partial(at, company=CROWD) if form.batched else at
    return Subject(
        name=name,
        summary=first_line(verify, f"a verifier, form {form.word}"),
        claims=frozenset(Claim),
        rational=False,
        stops_at_eos=False,
        intercepted=True,
        kind=form.kind,
        deep=deep_of(
            partial(large, setting=full),
            gammas,
            (CROWDED, PAIRED) if form.batched else (),
            partial(large, setting=first),
            tuple((at(most, setting, joint=False), TRUNCATED) for setting in combined),
            partial(large, setting=GREEDY) if GREEDY in settings else None,
        ),
        situations=(
            *((at(most, full, company=None),) if form.batched else ()),
            *(at(gamma, setting, joint=setting in {first, full}) for gamma, setting in pairs),
            setting_of_decoder(sampled.intercepted.build, sampled.label, most, sampled.process),
        ),
    )


def variant_at(
    verify: BareVerifier,
    form: Form,
    gamma: int,
    setting: Setting = (),
    *,
    company: Company | None = BESIDE,
    joint: bool = True,
) -> Variant:
    """Return a verifier as a ``Variant`` to examine: with ``gamma`` drafts and one setting of its sampling parameters.

    ``form`` is the form of ``verify``. For a verifier of batches, ``company`` makes the other rows of the batch (None:
    there are none), and if ``joint``, several random rows are also examined together.
    """
    arguments, label = arguments_of(verify, form, setting), f"gamma={gamma}"
    label += "".join(f" {parameter}={value:g}" for parameter, value in setting)
    if form.batched:
        label += f", {place_of(verify, arguments, company) if company else 'alone'}"
    process = partial(processed, setting) if form.logits else None
    rows = (
        partial(crowd_together, verify, arguments)
        if company is CROWD
        else partial(two_row_program, verify, arguments, gamma)
    )
    return variant_of(
        label,
        partial(build, verify, arguments, gamma, company if form.batched else None),
        drafts=gamma if form.kind == ROW.kind else None,
        process=partial(with_certain_drafts, process) if form.without_q else process,
        joint=rows if form.batched and company and joint else None,
        alone=partial(build, verify, arguments, gamma, None) if form.batched and company else None,
        batches=partial(certain_batches, verify, arguments, gamma)
        if company is BESIDE and form.batched and joint
        else None,
    )


def build(
    verify: BareVerifier,
    arguments: Arguments,
    gamma: int,
    company: Company | None,
    task: Task,
    answered: Context = answered_everywhere,
) -> Decoder:
    """Return the decoder that drafts gamma tokens from q and verifies them by ``verify``, in a batch or alone.

    * ``arguments``: How p, q and drafts are converted to the arguments of ``verify``.
    * ``company``: Makes the other rows of the batch; None: the row is verified alone.
    * ``task``: The models; for a verifier of logits, those that ``logits_verifier.processed`` returns.
    * ``answered``: ``answered(draws)`` is the context of a call; by default it intercepts random calls.

    In a round without drafts the token is drawn from p, and ``verify`` is not called. Exception: if the row is one of a
    batch and ``verify`` takes the numbers of drafts, ``verify`` is also called for a row without drafts.
    """
    batched, ragged = arguments.form.batched, takes_lengths(verify)
    memory: dict[tuple[Tokens, Tokens], Callable[[Draws], Any]] = {}

    def answer_to(prefix: Tokens, draft: Draft) -> Callable[[Draws], Any]:
        mine = BatchRow(*arguments.rows(task, prefix, draft), draft.tokens)
        rows = company.rows(mine, ragged, arguments.of_pmfs) if company else (mine,)
        return emitted(verify, rows, answered, arguments)

    def decide(draws: Draws, state: State, draft: Draft) -> Any:
        if not draft.tokens and not (company and ragged):
            return drawn_row(draws, np.asarray(task.target(state.tokens)))
        asked = state.tokens, draft.tokens
        answer = memory.get(asked) or answer_to(state.tokens, draft)
        if answered is remembered:
            memory[asked] = answer
        if not batched:
            return answer(draws)
        with ends_left_open(0):  # an end that is open may be another row's
            return answer(draws)[company.place if company else 0]

    return rounds(task, gamma, decide)
