"""A user's decoder, named as ``package.module:attribute``.

The attribute is an ``Algorithm``, as in the files of ``reference/algorithms``, or a function, recognised by its
parameters:

  one_round(draws, target, draft, tokens) -> new tokens, at least one
  decode(draws, target, draft, prompt, *, horizon) -> new tokens
  decode(draws, target, draft, prompt, *, horizon, eos) -> new tokens
  verify(p, q, draft_tokens) -> emitted tokens, a verifier of one row
  verify(p, q, draft_tokens, lengths) -> emitted tokens row by row
  verify(target_logits, draft_logits, draft_tokens, [lengths,] temperature, top_k, top_p): the same of logits

``form=module:callable`` is a verifier in one of ``subjects.forms``, such as ``batched=`` or ``tree-top-k=``.

``draws.categorical(pmf, site)`` is the only source of randomness; ``target`` and ``draft`` map a tuple of all tokens so
far to a pmf ``[vocabulary]``. One round is the better form: its law is pushed forward round by round and equal texts
merge. A whole decode is enumerated path by path, so only small cases are feasible. A function that cannot compute with
exact rationals (object arrays of ``Fraction``) gets float64 pmfs.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from specverify.base.arguments import check_callable, check_takes, nearest, takes
from specverify.base.callables import POSITIONAL, first_line, required_positional, told_apart
from specverify.laws.deep_scenarios import DEEP_GAMMA, LONG_SCENARIOS, WRITTEN_OUT, deep_scenarios
from specverify.laws.draws import Tape
from specverify.laws.scenarios import SCENARIOS, Scenario, handed_task
from specverify.reference import Algorithm, Claim, Decoder, Draws, Round, State, Task, Tokens
from specverify.reference.rounds import commit, initial_state
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.answer_conventions import with_rows
from specverify.subjects.certain_drafts import takes_no_q
from specverify.subjects.emitted import in_order, type_and_answer
from specverify.subjects.forms import FORMS, ROW, TREES, Form
from specverify.subjects.found_order import in_found_order
from specverify.subjects.logits_verifier import NAMED, PLURALS
from specverify.subjects.named_arguments import with_named_arguments
from specverify.subjects.subject import Subject, UnusableSubject, Variant
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject

ForeignFunction = Callable[..., Any]
MOST_RUNS = 60_000
"""The most runs of one scenario; a round that always drafts many tokens takes more."""
FormName = Literal["row", "batched", "logits", "batched_logits", "tree", "batched_tree"]
"""The forms of a verifier: one row or a batch of probabilities, of logits, or of trees."""


def external_subject(name: str) -> Subject:
    """Return the subject with the name ``[form=]package.module:attribute``.

    Raises ``UnusableSubject`` with one sentence if it cannot be loaded or has no accepted form.
    """
    form, given, place = name.rpartition("=")
    result = _load(place)
    if given:
        if form not in FORMS:
            hint = nearest(form, FORMS)
            raise UnusableSubject(f"{form!r} is not a form of a verifier: expected one of {', '.join(FORMS)}{hint}")
        return verifier_subject_of(result, place, FORMS[form])
    if isinstance(result, Algorithm):
        return algorithm_subject(result, prefix=name.partition(":")[0], ours=False)._replace(name=name)
    return decode_subject(result, name)


def verifier_subject_of(
    verify: ForeignFunction,
    name: str,
    form: Form | None = None,
    gammas: tuple[int, ...] | None = None,
    trees: tuple[Tokens, ...] | None = None,
) -> Subject:
    """Return the subject of the verifier ``verify``.

    * ``name``: The verifier as ``module:attribute``. It is the name of the subject, with ``form=`` before it if
      ``form`` is not the one that the verifier's parameters determine.
    * ``form``: None: the form that the verifier's parameters determine, else one row of probabilities.
    * ``gammas``, ``trees``: The numbers of drafts of a chain, and the shapes of trees; None: the defaults.
    """
    if form is not None and form.drafts is not None:
        taking_q = _of_trees(with_named_arguments(verify), name, form)
        return tree_subject(told_apart(taking_q), f"{form.word}={name}", form, trees)
    without_q = takes_no_q(verify)
    verify, notes = in_found_order(verify, lambda verify: form or verifier_form(verify, name) or ROW)
    told = verifier_form(verify, name) or ROW
    chosen = form or told
    if chosen == ROW:
        _check_or_unusable(
            check_takes, verify, name, 3, "(p, q, draft_tokens), or (p, draft_tokens) if each draft is certain"
        )
    full_name = name if chosen == told else f"{chosen.word}={name}"
    given_form = chosen._replace(without_q=without_q)
    subject = verifier_subject(with_rows(told_apart(verify), chosen), full_name, gammas, given_form)
    return subject._replace(notes=notes)


def verifier_form(function: ForeignFunction, name: str) -> Form | None:
    """Return the form that the parameters of the verifier ``function`` determine; None if they determine none.

    Raises ``UnusableSubject``, naming the verifier ``name``, for a verifier of trees: the parameters do not show how
    its trees are drawn.
    """
    try:
        names = tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None
    if "parents" in names:
        raise UnusableSubject(
            f"{name} takes parents, as a verifier of trees does, expected its form too, which states how trees are "
            f"drawn, such as {TREES[0].word}={name}"
        )
    logits = bool({*names} & {*NAMED})
    logits = logits or (len(names) > 2 and all("logits" in name.lower() for name in names[:2]))
    batched = bool({*names} & {"lengths", *PLURALS})
    return Form(logits, batched) if logits or batched else None


def decode_subject(function: ForeignFunction, name: str) -> Subject:
    """Return the subject ``name`` of a decoding function, which claims to be lossless.

    If the function has the form of a verifier, returns the subject of the verifier.
    """
    given, function = function, with_named_arguments(function)
    is_verifier = verifier_form(function, name) or takes_no_q(given)
    shape = None if is_verifier else _shape(function, name)
    if shape is None:
        return verifier_subject_of(given, name)
    variant = Variant("as given", partial(shape.build, function))
    return Subject(
        name=name,
        summary=first_line(function, "a function that decodes"),
        claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
        stops_at_eos=shape.stops_at_eos,
        whole=shape.whole,
        most_runs=MOST_RUNS,
        deep=partial(_deep, variant),
        probe=partial(_computes_with_rationals, variant),
        kind="whole decode" if shape.whole else "decoder",
        situations=(variant,),
    )


def _deep(variant: Variant) -> tuple[tuple[Variant, Scenario], ...]:
    scenarios = (*deep_scenarios(DEEP_GAMMA), *LONG_SCENARIOS, *WRITTEN_OUT)
    return tuple((variant, scenario) for scenario in scenarios)


def one_round(function: ForeignFunction, task: Task) -> Decoder:
    """Return the decoder each of whose rounds is one call of ``function``, with the models and the horizon of ``task``.

    Emitted tokens after the horizon are cut off.
    """

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        tokens = _as_tokens(function(draws, task.target, task.draft, state.tokens))
        if not tokens:
            raise UnusableSubject("a round committed no token, expected at least one")  # else it went on for ever
        new, remaining = commit(tokens, state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, (), 0, 0)

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


def whole_decode(function: ForeignFunction, task: Task) -> Decoder:
    """Return the decoder that decodes a whole text by one call of ``function``.

    The models and the horizon are those of ``task``.
    """
    return _whole(function, task, {"horizon": task.horizon})


def whole_decode_with_eos(function: ForeignFunction, task: Task) -> Decoder:
    """Return the decoder that decodes a whole text by one call of ``function``, which also takes end tokens.

    The models, the horizon and the end tokens are those of ``task``.
    """
    return _whole(function, task, {"horizon": task.horizon, "eos": task.eos})


def _whole(function: ForeignFunction, task: Task, limits: dict[str, Any]) -> Decoder:
    def step(draws: Draws, state: State) -> tuple[State, Round]:
        new = _as_tokens(function(draws, task.target, task.draft, state.tokens, **limits))
        return State(state.tokens + new, 0), Round(new, (), 0, 0)

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


class _Shape(NamedTuple):
    build: Callable[[ForeignFunction, Task], Decoder]
    keywords: dict[str, Any]
    stops_at_eos: bool
    whole: bool


_SHAPES = (
    _Shape(whole_decode_with_eos, {"horizon": 1, "eos": ()}, stops_at_eos=True, whole=True),
    _Shape(whole_decode, {"horizon": 1}, stops_at_eos=False, whole=True),
    _Shape(one_round, {}, stops_at_eos=False, whole=False),
)


def _as_tokens(answer: Any) -> Tokens:
    try:
        listed = tuple(in_order(answer))
        if any(isinstance(token, bool) for token in listed):
            raise TypeError  # noqa: TRY301 - a bool is no token
        return tuple(map(operator.index, listed))
    except TypeError:
        raise UnusableSubject(
            f"it returned {type_and_answer(answer)}, expected the new tokens as a sequence of integers"
        ) from None


def _load(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UnusableSubject(f"{name!r} is not a subject: expected package.module:callable")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        if module_name.endswith(".py") or "/" in module_name:
            raise UnusableSubject(_file_said(module_name, attribute)) from None
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise UnusableSubject(f"cannot import {module_name}: {reason}") from error
    try:
        result = operator.attrgetter(attribute)(module)
    except AttributeError:
        hint = nearest(attribute, vars(module))
        raise UnusableSubject(f"{module_name} has no attribute {attribute!r}{hint}") from None
    if not callable(result) and not isinstance(result, Algorithm):
        raise UnusableSubject(
            f"{name} is a {type(result).__name__}, expected a function: a round, a whole decode or a verifier"
        )
    if not isinstance(result, Algorithm):
        _check_or_unusable(check_callable, result, name)
    return result


def _file_said(place: str, attribute: str) -> str:
    """Return the error message for a subject that is named by the file ``place`` and not by a module.

    The message contains the name to write instead; ``attribute`` is the name inside the file.
    """
    folder, _, file = place.rpartition("/")
    inside = f", in the folder {folder}" if folder else ""
    return f"{place!r} is a file, expected its module: {file.removesuffix('.py')}:{attribute}{inside}"


def _of_trees(verify: ForeignFunction, name: str, form: Form) -> ForeignFunction:
    """Return ``verify``, a verifier of trees, as a function of (p, q, parents, tokens).

    For drafts that are chosen without a draw (``form.drafts`` is "top_k"), it may leave q out. Raises
    ``UnusableSubject`` for another number of arguments.
    """
    arguments = "(p, q, parents, tokens)"
    if form.drafts == "top_k":
        arguments = f"{arguments}, where q is None, or (p, parents, tokens)"
        if takes(verify, 3) and not takes(verify, 4):
            return lambda p, _, parents, tokens: verify(p, parents, tokens)
    _check_or_unusable(check_takes, verify, name, 4, arguments)
    return verify


def _check_or_unusable(check: Callable[..., None], *arguments: Any) -> None:
    """Run ``check(*arguments)``; raise ``UnusableSubject`` if it raises ``ValueError``."""
    try:
        check(*arguments)
    except ValueError as error:
        raise UnusableSubject(str(error)) from None


def _shape(function: ForeignFunction, name: str) -> _Shape | None:
    expected = (
        "(draws, target, draft, tokens), (draws, target, draft, prompt, *, horizon[, eos]) or "
        "(p, q, draft_tokens[, lengths or temperature, top_k, top_p, min_p])"
    )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise UnusableSubject(f"{name} has no signature that can be read, expected {expected}") from None
    if next(iter(signature.parameters), "") == "self":
        raise UnusableSubject(f"{name} takes {signature}, the method of a class, expected that of an instance of it")
    for shape in () if _needs_three(signature) else _SHAPES:
        try:
            signature.bind(None, None, None, (), **shape.keywords)
        except TypeError:
            continue
        return shape
    try:
        signature.bind(None, None, None)
    except TypeError:
        pass
    else:
        return None
    made = ", or an instance that takes them" if inspect.isclass(function) else ""
    raise UnusableSubject(f"{name} takes {signature}, expected {expected}{made}")


def _needs_three(signature: inspect.Signature) -> bool:
    """Return whether a signature has three required positional parameters (p, q, drafts) and further optional ones.

    Such a function is a verifier, not a round.
    """
    taken = sum(item.kind in POSITIONAL for item in signature.parameters.values())
    return len(required_positional(signature)) == 3 < taken


def _computes_with_rationals(variant: Variant) -> bool:
    scenario = next(item for item in SCENARIOS if item.shape == "generic" and item.horizon > 1)
    try:
        decoder = variant.build(handed_task(scenario))
        decoder.step(Tape(0), decoder.init(scenario.prompt))
    except (TypeError, AttributeError, ValueError):
        return False
    except Exception:  # noqa: BLE001 - whatever else it raises, the checks will name
        return True
    return True
