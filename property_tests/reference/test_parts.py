"""An algorithm's parts: the registry knows every file, and what a chain is made of is what it runs on."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import ALGORITHMS, Decoder, Parts, Task, algorithms, assembled, constant, generate
from reference.algorithms import autoregressive, jacobi, speculative_sampling, triforce, triforce_released
from reference.verifiers.sample_and_match import sample_and_match
from specverify import checks
from specverify.laws.draws import Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.mutants.mutant import with_parts
from test_support.laws.rational import P, Q, always, examples

FLAT = Task(always(P), always(Q), horizon=4)
CHAINS = [row for row in ALGORITHMS if row.parts is not None]
OWN = {"autoregressive", "draft-and-verify", "gumbel-coupling", "rsd", "traversal-verification", "edge-cloud-match"}
"""Some of the rows that return a decoder of their own."""


@pytest.mark.parametrize(("package", "row"), [(algorithms, "\nALGORITHM = "), (checks, "\nCHECK = ")])
def test_every_file_with_a_row_is_in_its_list(package, row):
    files = [file for file in Path(package.__file__).parent.glob("*.py") if row in file.read_text("utf-8")]
    assert sorted(package.FILES) == sorted(file.stem for file in files)


def test_chains_say_what_they_are_made_of_and_others_do_not():
    named = {row.name for row in CHAINS}
    assert {"speculative-sampling", "nasd", "egag", "block-verification", "speculative-cascade"} <= named
    assert {row.name for row in ALGORITHMS} - named >= OWN


@pytest.mark.parametrize("row", CHAINS, ids=lambda row: row.name)
@examples(4)
@given(task=tasks(2, 1, 4), prompt=prompts(2), data=st.data())
def test_another_length_rule_takes_the_place_of_its_own(row, task, prompt, data):
    """With drafts of no tokens the verifier alone speaks: a chain that kept its own rule would draft."""
    chains = [made for options in row.examples if isinstance(made := row.parts(task, **options), Parts)]
    made = data.draw(st.sampled_from(chains))
    shortest = assembled(task, made._replace(length=constant(0)))
    assert all(done.draft == () for done in generate(shortest, prompt, Tape(data.draw(st.integers(0, 99)))).rounds)


def test_what_a_row_does_around_its_rounds_is_done():
    assert triforce_released.build(FLAT).propose is None
    assert triforce.build(task=FLAT).propose is not None


@pytest.mark.parametrize("row", ALGORITHMS, ids=lambda row: row.name)
def test_build_returns_a_decoder_by_its_signature_and_is_found_by_its_name(row):
    signature = inspect.signature(row.build)
    assert signature.return_annotation in (Decoder, "Decoder")
    assert next(iter(signature.parameters)) == "task"
    assert set().union(*row.examples) <= set(signature.parameters)
    assert pickle.loads(pickle.dumps(row.build)) is row.build


def test_another_build_has_other_parts():
    """Else a proof about a planted bug would be one about the correct row."""
    assert speculative_sampling.ALGORITHM._replace(build=autoregressive.build).parts is None


@given(task=tasks(2, 1, 3), prompt=prompts(2))
def test_one_part_of_a_row_can_be_replaced(task, prompt):
    matching = with_parts("speculative-sampling", verifier=sample_and_match)
    assert inspect.signature(matching).parameters == inspect.signature(speculative_sampling.build).parameters
    assert decoder_law(matching(task, gamma=2), prompt).probabilities == target_law(task, prompt)
    believing = with_parts("speculative-sampling", target=task.draft)
    assert decoder_law(believing(task, 2), prompt).probabilities == target_law(task._replace(target=task.draft), prompt)


def test_what_is_a_chain_at_some_options_is_none_at_others():
    assert isinstance(jacobi.build.parts(task=FLAT), Parts)
    assert isinstance(jacobi.build.parts(FLAT, rule="fixed point"), Decoder)
