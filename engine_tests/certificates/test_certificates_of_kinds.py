"""Certificates of every kind of subject are accepted, replayed where the subject can be called by its name."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction

import pytest
import torch

from specverify.certificates import CertificateRefused, check_certificate
from specverify.mutants import mutants
from specverify.run.catalogue import find_subject
from specverify.run.certified import NothingToCertify, write_certificates
from specverify.subjects.engine import engine_subject

NUMBER = 10
KINDS = ("rows", "trees", "batches", "decoders")
"""Planted bugs, and the same subjects without them, by what they are; engines have tests of their own."""


def kind_of(subject):
    """Return what a subject is; nothing if it has no certificate."""
    if subject.programs or not subject.variants or not subject.scenarios:
        return ""
    if not subject.intercepted:
        return "decoders"
    if any(variant.joint is not None for variant in subject.variants):
        return "batches"
    return "trees" if "tree" in subject.variants[0].label or "parents" in subject.variants[0].label else "rows"


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_ten_of_each_kind_are_accepted(kind, tmp_path):
    accepted, file = 0, tmp_path / "certificate.json"
    for mutant in mutants():
        for make in (mutant.control, mutant.open):
            if accepted == NUMBER:
                return
            subject = make()
            if kind_of(subject) != kind:
                continue
            try:
                write_certificates(file, subject, scenarios=1, most_paths=300)
            except NothingToCertify:
                continue
            accepted += check_certificate(file).figures["paths"] > 0
    assert accepted >= NUMBER


WEIGHTS = torch.linspace(0.01, 0.97, 97, dtype=torch.float32).softmax(0)


def unread_in_float32():
    return torch.multinomial(WEIGHTS, 1)


def test_the_law_of_an_unread_token_may_be_rounded_to_float32(tmp_path):
    file = tmp_path / "certificate.json"
    write_certificates(file, engine_subject(unread_in_float32, unread_in_float32, "an engine"))
    data = json.loads(file.read_text("utf-8"))
    (certificate,) = data["certificates"]
    assert not certificate["exact"]
    assert check_certificate(file).statement == "an engine has the promised law in 1 scenarios"
    ends = certificate["tree"]["ends"]
    assert len(ends) == len(WEIGHTS)
    ends[0][1] = str(Fraction(ends[0][1]) + 2 * Fraction(certificate["bound"]))
    certificate["law"] = ends
    file.write_text(json.dumps(data), "utf-8")
    with pytest.raises(CertificateRefused, match="shares of an end"):
        check_certificate(file)


@pytest.mark.thorough
def test_a_verifier_of_torch_is_run_again(tmp_path):
    file = tmp_path / "certificate.json"
    write_certificates(file, find_subject("test_support.users.replayed_in_torch:of_torch"), scenarios=NUMBER)
    assert check_certificate(file, replayed=True).figures["replays"] >= NUMBER
    file.write_text(file.read_text("utf-8").replace('"exponential_"', '"rand"'), "utf-8")
    with pytest.raises(CertificateRefused):
        check_certificate(file, replayed=True)


@pytest.mark.thorough
def test_another_process_runs_a_verifier_of_torch_again(tmp_path):
    """There torch loads a part of itself, which draws from ``random``, before the patches."""
    file = tmp_path / "certificate.json"
    write_certificates(file, find_subject("test_support.users.replayed_in_torch:of_torch"), scenarios=1)
    command = [sys.executable, "-m", "specverify", "check-certificate", str(file), "--replay"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "replays" in result.stdout
