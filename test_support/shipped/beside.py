"""Compare the law of released code with the law of a row of ``reference/``: does the code decode as the row states?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from reference import ALGORITHMS, Claim, Decoder, Task, Tokens
from specverify.base.verdict import Verdict
from specverify.checks import Conditions
from specverify.checks.law_is_declared import CHECK
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.scenarios import Scenario, handed_task
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.engine_decodes import decodes_in
from specverify.subjects.forms import Form
from specverify.subjects.made_engine import made_subject, program_in
from specverify.subjects.subject import SampledSetting, Subject, Variant
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject

SMALL = (
    Scenario("generic", 2, (0,), 2, seed=0),
    *(Scenario(shape, 2, (0, 1, 0), 2, seed=1) for shape in ("disjoint", "equal", "point_target", "point_draft")),
    *(Scenario(shape, 2, (0, 1, 0), 3, seed=1) for shape in ("generic", "zeros", "ties")),
    *(Scenario(shape, 3, (0, 1, 0), 3, seed=2) for shape in ("generic", "peaked", "zeros")),
    *(Scenario("generic", 3, (0, 1, 0), 3, seed=seed, greedy=True) for seed in (6, 7)),
)
"""What verifiers are examined with here: vocabularies of 2 and 3, texts of 2 and 3 tokens."""
LOOPS = (
    *(Scenario("generic", 2, (0, 1, 0), horizon, seed=seed) for horizon, seed in ((2, 0), (3, 1))),
    *(Scenario(shape, 2, (0, 1, 0), 2, seed=2) for shape in ("zeros", "disjoint", "equal", "point_draft")),
    Scenario("generic", 3, (0, 1, 0), 2, seed=3),
    *(Scenario("generic", 2, (0, 1, 0), 3, seed=seed, greedy=True) for seed in (12, 14)),
)
"""The same for loops. They draw whole drafts wherever the text ends, so every path is longer than it looks."""
SOFT = tuple(scenario for scenario in LOOPS if scenario.shape in {"generic", "equal"})
"""Those in which q is never certain."""
LONG = (
    Scenario("generic", 2, (0, 1, 0), 3, seed=1),
    *(Scenario(shape, 3, (0, 1, 0), 6, seed=seed) for seed, shape in enumerate(("generic", "peaked", "zeros"), 2)),
    *(Scenario("generic", 3, (0, 1, 0), 6, seed=seed, greedy=True) for seed in range(12, 18)),
)
"""For loops that take argmaxes alone: one path each."""
REPLAYS = 6
ROWS = {algorithm.name: algorithm for algorithm in ALGORITHMS}
LawOf = Callable[[Task, Tokens], Mapping[Tokens, Any]]


class Beside(NamedTuple):
    """A row of ``reference/`` with whose law that of the code is compared."""

    row: str
    options: Mapping[str, Any] = {}
    parts: bool = False
    """Whether the two laws differ, or the code has none."""
    decoder: Callable[[Task, Any], Decoder] | None = None
    """``decoder(task, shape)``: what decides trees of a given shape as the row does, where its own are drawn else."""
    first: bool = False
    """Whether the code draws its first token from the target alone, before what the row says."""
    untrimmed: int = 0
    """How many tokens a round of the code may write beyond the horizon, where the row ends its drafts before it."""


def law_of(row: str, options: Mapping[str, Any], task: Task, prompt: Tokens) -> Mapping[Tokens, Any]:
    """Return new tokens -> probability of a row: the target's law if it is lossless, else the declared law.

    Without a declared law the row is enumerated.
    """
    algorithm = ROWS[row]
    if Claim.LOSSLESS in algorithm.claims:
        return target_law(task, prompt)
    if algorithm.declared_law is not None:
        return algorithm.declared_law(task, prompt, **options)
    return decoder_law(algorithm.build(task, **options), prompt).probabilities


def beginnings(law: Mapping[Tokens, Any], horizon: int) -> dict[Tokens, Any]:
    """Return the law of the first ``horizon`` tokens."""
    found: dict[Tokens, Any] = {}
    for new, mass in law.items():
        found[new[:horizon]] = found.get(new[:horizon], 0) + mass
    return found


def after_first(law: LawOf, task: Task, prompt: Tokens) -> dict[Tokens, Any]:
    """Return the law of texts whose first token is the target's draw, and whose other tokens have the law ``law``."""
    rest = task._replace(horizon=task.horizon - 1)
    return {
        (token, *new): mass * chance
        for token, mass in enumerate(task.target(prompt).tolist())
        if mass > 0
        for new, chance in law(rest, (*prompt, token)).items()
    }


def expected_law(beside: Beside, shape: Any, task: Task, prompt: Tokens) -> Mapping[Tokens, Any]:
    """Return the law of the row in the form in which the code decodes; ``shape`` is gamma, or the parents of a tree."""
    if beside.first:
        return after_first(partial(expected_law, beside._replace(first=False), shape), task, prompt)
    longer = task._replace(horizon=task.horizon + beside.untrimmed)
    if beside.decoder is not None:
        law: Mapping[Tokens, Any] = decoder_law(beside.decoder(longer, shape), prompt).probabilities
    else:
        gamma = {"gamma": shape} if isinstance(shape, int) else {}
        law = law_of(beside.row, {**beside.options, **gamma}, longer, prompt)
    return beginnings(law, task.horizon) if beside.untrimmed else law


def loop_subject(make: Any, name: str, scenarios: Any) -> Subject:
    """Return a decoding loop as a subject in ``scenarios``."""
    first = decodes_in(make, scenarios[0])
    programs = tuple(program_in(make, scenario, first)._replace(replays=REPLAYS) for scenario in scenarios)
    subject = made_subject(make, name)
    return subject._replace(claims=frozenset(), warm=None).with_programs(programs).with_situations(SampledSetting, ())


def declaring(subject: Subject, beside: Beside, shapes: Any) -> Subject:
    """Return the code as a subject that declares the law of the row; ``shapes`` are its gammas or trees, or scenarios.

    A subject of ``verifier_of`` has a variant a shape, one of ``loop_subject`` a program a scenario.
    """
    expected = partial(expected_law, beside)
    variants = tuple(
        variant._replace(declared_law=partial(expected, shape))
        for variant, shape in zip(subject.variants, shapes if subject.variants else (), strict=True)
    )
    programs = tuple(
        program._replace(
            law=lru_cache(partial(_in_scenario, partial(expected, None), scenario)),
            target=lru_cache(partial(_in_scenario, target_law, scenario)),
        )
        for program, scenario in zip(subject.programs, shapes if subject.programs else (), strict=True)
    )
    return subject._replace(claims=frozenset()).with_situations(Variant, variants).with_programs(programs)


def verifier_of(make: Any, name: str, shapes: Any, drafts: Any = None, scenarios: Any = SMALL) -> Subject:
    """Return a verifier of chains or trees as a subject in ``scenarios``, a variant a shape."""
    subject = (
        verifier_subject(make, name, shapes)
        if drafts is None
        else tree_subject(make, name, Form(drafts=drafts), shapes)
    )
    return subject._replace(scenarios=scenarios, claims=frozenset()).with_situations(SampledSetting, ())


def _in_scenario(law: LawOf, scenario: Any) -> Mapping[Tokens, Any]:
    return law(handed_task(scenario, rational=False), scenario.prompt)


def compared(subject: Subject, seconds: float) -> Verdict:
    """Return whether the law of a subject is the one that it declares, with a counterexample if it is not."""
    plan = Checklist((CHECK,), Conditions(), seconds)
    return next(verdict for verdict in verify_subject(subject, plan) if verdict.check == CHECK.name)
