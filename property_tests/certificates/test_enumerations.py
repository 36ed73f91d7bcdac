"""Certificates of enumerations: what is written is accepted, and what was changed since is refused."""

from __future__ import annotations

import copy
import inspect
import json
import random
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from specverify.certificates import CertificateRefused, NothingToReplay, check_certificate, checker, enumerations
from specverify.cli import app
from specverify.run.catalogue import find_subject
from specverify.run.certified import NothingToCertify, write_certificates
from specverify.subjects.engine import engine_subject
from specverify.subjects.verifier import verifier_subject
from specverify.testing import check_engine
from test_support.lines_of_code import lines_of_code
from test_support.users import replayed

ROWS = (
    "speculative-sampling", "block-verification", "gumbel-coupling", "sample-and-match", "greedy-multi-draft",
    "prompt-lookup", "autoregressive", "nasd", "specinfer", "confidence-dropping",
)  # fmt: skip
CORRUPTED = 200


def verify(p, q, draft_tokens):
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens.tolist()):
        if rng.random() * q[i, token] >= p[i, token]:
            rest = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i].tolist(), int(rng.choice(len(rest), p=rest / rest.sum()))]
    return [*draft_tokens.tolist(), int(rng.choice(len(p[-1]), p=p[-1]))]


def wrong_verify(p, q, draft_tokens):
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens.tolist()):
        if rng.random() * q[i, token] >= p[i, token]:
            return [*draft_tokens[:i].tolist(), int(rng.choice(len(p[i]), p=p[i]))]
    return [*draft_tokens.tolist(), int(rng.choice(len(p[-1]), p=p[-1]))]


def engine(probability):
    return lambda: [int(random.random() < probability), int(random.random() < 0.5)]


def certified(tmp_path, subject, scenarios=1, most_paths=500):
    file = tmp_path / "certificate.json"
    write_certificates(file, subject, scenarios, most_paths)
    return file


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_the_registry_is_accepted(name, tmp_path):
    file = certified(tmp_path, find_subject(f"reference:{name}"))
    assert "has the promised law in 1 scenarios" in check_certificate(file).statement


def test_ten_scenarios_of_a_verifier_are_accepted(tmp_path):
    checked = check_certificate(certified(tmp_path, verifier_subject(verify, "v"), 10))
    assert checked.statement == "v has the promised law in 10 scenarios"


def test_a_wrong_verifier_is_refuted_by_the_paths_of_one_outcome(tmp_path):
    file = certified(tmp_path, verifier_subject(wrong_verify, "v"), 10)
    assert check_certificate(file).figures["refutations"] > 0


@pytest.mark.parametrize("percent", range(30, 80, 5))
def test_an_engine_is_accepted(percent, tmp_path):
    subject = engine_subject(engine(percent / 100), engine(percent / 100), "an engine")
    assert check_certificate(certified(tmp_path, subject)).statement == "an engine has the promised law in 1 scenarios"
    subject = engine_subject(engine(percent / 100), engine(0.2), "an engine")
    assert "another law in 1" in check_certificate(certified(tmp_path, subject)).statement


def test_an_engine_without_a_plain_call_has_no_certificate(tmp_path):
    with pytest.raises(NothingToCertify):
        certified(tmp_path, engine_subject(engine(0.5), {(0, 0): 1.0}, "an engine"))


def nodes_of(tree):
    yield tree
    for below in tree.get("next", {}).values():
        if below is not None:
            yield from nodes_of(below)


def draws_of(certificate):
    """Return the draws with several possible answers."""
    return [node for node in nodes_of(certificate["tree"]) if len(node.get("next", {})) > 1]


def ends_of(certificate):
    return [node for node in nodes_of(certificate["tree"]) if "ends" in node]


def two_unlike(entries, rng):
    """Return two entries with different masses, or None."""
    pairs = [(one, other) for one in entries for other in entries if Fraction(one[1]) != Fraction(other[1])]
    return rng.choice(pairs) if pairs else None


def added(entry, share=Fraction(1, 100)):
    entry[-1] = str(Fraction(entry[-1]) + share)


def a_branch_is_dropped(certificate, rng):
    node = rng.choice(draws_of(certificate))
    node["next"].pop(rng.choice(sorted(node["next"])))


def a_branch_is_left_out(certificate, rng):
    node = rng.choice(draws_of(certificate))
    node["next"][rng.choice(sorted(node["next"]))] = None


