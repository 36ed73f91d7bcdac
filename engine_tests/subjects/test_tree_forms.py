"""The forms of a verifier of trees: what is asked of the caller, names that find it again, and how trees are told."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from reference import Claim
from reference.transport import candidate_set_law, optimum
from specverify.base.identifier import unpack_replay
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.cli import app
from specverify.laws.law import target_law
from specverify.laws.paths import paths
from specverify.laws.scenarios import SCENARIOS, handed_task
from specverify.run.replays import again, named_by
from specverify.run.verify import Checklist, run_case, run_check
from specverify.subjects.external import external_subject, verifier_subject_of
from specverify.subjects.forms import FORMS, Form
from specverify.subjects.subject import UnusableSubject
from specverify.subjects.tree_verifier import DRAFTING, tree_subject
from specverify.testing import SpeculationRefuted, check_verifier
from test_support.trees import tree_rules as rules

GREEDY = frozenset({Claim.GREEDY})
RIGHT, WRONG = rules.greedy_by_paths(), rules.greedy_by_paths(padding=0)


@pytest.mark.thorough
def test_a_few_lines_in_somebodys_test_file():
    verdicts = check_verifier(RIGHT, form="tree", drafts="top_k", claims=GREEDY)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}
    with pytest.raises(SpeculationRefuted, match=r"tree #0=[\s\S]*: #0 accepted, [\s\S]*greedy is argmax - refuted"):
        check_verifier(WRONG, form="tree", drafts="top_k", claims=GREEDY)
    assert check_verifier(WRONG, form="tree", drafts="top_k", trees=((-1, -1), (-1, 0, 1)), claims=GREEDY)
    batch = rules.in_batch(RIGHT)
    assert check_verifier(batch, form="batched_tree", drafts="top_k", same_tree=True, claims=GREEDY)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"form": "tree"}, "drafts is None, expected one of with_replacement, without_replacement, top_k: it decides"),
        ({"form": "tree", "drafts": "topk"}, "drafts is 'topk', expected one of .*, did you mean top_k"),
        (
            {"form": "tree", "drafts": "top_k", "gammas": (1,)},
            r"gammas is \(1,\), expected it to be left out with form",
        ),
        ({"form": "row", "drafts": "top_k"}, "drafts is 'top_k', expected it to be left out with form='row'"),
        ({"trees": ((-1,),)}, "trees is .*, expected it to be left out with form=None"),
        ({"same_tree": True}, "same_tree is True, expected it to be left out with form=None"),
        ({"form": "tree", "drafts": "top_k", "same_tree": True}, 'same_tree is True, expected False with form="tree"'),
        ({"form": "batched_tree", "drafts": "top_k", "same_tree": 1}, "same_tree is 1, expected True or False"),
        ({"form": "tree", "drafts": "top_k", "trees": ()}, r"trees is \(\), expected a sequence of at least one tree"),
        ({"form": "tree", "drafts": "top_k", "trees": (-1, 0)}, "a tree is -1, expected the parents of at least one"),
        ({"form": "tree", "drafts": "top_k", "trees": ((0,),)}, "node 0 has parent 0, expected an earlier node"),
        ({"form": "tree", "drafts": "top_k", "trees": ((-1,), [-1])}, "expected each tree once"),
        ({"form": "trees"}, "form is 'trees', expected one of 'row', .*, did you mean tree"),
    ],
)
def test_what_cannot_be_examined_is_refused_in_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        check_verifier(RIGHT, **options)


def of_any(p, q, draft_tokens, *more, **named):
    raise NotImplementedError


MODULE = """
import numpy as np

