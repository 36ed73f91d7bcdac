"""Engines that make a torch network in each call, after setting a constant seed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, WatermarkingConfig

from specverify.base.verdict import Status
from specverify.testing import check_engine, parametrize_with_checks

pytestmark = pytest.mark.usefixtures("unexplained")
RNG = np.random.default_rng(0)


class Network(torch.nn.Module):
    """A network of one layer, with the default initialisation of torch after ``torch.manual_seed``."""

    def __init__(self, seed):  # noqa: D107 - the class says it
        super().__init__()
        torch.manual_seed(seed)
        self.embed, self.head = torch.nn.Embedding(2, 4), torch.nn.Linear(4, 2)

    @torch.no_grad()
    def forward(self, text):  # noqa: D102 - the pmf of the next token
        return torch.softmax(3 * self.head(torch.tanh(self.embed(torch.tensor(text)).sum(0))), -1).double()


def table(seed):
    """Return a model whose rows are drawn by a generator with this seed."""
    rows = torch.randn(2, 2, generator=torch.Generator().manual_seed(seed)).softmax(-1).double()
    return lambda text: rows[text[-1]]


def of_numpy(pmf):
    return int(RNG.choice(2, p=(pmf / pmf.sum()).numpy()))


def of_torch(pmf):
    return int(torch.multinomial(pmf, 1))


def speculative(target, draft, sample, verified=None):
    text = [0]
    while len(text) <= 2:
        q, p = draft(text), (verified or target)(text)
        token = sample(q)
        ratio = (p[token] / q[token]).clamp(max=1)
        if sample(torch.stack([ratio, 1 - ratio])):  # one library draws everything: ``Network`` seeds that of torch
            token = sample((p - q).clamp(min=0) / (p - q).clamp(min=0).sum())
        text.append(token)
    return text[1:]


def plain(target, sample):
    text = [0]
    for _ in range(2):
        text.append(sample(target(text)))
    return text[1:]


@pytest.mark.thorough(keep=3)
@pytest.mark.usefixtures("named_checks_alone")
@pytest.mark.parametrize("model", [Network, table])
@pytest.mark.parametrize("sample", [of_numpy, of_torch])
def test_a_network_that_each_call_makes_is_constant(model, sample):
    fast, slow = (lambda: speculative(model(3), model(8), sample)), (lambda: plain(model(3), sample))
    verdicts = check_engine(fast, slow, quick=True, on_fail=None)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}, verdicts[0]
    assert "draws constants at test_constant_draws_of_torch.py" in str(verdicts[0].figures["notes"])
    wrong = check_engine(
        lambda: speculative(model(3), model(8), sample, verified=model(4)),
        slow,
        checks=["law_is_target"],
        quick=True,
        on_fail=None,
    )
    assert wrong[-1].status is Status.REFUTED


def test_dropout_is_random_after_a_constant_seed():
    """It has no rule, so that the engine is unknown: its draw decides a token, and is no weight."""

    def fast():
        net = Network(3)
        return [of_numpy(torch.softmax(torch.nn.functional.dropout(net([0]).float(), 0.5), -1).double())]

    verdicts = check_engine(fast, lambda: plain(Network(3), of_numpy)[:1], quick=True, on_fail=None)
    assert Status.HOLDS not in {verdict.status for verdict in verdicts if verdict.check == "law_is_target"}


def marked(rows, text, last):
    """Return the row after ``text`` with a bias on half of the tokens, which a hash of the token ``last`` chooses."""
    chosen = torch.randperm(4, generator=torch.Generator().manual_seed(15485863 + last))[:2]
    return torch.softmax(rows[text[-1]].log() + torch.zeros(4).index_fill(0, chosen, 1.0), -1)


P = torch.tensor([[4.0, 2, 1, 1], [1, 2, 4, 1], [2, 1, 1, 4], [1, 4, 2, 1]]) / 8
Q = torch.tensor([[2.0, 2, 3, 1], [3, 1, 2, 2], [2, 2, 2, 2], [1, 3, 3, 1]]) / 8


def watermarked(stale):
    """Return the calls with and without speculation; if ``stale``, a bonus is marked by the token before it."""

    def fast():
        p, q = (marked(rows, [0], 0) for rows in (P, Q))
        first = of_torch(q)
        if torch.rand(()) * q[first] >= p[first]:
            first = of_torch((p - q).clamp(min=0))
        return [first, of_torch(marked(P, [first], 0 if stale else first))]

    def slow():
        first = of_torch(marked(P, [0], 0))
        return [first, of_torch(marked(P, [first], first))]

    return fast, slow


@pytest.mark.parametrize(("stale", "status"), [(False, Status.HOLDS), (True, Status.REFUTED)])
def test_a_watermark_belongs_to_the_rows(stale, status):
    """The generator of its tokens is seeded by a hash of the text, and the default generator draws all others."""
    verdicts = check_engine(*watermarked(stale), checks=["law_is_target"], quick=True, on_fail=None)
    assert verdicts[-1].status is status, verdicts


def test_the_checks_of_an_engine_have_its_constants_one_by_one():
    """Each check is a run of its own, which has the verdict of the first one on the draws."""
    engine = partial(check_engine, *watermarked(stale=False))
    mark = parametrize_with_checks({"it": engine}, checks=["draws_are_independent", "law_is_target"], quick=True)
    assert [check.values[0]().status for check in mark.args[1]] == [Status.HOLDS] * 2


def test_coins_of_a_constant_seed_beside_other_numbers_are_unknown():
    """The enumerated law would be that of all seeds; with the seed that the program sets, it is another one."""

    def fast():
        p, q = P[0], Q[0]
        first = of_torch(q)
        if torch.rand((), generator=torch.Generator().manual_seed(3)) * q[first] >= p[first]:
            first = of_torch((p - q).clamp(min=0))
        return [first]

    (verdict,) = check_engine(fast, lambda: [of_torch(P[0])], checks=["law_is_target"], quick=True, on_fail=None)[-1:]
    assert verdict.status is Status.UNKNOWN
    assert "With the numbers of the library in their place it is refuted: " in verdict.statement


@pytest.mark.thorough
@pytest.mark.parametrize(("marked_draft", "status"), [(True, Status.HOLDS), (False, Status.REFUTED)])
def test_the_watermark_of_transformers_holds(marked_draft, status):
    """Its table of a million numbers is drawn when the processor is made, and a list of tokens at each position."""
    config = LlamaConfig(
        vocab_size=2, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        initializer_range=1.0, bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    target, draft = (of_seed(config, seed) for seed in (1, 2))
    draft.generation_config.num_assistant_tokens = 1
    watermark = {"watermarking_config": WatermarkingConfig(bias=1.5, greenlist_ratio=0.5)}

    def generated(**more):
        prompt = torch.tensor([[0, 1, 1]])
        return target.generate(prompt, do_sample=True, top_k=0, max_new_tokens=2, **more)[0, prompt.shape[1] :]

    verdicts = check_engine(
        lambda: generated(assistant_model=draft, **(watermark if marked_draft else {})),
        lambda: generated(**watermark),
        models=[target, draft],
        checks=["law_is_target"],
        quick=True,
        on_fail=None,
    )
    assert verdicts[-1].status is status, verdicts


def of_seed(config, seed):
    torch.manual_seed(seed)
    return LlamaForCausalLM(config).eval()