def a_branch_of_an_impossible_answer_is_added(certificate, rng):
    node = rng.choice(draws_of(certificate))
    node["next"][str(len(node["weights"]))] = next(iter(node["next"].values()))


def probability_moves_to_a_sibling(certificate, rng):
    node = rng.choice(draws_of(certificate))
    one, other = map(int, rng.sample(sorted(node["next"]), 2))
    half = Fraction(node["weights"][one]) / 2
    node["weights"][one], node["weights"][other] = str(half), str(Fraction(node["weights"][other]) + half)


def siblings_overlap(certificate, rng):
    node = rng.choice(draws_of(certificate))
    node["weights"][int(next(iter(node["next"])))] = "1"


def a_probability_is_negative(certificate, rng):
    node = rng.choice(draws_of(certificate))
    one, other = map(int, rng.sample(sorted(node["next"]), 2))
    total = Fraction(node["weights"][one]) + Fraction(node["weights"][other])
    node["weights"][one], node["weights"][other] = "-1", str(total + 1)


def a_probability_is_a_float(certificate, rng):
    node = rng.choice(draws_of(certificate))
    node["weights"] = [float(Fraction(weight)) for weight in node["weights"]]


def a_path_ends_otherwise(certificate, rng):
    tokens = rng.choice(ends_of(certificate))["ends"][0][0]
    tokens[-1] = tokens[-1] + 1


def an_end_has_another_share(certificate, rng):
    added(rng.choice(ends_of(certificate))["ends"][0])


def an_outcome_of_the_law_is_more_likely(certificate, rng):
    added(rng.choice(certificate["law"]))


def outcomes_of_the_law_are_swapped(certificate, rng):
    one, other = two_unlike(certificate["law"], rng)
    one[0], other[0] = other[0], one[0]


def an_outcome_is_missing_in_the_law(certificate, rng):
    certificate["law"].pop(rng.randrange(len(certificate["law"])))


def an_outcome_is_listed_twice(certificate, rng):
    entry = rng.choice(certificate["law"])
    entry[1] = str(Fraction(entry[1]) / 2)
    certificate["law"].append(list(entry))


def the_distance_is_another(certificate, rng):
    certificate["distance"] = str(Fraction(certificate["distance"]) + Fraction(1, 100))


def the_verdict_is_turned(certificate, rng):
    certificate["verdict"] = {"holds": "refuted", "refuted": "holds"}[certificate["verdict"]]


def the_verdict_is_unknown(certificate, rng):
    certificate["verdict"] = "proved"


def the_bound_explains_everything(certificate, rng):
    certificate["bound"] = "1/2"


def the_target_is_another(certificate, rng):
    """A row of the target, or a draw of the call without speculation, has other probabilities."""
    if "plain" in certificate:
        probability_moves_to_a_sibling({"tree": certificate["plain"]}, rng)
        return
    reachable = certificate["rows"][0][1]  # after the prompt
    one, other = two_unlike([[place, mass] for place, mass in enumerate(reachable)], rng)
    reachable[one[0]], reachable[other[0]] = other[1], one[1]


def a_row_of_the_target_does_not_sum_to_one(certificate, rng):
    if "plain" in certificate:
        siblings_overlap({"tree": certificate["plain"]}, rng)
        return
    row = rng.choice(certificate["rows"])[1]
    row[0] = str(Fraction(row[0]) + Fraction(1, 100))


def the_text_is_another(certificate, rng):
    """The tree is that of another prompt, or the call without speculation that of other tokens."""
    if "plain" in certificate:
        a_path_ends_otherwise({"tree": certificate["plain"]}, rng)
        return
    certificate["prompt"] = [*certificate["prompt"], 0]


def the_horizon_is_another(certificate, rng):
    certificate["horizon"] = certificate.get("horizon", 1) + 1
    certificate.pop("plain", None)


def questions_of(certificate):
    """Return the draws about one uniform number."""
    return [node for node in draws_of(certificate) if "cells" in node]


def a_bound_is_shifted(certificate, rng):
    """The program compares a number with another bound; the probabilities are still those of the old one."""
    cells = rng.choice(questions_of(certificate))["cells"]
    place = rng.randrange(len(cells) - 1)
    cells[place][1] = cells[place + 1][0] = str((Fraction(cells[place][0]) + 3 * Fraction(cells[place + 1][1])) / 4)


