"""No random number is used twice: no uniform decides two things, and no two draws use the same generator state.

``intercept.audit`` defines which decisions count as two, and what cannot be detected. All rounds of a decode are
followed as one block, because a verifier that seeds its generator again in each call decides every round by the same
numbers. Laws of single rounds do not show this fault. A verifier that derives its seed from its arguments has no
randomness of its own, although its rounds use different numbers. So one round is also called twice.

Some reuse is harmless, for example noise that belongs to a position of the text, or a number that is looked up again
with the same result. So the law decides: if a number is used twice, the law of the whole block is enumerated. A wrong
law refutes. If the law is right, the check holds, with a note about the reuse. An engine with models of its own is then
undecided, because its law is not examined with other models.

A pool of numbers that begins again after many draws shows in long texts alone. So an engine from a factory also decodes
a text of many random tokens, of which a few paths are followed. Its law is not known: reuse there is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions, Examine, ExaminedPart, Need, by, in_scenarios
from specverify.checks.compared_laws import Comparison, OpenProgram, Promise, compare_laws, law_of_opened, no_reuse_of
from specverify.checks.explaining.counterexample_parts import described, or_none
from specverify.checks.explaining.engine_counterexamples import token_without_draw
from specverify.checks.explaining.engine_paths import KeptPaths
from specverify.checks.explaining.given_drafts import rounds_given_drafts
from specverify.checks.explaining.reused_numbers import STATE, USED_TWICE, reuse_in_words
from specverify.checks.explaining.round_faults import fault_of_rounds
from specverify.checks.explaining.round_rules import ONE_NUMBER
from specverify.checks.open_ends import step_with_open_end
from specverify.intercept.audit import Reuse, audited
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape
from specverify.laws.enumeration import whole_run
from specverify.laws.law import target_law
from specverify.laws.paths import Undecided, first_outcomes, paths
from specverify.laws.scenarios import Scenario
from specverify.reference import Claim, Draws
from specverify.subjects.subject import EngineProgram, InScenario, Intercepted, LongDecode, Subject, Variant

SHAPES = {"generic", "point_draft"}
PATHS_ALONE = 200
PATHS_OF_ROUNDS = 250
"""The most paths of one decode on which reuse by a verifier is searched for; its rounds draw alike in every path."""
ROUNDS_TWICE = 4
"""The number of rounds that a verifier decides twice in a row; their drafts are certain."""
LONG_PATHS = 3
"""The number of random paths of a decode of many tokens that are followed."""
RUNS_A_PATH = 10
"""Most runs to compute the law of a block, per path that was examined for reuse. A first, shorter computation often
suffices to show a wrong law."""
MEANT = (
    "If the reuse is intended, list it in expected_failures; samples decide whether it changes the law (sampled=True)"
)


class DecodeBlock(NamedTuple):
    """A whole decode whose random numbers are followed over all rounds, to find a number that two rounds use.

    ``where`` describes the case. ``opened()`` returns a context manager that yields the decode as a program.
    """

    where: str
    opened: OpenProgram
    promised: Promise | None
    """Returns the expected law; None if there is none."""
    whole: bool = False
    """Whether the block is a call of an engine, which also draws its drafts."""
    own_models: bool = True
    """Whether an engine has models of its own; else it is made for the models of the scenarios."""
    other_fault: Callable[[], str] = lambda: ""
    """Returns a fault that reuse does not cause, or "" if none is known."""
    roles: Callable[[Reuse], str] = lambda reuse: ""
    """Returns what a number that is used twice decides (draft, test, ...), or "" if that is not known."""


BY_NAME = "it requests its draws by name, so no draw is intercepted"


def _several_rounds(scenario: Scenario) -> bool:
    """Return whether a scenario has several rounds and random replacements, which may use the same random number.

    Such a scenario has more than three new tokens, and residuals of several tokens. Greedy scenarios and those with an
    end-of-sequence token are excluded.
    """
    plain = not scenario.greedy and not scenario.eos
    return plain and scenario.vocabulary > 2 and scenario.horizon > 3 and scenario.shape in SHAPES


def _with_residuals(subject: Subject) -> Iterator[InScenario]:
    """Yield the variants of ``subject`` in a few scenarios of several rounds.

    Variants that verify one sequence differ only in gamma. Of these, the one with the largest gamma is used.
    """
    rows = [variant for variant in subject.variants if not variant.joint and not variant.process]
    kept = (variant for variant in subject.variants if variant not in rows[:-1])
    return in_scenarios(_several_rounds)(subject.with_situations(Variant, kept))


def _verifier_of(subject: Subject) -> Examine:
    lossless = Claim.LOSSLESS in subject.claims

    def examined(here: InScenario, conditions: Conditions) -> Examination:
        twice = partial(_put_twice, here) if here.scenario.shape == "point_draft" else None
        declared = here.variant.declared_law
        law = partial(declared or target_law, here.task, here.prompt) if declared or lossless else None
        other, roles = partial(_other_rule, here), partial(_role, here)
        block = DecodeBlock(described(here), partial(_opened, here), law, other_fault=other, roles=roles)
        return examine(block, conditions, twice)

    return examined


def examine_program(program: EngineProgram, conditions: Conditions) -> Examination:
    """Search the paths of an engine program for a random number that is used twice.

    ``conditions`` limits the number of paths.
    """
    roles = partial(_shared_by, program)
    own_models = program.trace is None
    other = partial(_chosen_token, program)
    block = DecodeBlock(described(program), program.open, program.law, True, own_models, other, roles)
    return examine(block, conditions)


def examine_long(decode: LongDecode, conditions: Conditions) -> Examination:
    """Follow a few random paths of a decode of many tokens, to find a number that is used again after many draws.

    The law of such a decode is not enumerated. So reuse makes the result unknown, unless a short decode has the same,
    whose law is compared.
    """
    tapes, error = [Tape(seed) for seed in range(LONG_PATHS)], None
    with audited() as result, decode.open() as run:
        try:
            for tape in tapes:
                run(tape)
        except Exception as raised:  # noqa: BLE001 - other checks report errors and refusals of shorter texts
            error = raised
    runs, draws = len(tapes), sum(tape.used for tape in tapes)
    if result:
        with audited() as known, decode.short.open() as run:
            _follow(run, known, PATHS_ALONE)
        if new := next((each for each in result if each.sentence not in {other.sentence for other in known}), None):
            statement = f"{new.sentence}, in a text of {decode.tokens} tokens. It may do harm. {MEANT}"
            return Examination(statement, unknown=True, rational=False, figures={"runs": runs})
    if error is not None:
        note = f"no text of {decode.tokens} tokens was followed: {type(error).__name__}: {error}"
        return Examination(note, rational=False, figures={"runs": runs, "notes": [note]})
    return _nothing_twice(runs, draws)


def examine(
    block: DecodeBlock, conditions: Conditions, twice: Callable[[frozenset[str]], str] | None = None
) -> Examination:
    """Search the paths of ``block`` for a random number that is used twice.

    No path is followed if an enumeration has already shown that there is none. If a number is used twice, the law of
    the block decides (``_by_its_law``).

    Args:
        block: The decode whose paths are followed.
        conditions: Limits the number of paths.
        twice: Called if the paths neither refute nor make the result unknown; None: not called. ``twice(known)``
            repeats a call of the verifier, and describes a random number that both calls use: a refutation. It returns
            "" if there is none. ``known`` are the sentences about numbers that the paths use twice.

    Raises:
        NeedsValue: A path could not be followed, and the earlier paths decide nothing.
    """
    for shares, draws in no_reuse_of(block.opened):
        if max(shares.values()) <= _each(conditions.paths, len(shares)):
            return _nothing_twice(sum(shares.values()), draws)
    most = conditions.paths if block.whole else min(conditions.paths, PATHS_OF_ROUNDS)
    with audited() as result, block.opened() as run:
        refusal, runs, draws = _follow(run, result, most)
    by_law = _by_its_law(block, result, conditions, refusal) if result else None
    if by_law and (by_law.failed or by_law.unknown):
        return by_law
    if refusal:
        raise refusal
    if said := twice(frozenset(reuse.sentence for reuse in result)) if twice else "":
        example = Counterexample(let=(block.where,), then=said, fault=USED_TWICE + said)
        return Examination(said, failed=True, rational=False, counterexample=example, figures={"runs": runs})
    return by_law or _nothing_twice(runs, draws)


def _by_its_law(
    block: DecodeBlock, found: list[Reuse], conditions: Conditions, refusal: NeedsValue | None
) -> Examination:
    """Return the result for a block in which ``found``, the reuse of random numbers, occurs.

    ``refusal`` is why a path could not be followed, or None. ``conditions`` limits the enumeration of the law.

    * The law is wrong: refuted.
    * It is not clear whether the law is right: unknown.
    * A verifier whose law is right: holds, with a note.
    * A verifier whose law cannot be enumerated: refuted.
    * An engine whose law is right: holds, with a note. But if it has models of its own, or uses a generator state
      twice, the result is unknown.
    * An engine whose law cannot be enumerated: unknown.
    """
    said = found[0].sentence
    told = refusal or _compared(block, conditions)
    compared = told if isinstance(told, Comparison) else None
    right_elsewhere = not block.own_models and not any(reuse.what.startswith(STATE) for reuse in found)
    undecided = block.whole and (compared is None or not (compared.refuted or right_elsewhere))
    if undecided or (compared and compared.unknown):
        but = compared.statement if compared else f"its effect on the law is unknown: {told}"
        statement = f"{said}, and {but}. It may do harm, here or with other models. {MEANT}"
        return Examination(statement, unknown=True, rational=False)
    figures = compared.figures if compared else {}
    if compared is None or compared.refuted:
        because = [f"the law is off by it: {compared.statement}"] if compared else []
        others = [reuse_in_words(reuse) for reuse in found[1:]]
        role = block.roles(found[0])
        fault = USED_TWICE + (f"{role}: " if role else "") + reuse_in_words(found[0])
        if compared and (other := block.other_fault()):
            others, fault = [] if block.whole else [fault, *others], other
        example = Counterexample((block.where,), fault, because=(*because, *others), fault=fault)
        return Examination(said, failed=True, rational=False, counterexample=example, figures=figures)
    note = f"{said}, and the law is nevertheless the promised one"
    return Examination(note, rational=False, figures={**figures, "notes": [note]})


def _other_rule(here: InScenario) -> str:
    """Return the sentence about a wrong acceptance that a reuse of random numbers does not cause; "" if there is none.

    The acceptance in the rounds of the verifier ``here`` must follow a known wrong rule.
    """
    fault = or_none(fault_of_rounds, here)
    is_other = fault is not None and fault.named and fault.parts == {"accept"} and ONE_NUMBER not in fault.sentence
    return fault.sentence if fault is not None and is_other else ""


def _role(here: InScenario, reuse: Reuse) -> str:
    """Return a phrase about the decisions of a verifier that share a uniform, such as a test and the replacement.

    The roles of the decisions are inferred from the law of the verifier's rounds; "" if they are unclear. ``here`` is
    the verifier in a scenario, and ``reuse`` the observed reuse.
    """
    rounds = or_none(rounds_given_drafts, here) or ()
    tested = {place for given in rounds for (part, _), place in given.places.items() if part == "accept"}
    fault = or_none(fault_of_rounds, here)
    is_shared = fault is not None and ONE_NUMBER in fault.sentence and {reuse.first, reuse.second} <= tested
    if fault is None or not (is_shared or any(reuse.what.endswith(f" at {place}") for place in tested)):
        return ""
    if "replace" in fault.parts and reuse.first != reuse.second:
        return "the uniform of the accept test also chooses the replacement"
    return "one uniform tests several drafts" if "accept" in fault.parts else ""


def _chosen_token(program: EngineProgram) -> str:
    """Return the sentence that ``program`` chooses a token as the argmax of p, without a draw; "" if it does not."""
    with program.open() as run:
        return or_none(token_without_draw, program, KeptPaths(run)) or ""


def _shared_by(program: EngineProgram, reuse: Reuse) -> str:
    """Return the sentence that requests or rows of the engine ``program`` share a random number.

    ``reuse`` is the reuse found when they are served together. Returns "" if one request alone also uses a number
    twice, or cannot be served alone.
    """
    if program.alone is None:
        return ""
    with audited() as result, program.alone(0).open() as run:
        refusal, _, _ = _follow(run, result, PATHS_ALONE)
    what = "one seed" if reuse.what.startswith(STATE) else "random numbers"
    return (
        "" if result or refusal else f"the {program.each}s share {what}, while one {program.each} alone repeats nothing"
    )


def _compared(block: DecodeBlock, conditions: Conditions) -> Comparison | NeedsValue:
    """Compare the law of ``block``, a whole decode, with the expected law; if that is not possible, return the reason.

    ``conditions`` limits the number of runs.
    """
    if block.promised is None:
        return NeedsValue("no-promise", "no law is promised")
    promised = block.promised()

    def after(runs: int) -> Comparison:
        return compare_laws(law_of_opened(block.opened, min(conditions.runs, runs), 1), promised, "what was promised")

    try:
        part = after(conditions.paths)
        return after(conditions.paths * RUNS_A_PATH) if part.unknown else part
    except NeedsValue as reason:
        return reason


def _paths_in(outcome: Any) -> int:
    """Return the number of paths that a run with the result ``outcome`` stands for.

    If the last token of the run was never read, the run stands for a path for each possible last token.
    """
    return len(outcome.outcomes) if isinstance(outcome, Undecided) else 1


def _nothing_twice(runs: int, draws: int) -> Examination:
    figures = {"runs": runs, "draws": draws}
    return Examination(f"nothing is used twice in {draws} draws", rational=False, figures=figures)


def _each(most: int, shares: int) -> int:
    """Return how many paths to follow in each group of paths, for about ``most`` paths in total.

    ``shares`` is the number of groups; the paths of a group have equal outcomes of their first two draws.
    """
    return -(-most // shares)


@contextmanager
def _opened(here: InScenario) -> Iterator[Callable[[Draws], Any]]:
    intercepted = here.variant.intercepted
    yield whole_run(here.decoder, here.prompt) if intercepted is None else _in_one_block(here, intercepted)


def _in_one_block(here: InScenario, intercepted: Intercepted) -> Callable[[Draws], Any]:
    """Return a program that decodes a whole text with the verifier ``here``, as one block of intercepted calls.

    In one block, a random number that two calls use is recognised as one number. ``intercepted`` builds the decoder and
    the block. The decode ends at an invalid token. If the last token is never read, one run stands for all its values.
    """
    task, prompt = here.task, here.prompt
    decoder, vocabulary = intercepted.build(task, lambda _: nullcontext()), range(len(task.target(prompt)))
    begun = len(prompt)
    with suppress(NeedsValue):
        whole_run(here.decoder, prompt)(Tape(0))  # what it imports is imported before the block

    def program(draws: Draws) -> Any:
        state = decoder.init(prompt)
        with intercepted.answered(draws):
            while state.remaining > 0 and all(token in vocabulary for token in state.tokens):
                after = step_with_open_end(decoder, draws, state)
                if isinstance(after, Undecided):
                    return Undecided(tuple((reached.tokens[begun:], mass) for (reached, _), mass in after.outcomes))
                state, _ = after
        return state.tokens[begun:]

    return program


def _put_twice(here: InScenario, known: frozenset[str]) -> str:
    """Decide the first round of a text twice, and return a sentence about a random number that both calls use.

    ``here`` is the verifier in its scenario. Sentences in ``known`` were reported before and are not returned again.
    Returns "" if there is no other sentence, or if the calls cannot be intercepted.
    """
    if (intercepted := here.variant.intercepted) is None:
        return ""
    decoder = intercepted.build(here.task, lambda _: nullcontext())
    with audited() as result, suppress(NeedsValue):
        for tape in range(ROUNDS_TWICE):
            draws = Tape(tape)
            with intercepted.answered(draws):
                for _ in range(2):
                    decoder.step(draws, decoder.init(here.prompt))
    others = [reuse.sentence for reuse in result if reuse.sentence not in known]
    return f"{others[0]}, in two calls that are given the same" if others else ""


def _follow(run: Callable[[Draws], Any], found: list[Reuse], most: int) -> tuple[NeedsValue | None, int, int]:
    """Follow about ``most`` paths of the program ``run``, up to the first that uses a random number twice.

    The paths are divided equally among the outcomes of the first two draws. The caller runs this function while an
    audit is active, which appends each reuse to ``found``. Returns (why a path could not be followed or None, number of
    paths, number of draws).
    """
    runs = draws = 0
    try:
        shares = first_outcomes(run, depth=2)
        for share in shares:
            each = (path for path in paths(run, share) for _ in range(_paths_in(path.outcome)))
            for path in islice(each, _each(most, len(shares))):
                runs, draws = runs + 1, draws + len(path.decisions) + isinstance(path.outcome, Undecided)
                if found:
                    return None, runs, draws
    except NeedsValue as refusal:
        return refusal, runs, draws
    return None, runs, draws


CHECK = Check(
    name="draws_are_independent",
    summary="no random number is used for two decisions, and no stream of them begins again",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(
            Variant,
            _verifier_of,
            BY_NAME,
            (Need(lambda subject, _: subject.intercepted, BY_NAME),),
            _with_residuals,
        ),
        ExaminedPart(EngineProgram, by(examine_program), BY_NAME),
        ExaminedPart(LongDecode, by(examine_long), BY_NAME),
    ),
)
