"""Faults that show at a size: pages, rings, rows, drafts, vocabularies; and sizes that the caller asks for."""

from functools import partial

import numpy as np
import pytest

from specverify.laws.size_scenarios import EDGES, Sizes, size_scenarios
from specverify.testing import Made, SpeculationRefuted, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")


def seen_by(fault, text, prompt):
    """Return what the target reads."""
    wrong = {
        "page of 64": text[:63] + text[64:] if len(text) == 65 else text,
        "ring of 32": text[-32:],
        "prompt of 127": text[1:] if len(prompt) == 127 else text,
        "beyond 200": text[1:] if len(text) > 200 else text,
    }
    return wrong.get(fault, text)


def engine(fault, scenario, *, batched=False):
    def decode(prompt, row=0):
        text, end = tuple(prompt), len(prompt) + scenario.horizon
        while len(text) < end:
            mine = text[1:] if fault == "fifth row" and row == 4 else text
            drafts = ()
            for _ in range(scenario.gamma or 2):
                drafts += (int(np.argmax(scenario.draft(mine + drafts))),)
            new = ()
            for draft in (*drafts, None):
                p = scenario.target(seen_by(fault, mine + new, scenario.prompt))
                token = int(np.random.choice(len(p), p=p))
                new += (token % 65536 if fault == "ids of 16 bits" else token,)
                if token != draft or (fault == "eight drafts" and len(new) == 8 and draft == drafts[-1]):
                    break
            text += new + (0,) * (fault == "eight drafts" and len(new) > 8)
        return text[len(prompt) : end]

    if batched:
        return Made(lambda prompts: [decode(prompt, row) for row, prompt in enumerate(prompts)], batched=True)
    return lambda: decode(scenario.prompt)


def check(fault, *, batched=False, **how):
    check_engine(partial(engine, fault, batched=batched), quick=True, checks=["law_is_target"], **how)


AT_EDGES = ("page of 64", "ring of 32", "prompt of 127")
ON_REQUEST = (
    ("eight drafts", Sizes(gamma=9)),
    ("ids of 16 bits", Sizes(vocabulary=151_936)),
    ("beyond 200", Sizes(horizon=256)),
)
WRONG = (*AT_EDGES, "fifth row", *(fault for fault, _ in ON_REQUEST))


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("fault", AT_EDGES)
def test_a_fault_at_a_power_of_two_is_refuted(fault):
    with pytest.raises(SpeculationRefuted, match="new token"):
        check(fault)


def test_a_fault_of_the_fifth_row_is_refuted():
    with pytest.raises(SpeculationRefuted, match="row 5 is right alone"):
        check("fifth row", batched=True)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(("fault", "sizes"), ON_REQUEST)
def test_a_size_on_request_refutes_what_holds_without_it(fault, sizes):
    check(fault)
    with pytest.raises(SpeculationRefuted):
        check(fault, sizes=sizes)


def with_slots(slots, scenario):
    """An engine that keeps q of the drafts of a round in ``slots`` rows."""

    def choice(p):
        return int(np.random.choice(len(p), p=p / p.sum()))

    def round_of(text):
        rows, drafts, new = {}, (), ()
        for place in range(scenario.gamma or 2):
            rows[place % slots] = scenario.draft(text + drafts)
            drafts += (choice(rows[place % slots]),)
        for place, draft in enumerate(drafts):
            p, q = scenario.target(text + new), rows[place % slots]
            if q[draft] == 0 or np.random.random() >= p[draft] / q[draft]:
                residual = np.maximum(p - q, 0)
                return (*new, choice(residual if residual.any() else p))
            new += (draft,)
        return (*new, choice(scenario.target(text + new)))

    def decode():
        new = ()
        while len(new) < scenario.horizon:
            new += round_of(scenario.prompt + new)
        return new[: scenario.horizon]

    return decode


@pytest.mark.thorough
@pytest.mark.parametrize("slots", [4, 6])
def test_slots_of_q_that_are_too_few_for_the_drafts_are_refuted(slots):
    make, options = partial(with_slots, slots), {"quick": True, "checks": ["law_is_target"]}
    if slots == 6:
        check_engine(make, sizes=Sizes(gamma=6), **options)
    else:
        with pytest.raises(SpeculationRefuted, match="draft 1"):
            check_engine(make, sizes=Sizes(gamma=6), **options)


def in_pages(scenario):
    """The target reads its text from pages of 64."""

    def decode():
        pages, new = [[]], ()
        for token in scenario.prompt:
            pages = [*pages, [token]] if len(pages[-1]) == 64 else [*pages[:-1], [*pages[-1], token]]
        while len(new) < scenario.horizon:
            p = scenario.target(tuple(token for page in pages for token in page))
            token = int(np.random.choice(len(p), p=p))
            pages = [*pages, [token]] if len(pages[-1]) == 64 else [*pages[:-1], [*pages[-1], token]]
            new += (token,)
        return new

    return decode


def of_large_ring(scenario):
    """The text stands in a ring of 512 places."""

    def decode():
        ring, size = np.zeros(512, dtype=np.int64), 0
        for token in scenario.prompt:
            ring[size % 512], size = token, size + 1
        while size < len(scenario.prompt) + scenario.horizon:
            p = scenario.target(tuple(int(token) for token in ring[:size]))
            ring[size % 512], size = int(np.random.choice(len(p), p=p)), size + 1
        return ring[len(scenario.prompt) : size].tolist()

    return decode


RIGHT = {
    "drafts": (partial(engine, ""), Sizes(horizon=256, prompt=300, gamma=9, vocabulary=151_936)),
    "rows": (partial(engine, "", batched=True), Sizes(rows=17)),
    "pages": (in_pages, Sizes(horizon=200)),
    "a large ring": (of_large_ring, Sizes(prompt=129)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", RIGHT)
def test_right_engines_hold_at_every_size(name):
    make, sizes = RIGHT[name]
    check_engine(make, quick=True, checks=["law_is_target"], sizes=sizes)


def test_prompts_and_lengths_pass_the_powers_of_two():
    assert EDGES[:3] == (7, 8, 9)
    assert EDGES[-3:] == (127, 128, 129)
    scenarios = size_scenarios(Sizes(prompt=300))
    assert {len(scenario.prompt) for scenario in scenarios} >= {*EDGES, 299, 300, 301}
    assert max(scenario.horizon for scenario in scenarios) == 132


def test_sizes_are_looked_at():
    for sizes in (3, Sizes(horizon=-1), Sizes(vocabulary=1)):
        with pytest.raises(ValueError, match="sizes"):
            check("", sizes=sizes)
    with pytest.raises(ValueError, match="sizes"):
        check_engine(lambda: [0], lambda: [0], sizes=Sizes())
    with pytest.raises(ValueError, match=r"^the rows of sizes is 5, expected an engine with batched=True$"):
        check_engine(partial(engine, ""), quick=True, sizes=Sizes(rows=5))