def intervals_overlap(certificate, rng):
    cells = rng.choice(questions_of(certificate))["cells"]
    cells[-1][0] = cells[0][0]


def intervals_leave_a_gap(certificate, rng):
    cells = rng.choice(questions_of(certificate))["cells"]
    cells[-1][0] = cells[-1][1]


def the_last_interval_ends_early(certificate, rng):
    cells = rng.choice(questions_of(certificate))["cells"]
    cells[-1][1] = str((Fraction(cells[-1][0]) + Fraction(cells[-1][1])) / 2)


def the_first_interval_begins_below_zero(certificate, rng):
    rng.choice(questions_of(certificate))["cells"][0][0] = "-1/4"


def intervals_are_swapped(certificate, rng):
    cells = rng.choice(questions_of(certificate))["cells"]
    cells[0], cells[-1] = cells[-1], cells[0]


def an_interval_runs_backwards(certificate, rng):
    rng.choice(rng.choice(questions_of(certificate))["cells"]).reverse()


def an_interval_is_missing(certificate, rng):
    rng.choice(questions_of(certificate))["cells"].pop()


def intervals_are_dropped(certificate, rng):
    del rng.choice(questions_of(certificate))["cells"]


def intervals_have_no_number(certificate, rng):
    rng.choice(questions_of(certificate))["of"] = []


def intervals_have_two_numbers(certificate, rng):
    rng.choice(questions_of(certificate))["of"].append(99)


def a_probability_is_less_precise_than_stated(certificate, rng):
    rng.choice(draws_of(certificate))["within"] = "1/100"


OF_CONSTRAINTS = (
    a_bound_is_shifted, intervals_overlap, intervals_leave_a_gap, the_last_interval_ends_early,
    the_first_interval_begins_below_zero, intervals_are_swapped, an_interval_runs_backwards, an_interval_is_missing,
    intervals_are_dropped, intervals_have_no_number, intervals_have_two_numbers,
    a_probability_is_less_precise_than_stated,
)  # fmt: skip
CORRUPTIONS = (
    a_branch_is_dropped, a_branch_is_left_out, a_branch_of_an_impossible_answer_is_added,
    probability_moves_to_a_sibling, siblings_overlap, a_probability_is_negative, a_probability_is_a_float,
    a_path_ends_otherwise, an_end_has_another_share, an_outcome_of_the_law_is_more_likely,
    outcomes_of_the_law_are_swapped,
    an_outcome_is_missing_in_the_law, an_outcome_is_listed_twice, the_distance_is_another, the_verdict_is_turned,
    the_verdict_is_unknown, the_bound_explains_everything, the_target_is_another,
    a_row_of_the_target_does_not_sum_to_one, the_text_is_another, the_horizon_is_another,
)  # fmt: skip
OF_REFUTATIONS = (
    siblings_overlap, a_probability_is_negative, a_probability_is_a_float, a_path_ends_otherwise,
    an_outcome_of_the_law_is_more_likely, the_verdict_is_turned, the_verdict_is_unknown, the_bound_explains_everything,
)  # fmt: skip
"""A refutation is the paths of one outcome: it stays true if another branch is missing."""


def engine_with_relations():
    """Ask one number twice, the sum of two numbers, and for the first of a race."""
    rng = np.random.default_rng()
    u, v = rng.random(), rng.random()
    first = int(u < 0.5) + int(u < 0.25)
    race = np.argmax(np.log([0.2, 0.8]) - np.log(rng.exponential(size=2)))
    return [first, int(v + rng.random() < 0.7), int(race)]


ROUNDS = 3
"""How often each corruption is applied, at other places."""
CORPUS = {
    "a row": (lambda: find_subject("reference:speculative-sampling"), "holds", CORRUPTIONS),
    "a tree": (lambda: find_subject("reference:specinfer"), "holds", CORRUPTIONS),
    "a verifier": (lambda: verifier_subject(verify, "v"), "holds", CORRUPTIONS + OF_CONSTRAINTS),
    "an engine": (lambda: engine_subject(engine(0.4), engine(0.4), "an engine"), "holds", CORRUPTIONS + OF_CONSTRAINTS),
    "an engine with relations": (
        lambda: engine_subject(engine_with_relations, engine_with_relations, "an engine"),
        "holds",
        CORRUPTIONS + OF_CONSTRAINTS,
    ),
    "a refuted verifier": (lambda: verifier_subject(wrong_verify, "v"), "refuted", OF_REFUTATIONS),
    "a refuted engine": (
        lambda: engine_subject(engine(0.4), engine(0.2), "an engine"),
        "refuted",
        OF_REFUTATIONS + OF_CONSTRAINTS,
    ),
}


