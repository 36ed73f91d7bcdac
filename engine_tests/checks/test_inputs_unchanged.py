"""Tensors that a verifier writes to, answers that are buffers, and streams of torch that begin again in each call."""

from __future__ import annotations

import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.emitted import emitted_row
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.forms import form_of_chains
from specverify.subjects.subject import UnusableSubject
from test_support.verifiers import samplers

RIGHT = samplers.at_once()


def verdict_of(verify, name, form=None):
    check = check_named(name)
    return run_check(verifier_subject_of(verify, "verify", form_of_chains(form), (2,)), check, Checklist((check,)))


def zeroed(p, q, draft_tokens):
    """Takes a rejected draft out of the caller's row."""
    found = RIGHT(p, q, draft_tokens)
    if len(found) <= len(draft_tokens):
        p[len(found) - 1, draft_tokens[len(found) - 1]] = 0
    return found


def clamped_in_place(p, q, draft_tokens):
    """Leaves the residual in q."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()) < p[i, token] / q[i, token]:
            left = q[i].neg_().add_(p[i]).clamp_(min=0)
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(left if left.any() else p[i], 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


def noise_in_place(p, q, draft_tokens):
    """Draws its noise into the caller's rows: the numbers that are lost are seen as well."""
    found = RIGHT(p, q, draft_tokens)
    q.exponential_()
    return found


def of_batch(p, q, draft_tokens, lengths):
    """Counts the lengths down."""
    found = samplers.padded_batch()(p, q, draft_tokens, lengths)
    lengths -= 1
    return found


@pytest.mark.parametrize(
    ("verify", "argument"),
    [
        (zeroed, "p["),
        (clamped_in_place, "q["),
        (noise_in_place, "q[0, 0] was "),
        (of_batch, "lengths[0] was 2 and is 1"),
    ],
)
def test_a_tensor_that_is_written_to_is_named_with_the_place(verify, argument):
    verdict = verdict_of(verify, "inputs_unchanged")
    assert verdict.status is Status.REFUTED
    assert verdict.statement.startswith(argument)


def buffered():
    buffer = torch.zeros(9, dtype=torch.int64)

    def verify(p, q, draft_tokens):
        found = RIGHT(p, q, draft_tokens)
        buffer[: len(found)] = found
        return buffer[: len(found)]

    return verify


def batch_buffer():
    buffer = torch.zeros(8, 8, dtype=torch.int64)

    def verify(p, q, draft_tokens, lengths):
        found = samplers.padded_batch()(p, q, draft_tokens, lengths)
        view = buffer[: found.shape[0], : found.shape[1]]
        return view.copy_(found)

    return verify


@pytest.mark.parametrize("make", [buffered, batch_buffer], ids=lambda make: make.__name__)
def test_a_buffer_that_is_returned_again_is_refuted(make):
    verdict = verdict_of(make(), "outputs_are_fresh")
    assert verdict.status is Status.REFUTED
    assert "the same answer holds" in verdict.statement


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("name", ["inputs_unchanged", "outputs_are_fresh"])
@pytest.mark.parametrize("verify", [RIGHT, samplers.padded_batch(), samplers.of_logits()])
def test_right_samplers_leave_arguments_and_answers_alone(verify, name):
    assert verdict_of(verify, name).status is Status.HOLDS


def anew(seed):
    """Return a sampler with a generator of this seed, made in every call."""

    def verify(p, q, draft_tokens):
        generator = torch.Generator().manual_seed(seed)
        return drawn_from(generator, p, q, draft_tokens)

    return verify


def drawn_from(generator, p, q, draft_tokens):
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand((), generator=generator) < p[i, token] / q[i, token]:
            row = samplers.owed(p[i], q[i])
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(row, 1, generator=generator))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1, generator=generator))]


def seeded_again(p, q, draft_tokens):
    torch.manual_seed(0)
    return drawn_from(None, p, q, draft_tokens)


def of_the_request():
    """Return a sampler with one generator, made before and moving on."""
    generator = torch.Generator().manual_seed(0)
    return lambda p, q, draft_tokens: drawn_from(generator, p, q, draft_tokens)


@pytest.mark.parametrize("verify", [anew(0), seeded_again], ids=["generator", "manual_seed"])
def test_a_stream_that_begins_again_in_each_call_is_named(verify):
    verdict = verdict_of(verify, "draws_are_independent")
    assert verdict.status is Status.REFUTED
    assert "one state of" in verdict.statement
    assert "at test_inputs_unchanged.py:" in verdict.statement


@pytest.mark.thorough
def test_one_generator_of_the_request_moves_on_and_holds():
    assert verdict_of(of_the_request(), "draws_are_independent").status is Status.HOLDS


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (torch.tensor([1.0]).bfloat16(), "it emitted bfloat16, expected a type that holds every token id"),
        (torch.tensor([1.0]).half(), "it emitted float16, expected a type that holds every token id"),
        (torch.tensor([True]), "it emitted bools"),
        ([torch.tensor(True)], "it emitted bools"),
        (torch.tensor([torch.nan]), "it emitted nan, expected whole numbers"),
    ],
)
def test_tensors_of_no_tokens_are_said_in_a_sentence(answer, said):
    with pytest.raises(UnusableSubject) as refusal:
        emitted_row(answer, drafts=2)
    assert str(refusal.value).startswith(said)


def test_tensors_of_whole_numbers_are_tokens():
    for answer in (torch.tensor([1, 2, -1]), torch.tensor([1.0, 2.0, -1.0]), [torch.tensor(1), torch.tensor(2)]):
        assert emitted_row(answer, drafts=2) == (1, 2)
