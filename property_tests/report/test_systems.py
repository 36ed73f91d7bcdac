"""The page of all systems: it is what would be written now, its numbers are the known ones, its limits hold."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reference import ALGORITHMS, Task, overlap
from specverify.cli import app
from specverify.laws.law import target_law
from specverify.laws.paths import paths
from specverify.laws.tables import table_pair
from specverify.report import systems
from specverify.report.systems import PROMPT, evidence, examined, pair_task, shown_exactly
from specverify.subjects.algorithm import algorithm_subject
from test_support.laws.rational import P, Q

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "systems.md").read_text("utf-8")
ROWS = {row.name: row for row in ALGORITHMS}
found = cache(lambda name: examined(ROWS[name]))
every_row = pytest.mark.parametrize("name", ROWS)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


# The page


def test_the_page_is_what_would_be_written_now(tmp_path):
    assert run("list", "--markdown", str(tmp_path / "systems.md")).exit_code == 0
    assert (tmp_path / "systems.md").read_text("utf-8") == PAGE


def test_every_row_has_one_line_with_every_column():
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert [re.match(r"\| `([^`]+)`", line)[1] for line in lines] == list(ROWS)
    columns = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
    assert columns == {len(systems.COLUMNS) + 1}


def test_the_pair_is_the_known_one():
    task = pair_task()
    assert (task.target((0,)).tolist(), task.draft((1, 2)).tolist()) == (P.tolist(), Q.tolist())


# Laws


def biting():
    """Return the rows whose declared law differs from the target's on the pair. The law is not enumerated for it."""
    task = pair_task()
    wanted = target_law(task, PROMPT)
    declared = {name: row for name, row in ROWS.items() if row.declared_law}
    return {name for name, row in declared.items() if row.declared_law(task, PROMPT, **row.examples[0]) != wanted}


@pytest.mark.thorough
def test_exactly_the_rows_whose_declared_bias_bites_are_off():
    off = {name for name in ROWS if found(name).text > 0}
    assert off == biting()
    assert len(off) > 20
    assert {name for name, row in ROWS.items() if row.declared_law} - off == {"judge-decoding"}


@pytest.mark.thorough
def test_the_page_calls_exact_what_is():
    for line in PAGE.splitlines():
        if line.startswith("| `"):
            name = re.match(r"\| `([^`]+)`", line)[1]
            law = re.split(r"(?<!\\)\|", line)[4].strip()
            assert law.startswith("exact") == (found(name).text == 0)
            assert (law == "exact") == (ROWS[name].declared_law is None)


@every_row
def test_distances_and_rates_are_possible(name):
    row = found(name)
    assert 0 <= row.first_token <= row.text <= 1
    assert 0 <= row.first_accepted <= row.drafts <= 1
    assert row.first_accepted <= row.accepted <= 2
    claimed = "greedy" in {claim.value for claim in ROWS[name].claims}
    assert not claimed or row.at_temperature_0 == 0


KNOWN_BIASES = {
    "resample-from-target": "1/5",
    "clamped-scalar-residual": "3/20",
    "accept-if-likelier": "9/50",
    "lenience": "1/20",
    "edge-cloud-shortcut": "1/5",
    "edge-cloud-scalar-q": "3/20",
    "edge-cloud-guide-code": "9/50",
    "edge-cloud-timeout": "1/10",
    "nasd-seed-rule": "1/2",
    "greedy-speculation": "1/2",
}
KNOWN_ACCEPTANCE = {
    "speculative-sampling": "3/5",
    "sample-and-match": "13/50",
    "gumbel-coupling": "18/35",
    "lenience": "13/20",
    "resample-from-target": "3/5",
    "rsd": "7/10",
    "specinfer": "16/25",
    "transport-optimum": "111/140",
    "greedy-multi-draft": "3/4",
    "edge-cloud-match": "13/50",
    "edge-cloud-timeout": "7/10",
    "edge-cloud-gated": "1",
    "distillspec": "4/5",
}


@pytest.mark.parametrize(("name", "bias"), KNOWN_BIASES.items())
def test_a_bias_is_the_known_one(name, bias):
    assert found(name).first_token == Fraction(bias)


@pytest.mark.parametrize(("name", "rate"), KNOWN_ACCEPTANCE.items())
def test_an_acceptance_is_the_known_one(name, rate):
    assert found(name).first_accepted == Fraction(rate)


def test_a_draft_committed_unverified_counts_as_accepted():
    """A quarter is committed alone, 3/5 of the rest is verified and kept: 9/20, and with what is committed 7/10."""
    row = ROWS["edge-cloud-timeout"]
    late = Fraction(row.examples[0]["late"])
    answered = examined(row._replace(examples=({**row.examples[0], "late": 0},))).first_accepted
    assert (1 - late) * answered == Fraction(9, 20)
    assert examined(row).first_accepted == late + Fraction(9, 20) == Fraction(7, 10)


def test_one_draft_is_accepted_as_often_as_pmfs_overlap_and_a_block_more_often_than_its_tokens():
    assert found("speculative-sampling").accepted == overlap(P, Q)
    token = ROWS["speculative-sampling"]._replace(examples=({"gamma": 2},))
    assert examined(token).accepted == Fraction(3, 5) + Fraction(9, 25)
    assert found("block-verification").accepted > examined(token).accepted


def test_a_lossy_row_passed_off_as_its_target_would_be_seen():
    """The control: the page's distance of a row with another build is that build's."""
    honest = ROWS["speculative-sampling"]
    swapped = honest._replace(build=ROWS["resample-from-target"].build)
    assert (examined(honest).text, examined(swapped).first_token) == (0, Fraction(1, 5))