def is_refused(file):
    try:
        check_certificate(file)
    except CertificateRefused:
        return True
    return False


@pytest.mark.parametrize("kind", CORPUS)
def test_corrupted_certificates_are_refused(kind, tmp_path):
    make, verdict, corruptions = CORPUS[kind]
    rng, file = random.Random(4), tmp_path / "changed.json"
    scenarios = 1 if verdict == "holds" else 10
    written = json.loads(certified(tmp_path, make(), scenarios, most_paths=60).read_text("utf-8"))
    certificate = next(each for each in written["certificates"] if each["verdict"] == verdict)
    for corrupt in ROUNDS * corruptions:
        changed = copy.deepcopy(certificate)
        corrupt(changed, rng)
        file.write_text(json.dumps({**written, "certificates": [changed]}), "utf-8")
        assert is_refused(file), f"{corrupt.__name__} is accepted"


def test_two_hundred_certificates_are_corrupted():
    assert ROUNDS * sum(len(corruptions) for _, _, corruptions in CORPUS.values()) >= CORRUPTED


def test_probabilities_that_are_no_shares_of_their_intervals_are_refused(tmp_path):
    """Everything else is consistent: both trees, the law and the distance are those of another probability."""
    subject = engine_subject(engine(0.4), engine(0.4), "an engine")
    file = certified(tmp_path, subject)
    data = json.loads(file.read_text("utf-8"))
    (certificate,) = data["certificates"]
    other = json.loads(certified(tmp_path, engine_subject(engine(0.6), engine(0.6), "an engine")).read_text("utf-8"))
    certificate["law"] = other["certificates"][0]["law"]
    for tree in ("tree", "plain"):
        certificate[tree]["weights"] = other["certificates"][0][tree]["weights"]
    file.write_text(json.dumps(data), "utf-8")
    with pytest.raises(CertificateRefused, match="not the share of its interval"):
        check_certificate(file)
    for tree in ("tree", "plain"):
        certificate[tree]["cells"] = other["certificates"][0][tree]["cells"]
    file.write_text(json.dumps(data), "utf-8")
    assert check_certificate(file)


def test_an_interval_is_that_of_the_number_that_was_asked_before(tmp_path):
    file = certified(tmp_path, engine_subject(engine_with_relations, engine_with_relations, "an engine"))
    data = json.loads(file.read_text("utf-8"))
    tree = data["certificates"][0]["tree"]
    again = tree["next"]["0"]
    assert (tree["of"], tree["cells"]) == ([0], [["0", "1/2"], ["1/2", "1"]])
    assert (again["of"], again["cells"]) == ([0], [["0", "1/4"], ["1/4", "1/2"]])
    again["of"] = [1]
    file.write_text(json.dumps(data), "utf-8")
    with pytest.raises(CertificateRefused, match="the intervals overlap, or do not cover"):
        check_certificate(file)


def test_relations_are_accepted_with_their_numbers(tmp_path):
    file = certified(tmp_path, engine_subject(engine_with_relations, engine_with_relations, "an engine"))
    tree = json.loads(file.read_text("utf-8"))["certificates"][0]["tree"]
    assert check_certificate(file).figures["cells"] > 0
    relations = [node for node in nodes_of(tree) if node.get("of") and "cells" not in node]
    assert {len(node["of"]) for node in relations} == {2}
    assert {0, 1, 2, 3, 4} == {number for node in nodes_of(tree) for number in node.get("of", ())}


def test_a_verifier_is_run_again_on_the_numbers_of_its_paths(tmp_path):
    file = certified(tmp_path, find_subject("test_support.users.replayed:of_numpy"), 2)
    assert check_certificate(file, replayed=True).figures["replays"] >= 2


