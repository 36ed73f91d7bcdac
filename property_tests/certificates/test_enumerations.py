"""Certificates of enumerations: what is written is accepted, and what was changed since is refused."""

from __future__ import annotations

import copy
import json
import random
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from specverify.certificates import CertificateRefused, check_certificate, enumerations
from specverify.cli import app
from specverify.run.catalogue import find_subject
from specverify.run.certified import NothingToCertify, write_certificates
from specverify.subjects.engine import engine_subject
from specverify.subjects.verifier import verifier_subject
from specverify.testing import check_engine
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


def corrupted(certificate, rng):
    """Return a certificate with one change that makes it untrue."""
    changed = copy.deepcopy(certificate)
    draws = [node for node in nodes_of(changed["tree"]) if "next" in node and len(node["next"]) > 1]
    ends = [node for node in nodes_of(changed["tree"]) if "ends" in node]
    way = rng.randrange(8)
    if way == 0:
        node = rng.choice(draws)
        node["next"].pop(rng.choice(sorted(node["next"])))
    elif way == 1:
        node = rng.choice(draws)
        one, other = rng.sample(sorted(node["next"], key=int), 2)
        weights = node["weights"]
        half = Fraction(weights[int(one)]) / 2
        weights[int(one)], weights[int(other)] = str(half), str(Fraction(weights[int(other)]) + half)
    elif way == 2:
        node = rng.choice(draws)
        node["weights"][int(next(iter(node["next"])))] = "1"
    elif way == 3:
        node = rng.choice(ends)
        node["ends"][0][0] = [*node["ends"][0][0][:-1], node["ends"][0][0][-1] + 1]
    elif way == 4:
        entry = rng.choice(changed["law"])
        entry[1] = str(Fraction(entry[1]) + Fraction(1, 100))
    elif way == 5:
        changed["distance"] = str(Fraction(changed["distance"]) + Fraction(1, 100))
    elif way == 6:
        changed["law"].pop(rng.randrange(len(changed["law"])))
    else:
        node = rng.choice(draws)
        node["next"][rng.choice(sorted(node["next"]))] = None
    return changed


def test_two_hundred_corrupted_certificates_are_refused(tmp_path):
    rng = random.Random(4)
    written = [json.loads(certified(tmp_path, subject, most_paths=60).read_text("utf-8")) for subject in (
        find_subject("reference:speculative-sampling"), verifier_subject(verify, "v"),
        engine_subject(engine(0.4), engine(0.4), "an engine"),
    )]  # fmt: skip
    file = tmp_path / "changed.json"
    for place in range(CORRUPTED):
        data = written[place % len(written)]
        changed = {**data, "certificates": [corrupted(data["certificates"][0], rng)]}
        file.write_text(json.dumps(changed), "utf-8")
        with pytest.raises(CertificateRefused):
            check_certificate(file)


def test_a_verifier_is_run_again_on_the_numbers_of_its_paths(tmp_path):
    file = certified(tmp_path, find_subject("test_support.users.replayed:of_numpy"), 2)
    assert check_certificate(file, replayed=True).figures["replays"] >= 2


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
    with pytest.raises(CertificateRefused, match="draws by name"):
        check_certificate(file, replayed=True)


def test_the_checker_and_the_replay_are_small_and_import_the_standard_library():
    folder = Path(enumerations.__file__).parent
    for names in (("enumerations.py", "replay.py"), ("checker.py",)):
        texts = [(folder / name).read_text("utf-8") for name in names]
        assert sum(len(text.splitlines()) for text in texts) < 400
        imported = {line.split()[1].partition(".")[0] for text in texts for line in text.splitlines()
                    if line.startswith(("import ", "from "))}  # fmt: skip
        assert imported - set(sys.stdlib_module_names) <= {"specverify"}


def test_a_check_function_writes_a_certificate(tmp_path):
    file = tmp_path / "certificate.json"
    check_engine(engine(0.4), engine(0.4), checks=["horizon_is_respected"], on_fail=None, certificate=file)
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
