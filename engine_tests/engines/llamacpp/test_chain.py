"""The laws that llama.cpp's server is judged by: every option counts, and wrong servers are refuted; none is needed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import product

import numpy as np
import pytest

from specverify.engines.llamacpp.chain import PROMPT, law, next_pmf, raw_logprobs, request
from specverify.engines.llamacpp.weights import END
from specverify.subjects.decoding import EngineRow, row_subject
from specverify.subjects.subject import UnusableSubject
from specverify.testing import SpeculationRefuted, check_subject
from test_support.samplers.black_boxes import sampler_of

REQUESTS = {
    "top-k": request(top_k=2),
    "top-p": request(top_p=0.7),
    "at least two kept": request(top_p=0.1, min_keep=2),
    "min-p": request(min_p=0.3),
    "typical-p": request(typical_p=0.6),
    "top-n-sigma": request(top_n_sigma=1.0),
    "xtc": request(xtc_probability=0.5, xtc_threshold=0.12),
    "dynamic temperature": request(dynatemp_range=0.6, dynatemp_exponent=2.0),
    "order": request(temperature=1.5, top_p=0.6, samplers=("temperature", "top_p")),
    "penalties": request(repeat_penalty=1.3, presence_penalty=0.8, frequency_penalty=0.4, repeat_last_n=3),
    "mirostat": request(horizon=4, mirostat=2, mirostat_tau=1.5, mirostat_eta=1.0),
    "bias": request(logit_bias=((0, 2.0), (6, False))),
    "no end": request(ignore_eos=True),
    "grammar": request(letters=(0, 1, 6)),
}
BEGINNINGS = [new for length in range(4) for new in product(range(7), repeat=length)]


def far_apart(one, other, new):
    """Return whether two requests go on by other pmfs; not where one of them is near a tie."""
    with suppress(UnusableSubject):
        return np.abs(next_pmf(one)(new) - next_pmf(other)(new)).max() > 1e-3
    return False


@pytest.mark.parametrize("name", REQUESTS)
def test_every_option_changes_the_law(name):
    """The control of all rows: a law that forgot an option would accuse a server that heeds it."""
    asked = REQUESTS[name]
    for option, _ in asked.options:
        if option != "n_predict":
            less = asked._replace(options=tuple(item for item in asked.options if item[0] != option))
            assert any(far_apart(asked, less, new) for new in BEGINNINGS), option


@pytest.mark.parametrize("name", REQUESTS)
def test_a_law_sums_to_one_and_ends_at_ends(name):
    found = law(REQUESTS[name]._replace(options=tuple((dict(REQUESTS[name].options) | {"n_predict": 2}).items())))
    assert sum(found.values()) == pytest.approx(1)
    assert all(END not in text[:-1] for text in found)
    assert all(len(text) == 2 or text[-1] == END for text in found)


def test_a_text_is_cut_at_a_stop_string():
    found = law(request(horizon=3, stop=("ab", "c")))
    assert {(0, 1), (2,)} <= set(found)
    assert not any(text[:2] == (0, 1) and len(text) > 2 for text in found)


def test_penalties_count_the_last_tokens_of_prompt_and_text():
    """The prompt ends in 2, 3, 1; of two tokens that are not among the last the odds stay."""
    free, last, whole = (
        next_pmf(request(repeat_penalty=factor, repeat_last_n=number))(())
        for factor, number in ((1.0, 64), (2.0, 2), (2.0, 64))
    )
    assert last[2] / last[0] == pytest.approx(free[2] / free[0])
    assert last[3] / last[0] != pytest.approx(free[3] / free[0])
    assert whole[2] / whole[0] != pytest.approx(free[2] / free[0])


def test_xtc_excludes_likely_tokens_but_the_least_likely_of_them():
    free, excluded = next_pmf(request())(()), next_pmf(request(xtc_probability=1.0, xtc_threshold=0.12))(())
    likely = [token for token in range(8) if free[token] >= 0.12]
    without = {token for token in range(8) if excluded[token] == 0}
    assert without == set(likely) - {min(likely, key=free.__getitem__)}
    mixed = next_pmf(request(xtc_probability=0.5, xtc_threshold=0.12))(())
    assert mixed == pytest.approx((free + excluded) / 2)


def test_mirostat_keeps_less_after_a_surprise():
    pmf = next_pmf(request(mirostat=2, mirostat_tau=1.2, mirostat_eta=0.5))
    likely, rare = int(pmf(()).argmax()), min(np.flatnonzero(pmf(())), key=pmf(()).__getitem__)
    assert likely != rare
    assert np.count_nonzero(pmf((likely,))) >= 1
    assert np.count_nonzero(pmf((int(rare),))) <= np.count_nonzero(next_pmf(request())((int(rare),)))


def test_a_truncation_that_rounding_could_decide_is_refused():
    edge = float(np.exp(raw_logprobs(PROMPT)).max())
    with pytest.raises(UnusableSubject, match="top-p is decided by"):
        next_pmf(request(top_p=edge))(())


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("grammar", {"letters": (0, 1, 2, 6)}),
        ("penalties", {"repeat_last_n": 64}),
        ("order", {"samplers": ("top_p", "temperature")}),
        ("mirostat", {"mirostat_eta": 0.0}),
    ],
)
def test_a_server_that_mistakes_an_option_is_refuted_and_a_right_one_holds(name, wrong):
    asked = REQUESTS[name]
    mistaken = law(asked._replace(options=tuple((dict(asked.options) | wrong).items())))
    right = partial(law, asked)
    check_subject(row_subject("right", "draws the law", EngineRow(sampler_of(right()), right)), sampled=True)
    with pytest.raises(SpeculationRefuted):
        check_subject(row_subject("wrong", "mistakes it", EngineRow(sampler_of(mistaken), right)), sampled=True)