def test_the_head_of_a_file_is_checked(tmp_path):
    file = certified(tmp_path, verifier_subject(verify, "v"))
    with pytest.raises(ValueError, match="only proofs are compared with runs on tables"):
        check_certificate(file, 5)
    data = json.loads(file.read_text("utf-8"))
    for name, wanted in (("subject", "str"), ("certificates", "list")):
        file.write_text(json.dumps({**data, name: None}), "utf-8")
        with pytest.raises(CertificateRefused, match=f"^{name} is None, expected a value of type {wanted}$"):
            check_certificate(file)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", ["of_random", "wrong", "with_a_shuffle"])
def test_other_verifiers_are_run_again(name, tmp_path):
    file = certified(tmp_path, find_subject(f"test_support.users.replayed:{name}"), 2)
    assert check_certificate(file, replayed=True).figures["replays"]


def test_an_engine_is_run_again(tmp_path):
    subject = engine_subject(replayed.engine, replayed.engine, "test_support.users.replayed:engine")
    assert check_certificate(certified(tmp_path, subject), replayed=True).figures["replays"]


CHANGES = {
    "draws are not made": lambda call: call["drawn"].append(["numpy", "random", 0.5]),
    "the certificate has no further draw": lambda call: call["drawn"].clear(),
    "the certificate has random": lambda call: call["drawn"].__setitem__(0, ["random", "random", 0.5]),
    "it returns": lambda call: call["returned"].append(0),
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("message", CHANGES)
def test_a_changed_replay_is_refused(message, tmp_path):
    file = certified(tmp_path, find_subject("test_support.users.replayed:of_numpy"))
    data = json.loads(file.read_text("utf-8"))
    CHANGES[message](data["certificates"][0]["replays"][0]["calls"][0])
    file.write_text(json.dumps(data), "utf-8")
    assert check_certificate(file)
    with pytest.raises(CertificateRefused, match=message):
        check_certificate(file, replayed=True)


def test_a_source_that_was_changed_since_is_refused(tmp_path):
    file = certified(tmp_path, find_subject("test_support.users.replayed:of_numpy"))
    data = json.loads(file.read_text("utf-8"))
    data["sources"] = dict.fromkeys(data["sources"], "0" * 64)
    file.write_text(json.dumps(data), "utf-8")
    with pytest.raises(CertificateRefused, match="is not the one that was examined"):
        check_certificate(file, replayed=True)


def test_a_subject_that_behaves_otherwise_is_refused(tmp_path, monkeypatch):
    file = certified(tmp_path, find_subject("test_support.users.replayed:of_numpy"), 2)
    monkeypatch.setattr(replayed, "of_numpy", replayed.rejects_more)
    with pytest.raises(CertificateRefused):
        check_certificate(file, replayed=True)


def test_a_row_that_draws_by_name_has_no_replay(tmp_path):
    file = certified(tmp_path, find_subject("reference:autoregressive"))
    with pytest.raises(NothingToReplay, match="there is no path to replay: the subject draws by name"):
        check_certificate(file, replayed=True)


def test_the_checker_and_the_replay_are_small_and_import_the_standard_library():
    folder = Path(enumerations.__file__).parent
    for names in (("enumerations.py", "replay.py"), ("checker.py",)):
        texts = [(folder / name).read_text("utf-8") for name in names]
        imported_here = map(inspect.getsource, (checker.CertificateRefused, checker.require))
        assert sum(map(lines_of_code, (*texts, *imported_here))) < 300
        imported = {line.split()[1].partition(".")[0] for text in texts for line in text.splitlines()
                    if line.startswith(("import ", "from "))}  # fmt: skip
        assert imported - set(sys.stdlib_module_names) <= {"specverify"}


def test_a_check_function_writes_a_certificate(tmp_path):
    file = tmp_path / "certificate.json"
    check_engine(engine(0.4), engine(0.4), checks=["stop_law"], on_fail=None, certificate=file)
    assert check_certificate(file).figures["paths"] == 4
    with pytest.raises(ValueError, match="certificate is 3"):
        check_engine(engine(0.4), engine(0.4), certificate=3)


def test_the_command_writes_and_checks_a_certificate(tmp_path):
    file = str(tmp_path / "c.json")
    result = CliRunner().invoke(
        app, ["verify", "reference:autoregressive", "--check", "law_is_target", "--certificate", file, "--jobs", "1"]
    )
    assert result.exit_code == 0, result.output
    checked = CliRunner().invoke(app, ["check-certificate", file])
    assert checked.exit_code == 0
    assert "accepted" in checked.output