def test_a_law_that_is_not_rational_is_refused(monkeypatch):
    monkeypatch.setattr(systems, "Q", Q.astype(float))
    with pytest.raises(ValueError, match="the law of speculative-sampling on the pair is not complete in rationals"):
        examined(ROWS["speculative-sampling"])


def test_numbers_are_shown_as_fraction_and_decimal():
    assert [shown_exactly(value) for value in (Fraction(3, 5), Fraction(1), Fraction(1, 3**12))] == [
        "3/5 = 0.6",
        "1",
        "0.000002",
    ]


# Limits

REDUCTIONS = [(row, item) for row in ALGORITHMS for item in row.reductions]


def rounds_law(decoder, prompt):
    """Return the law of what the rounds did: tokens and accepted drafts of each, in order."""
    waiting, law = {(decoder.init(prompt), ()): 1}, defaultdict(int)
    while waiting:
        after = defaultdict(int)
        for (state, past), weight in waiting.items():
            if state.remaining == 0:
                law[past] += weight
                continue
            for path in paths(lambda draws, state=state: decoder.step(draws, state)):
                then, done = path.outcome
                after[then, (*past, (done.tokens, done.accepted))] += weight * path.weight
        waiting = after
    return dict(law)


def text_law(law):
    texts = defaultdict(int)
    for past, weight in law.items():
        texts[sum((tokens for tokens, _ in past), ())] += weight
    return dict(texts)


def compared(item, row, other, task, prompt):
    """Return both laws: of the rounds, or of the text where that is all that is said to agree."""
    task = item.limit(task) if item.limit else task
    laws = [
        rounds_law(row.build(task, **item.options), prompt),
        rounds_law(other.build(task, **item.of), prompt),
    ]
    return laws if item.rounds else [text_law(law) for law in laws]


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("row", "item", "vocabulary"),
    [
        pytest.param(row, item, size, id=f"{row.name} is {item.to}, {item.when}, V={size}")
        for row, item in REDUCTIONS
        for size in ((item.vocabulary,) if item.vocabulary else (2, 3))
    ],
)
def test_a_row_is_another_one_in_its_limit(row, item, vocabulary):
    for shape, seed, eos in (("generic", 0, ()), ("zeros", 1, (1,))):
        task = Task(*table_pair(shape, vocabulary, seed), eos=eos, horizon=4 if vocabulary == 2 else 3)
        one, other = compared(item, row, ROWS[item.to], task, (0, 1, 0))
        assert one == other


@pytest.mark.thorough
def test_every_limit_is_one_only_there():
    """The control: with its first example's options, and without the limit, a row is mostly not the other one."""
    task = Task(*table_pair("generic", 3, 0), horizon=3)
    always_so = set()
    for row, item in REDUCTIONS:
        outside = item._replace(options=row.examples[-1], limit=None, rounds=True)
        one, other = compared(outside, row, ROWS[item.to], task, (0, 1, 0))
        if one == other:
            always_so.add((row.name, item.to))
    assert len(always_so) < len(REDUCTIONS) / 3
    assert ("lenience", "speculative-sampling") not in always_so


@pytest.mark.parametrize(("row", "item"), REDUCTIONS, ids=lambda value: getattr(value, "name", "") or value.to)
def test_the_test_that_is_named_exists(row, item):
    if item.shown_by:
        file, name = item.shown_by.split("::")
        assert f"def {name}(" in next((ROOT / "property_tests").rglob(file)).read_text("utf-8")
    assert item.to in ROWS
    assert item.to != row.name


# The listing

SURVEYED = """
    SpecDec; SD (Leviathan et al.); SD (Chen et al.); SpecInfer; Sequoia; Medusa; Hydra; Jacobi; Lookahead; Ouroboros;
    CLLM; EAGLE-1; EAGLE-2; EAGLE-3; CS-Drafting; TriForce; DistillSpec; OSD; SpecTr; REST; PPD; Draft&Verify; BiLD;
    PaSS; SPACE; LayerSkip; NASD; NAPD; EGAG; dynamic k; gating; edge-cloud; MTP
"""


@pytest.mark.parametrize("system", [name.strip() for name in SURVEYED.split(";")])
def test_a_surveyed_system_is_listed_with_claim_paper_and_evidence(system):
    listed = [row for row in json.loads(run("list", "--json").output)["algorithms"] if system in row["systems"]]
    assert listed
    for row in listed:
        assert row["paper"]
        assert row["claims"] or row["declared_bias"]
        assert row["evidence"].startswith(
            "exact rationals: " + ("declared bias" if row["declared_bias"] else "law of p")
        )


def test_the_listing_shows_what_it_knows_of_each_row():
    shown = re.sub(r"\s+", " ", " " + run("list", "algorithms").output)
    for row in ALGORITHMS:
        assert f" reference:{row.name} " in shown
    for word in ("claims", "exact rationals", "declared bias", "EAGLE-3"):
        assert word in shown
    (sampled,) = algorithm_subject(ROWS["egag"]).settings
    assert evidence(ROWS["egag"]).partition("statistical: ")[2].replace(" ", "") == sampled.name.partition(" ")[0]


def test_networks_of_systems_that_have_one_are_not_passed_over():
    trained = {
        "Medusa",
        "Hydra",
        "EAGLE-1",
        "EAGLE-2",
        "CLLM",
        "SPACE",
        "PaSS",
        "LayerSkip",
        "MTP",
        "DistillSpec",
        "OSD",
    }
    for system in trained:
        assert any(row.needs_training for row in ALGORITHMS if system in row.systems)