def verify(p, q, parents, tokens):
    node, kept = -1, []
    while True:
        kept.append(int(p[1 + node].argmax()))
        found = [child for child in np.flatnonzero(parents == node) if tokens[child] == kept[-1]]
        if not found:
            return kept
        node = found[0]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "my_tree.py").write_text(MODULE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "my_tree:verify"


def test_a_name_on_the_command_line_says_how_trees_are_drawn(module):
    word = "tree-without-replacement"
    done = CliRunner().invoke(app, ["verify", f"{word}={module}", "--check", "greedy_is_argmax"])
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    with pytest.raises(UnusableSubject, match=r"takes parents, .* such as tree-with-replacement=my_tree:verify"):
        external_subject(module)
    with pytest.raises(UnusableSubject, match=r"'tree' is not a form of a verifier: expected one of row, .*tree-top-k"):
        external_subject(f"tree={module}")


def test_every_form_has_a_word_of_its_own_and_a_subject_that_bears_it():
    assert len(FORMS) == 4 + 9
    assert Form(drafts="top_k", batched=True, same_tree=True).word == "batched-same-tree-top-k"
    for word, form in FORMS.items():
        subject = verifier_subject_of(RIGHT if form.drafts else of_any, "module:verify", form)
        assert (subject.name, subject.kind) == (
            "module:verify" if word == "row" else f"{word}=module:verify",
            form.kind,
        )


def test_a_counterexample_is_found_again_by_its_word(module):
    subject = external_subject(f"tree-top-k={module}")
    check = check_named("law_is_target")
    verdict = run_check(subject, check, Checklist((check,)))
    assert verdict.status is Status.REFUTED
    wanted = unpack_replay(verdict.counterexample.again)
    assert run_case(*again(subject, check, wanted)).status is Status.REFUTED
    assert run_case(*named_by(verdict.counterexample.again, external_subject)).status is Status.REFUTED


# The yardstick of acceptance

SMALL = [item for item in SCENARIOS if item.vocabulary == 3 and item.horizon == 3 and not item.greedy and not item.eos]


@pytest.mark.parametrize("drafts", DRAFTING)
def test_the_yardstick_is_lossless_and_within_what_transport_allows(drafts):
    """At one position it accepts no more than the optimum, and as much where nothing is drawn; one child: min(p, q)."""
    for scenario in SMALL:
        task = handed_task(scenario)
        for count in (1, 2):
            (variant,) = tree_subject(RIGHT, "yardstick", Form(drafts=drafts), ((-1,) * count,)).variants
            decoder, law = variant.best(task), {}
            state = decoder.init(scenario.prompt)
            accepted = 0
            for path in paths(lambda draws, decoder=decoder, state=state: decoder.step(draws, state)):
                accepted += path.weight * path.outcome[1].accepted
                first = path.outcome[1].tokens[:1]
                law[first] = law.get(first, 0) + path.weight
            assert law == {
                new: mass for new, mass in target_law(task._replace(horizon=1), scenario.prompt).items() if mass
            }
            p, q = task.target(scenario.prompt), task.draft(scenario.prompt)
            drawn_sets = candidate_set_law(q, count, drafts == "with_replacement")
            if drafts == "top_k":
                top = frozenset(sorted(range(3), key=lambda token, q=q: (-q[token], token))[: min(count, sum(q > 0))])
                drawn_sets = {top: 1}
            best = optimum(p, drawn_sets)
            assert accepted <= best
            assert accepted == best or (count > 1 and drafts != "top_k")


def without_q(p, parents, tokens):
    return RIGHT(p, None, parents, tokens)


def wrong_without_q(p, parents, tokens):
    return [*map(int, RIGHT(p, None, parents, tokens)[:-1]), 0]


def test_drafts_that_are_not_drawn_need_no_q():
    options = {"form": "tree", "claims": GREEDY, "quick": True}
    assert {one.status for one in check_verifier(without_q, drafts="top_k", **options)} == {Status.HOLDS}
    with pytest.raises(SpeculationRefuted):
        check_verifier(wrong_without_q, drafts="top_k", **options)
    with pytest.raises(UnusableSubject, match=r"takes \(p, parents, tokens\), expected \(p, q, parents, "):
        check_verifier(without_q, drafts="with_replacement", **options)
    with pytest.raises(UnusableSubject, match=r"where q is None, or \(p, parents, tokens\): missing .* 'more'"):
        check_verifier(lambda p, q, parents, tokens, more: [], drafts="top_k", **options)
