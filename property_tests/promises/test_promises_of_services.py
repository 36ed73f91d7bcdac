"""Batches, cuts, statistics, drafts, constraints and sizes of black boxes: four wrong services and four right ones."""

import itertools
import random

import numpy as np
import pytest

from specverify.testing import check_sampler
from test_support.promises.services import LAW, LENGTH, WAYS, P, Q, inverse

HOW = {"law": LAW, "tv": 0.4, "on_fail": None, "largest_call": 256}


def statuses(sample, **how):
    return {v.check: v.status for v in check_sampler(sample, **{**HOW, **how})}


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    monkeypatch.setattr("specverify.promises.sampled.SAMPLES", 60)
    monkeypatch.setattr("specverify.promises.constraint.SAMPLES", 300)


def rows_of(texts):
    return [{"tokens": list(text)} for text in texts]


def plain(uniform, length=LENGTH, row=0):
    """Draw token by token; ``uniform(new)`` is the random number of the token behind ``new``."""
    new = ()
    while len(new) < length:
        row = inverse(P[row], uniform(new))
        new += (row,)
    return new


# Batches.


def of_streams(streams):
    """All rows get a token, then all get the next; each row reads its stream."""
    texts = [()] * len(streams)
    for _ in range(LENGTH):
        texts = [
            (*text, inverse(P[text[-1] if text else 0], stream.random()))
            for text, stream in zip(texts, streams, strict=True)
        ]
    return texts


def row_by_row(seed, n, calls):
    streams = [np.random.default_rng((seed, row)) for row in range(n)]
    return [plain(lambda new, stream=stream: stream.random()) for stream in streams]


def in_lockstep(seed, n, calls):
    return of_streams([random.Random(f"{seed} {row}") for row in range(n)])


def last_row_first(seed, n, calls):
    texts = {row: plain(lambda new, row=row: random.Random(f"{seed} {row} {new}").random()) for row in range(n)[::-1]}
    return [texts[row] for row in range(n)]


def noise_of_all_places(seed, n, calls):
    noise = [np.random.default_rng((seed, row)).random(LENGTH) for row in range(n)]
    return [plain(lambda new, mine=mine: mine[len(new)]) for mine in noise]


def one_stream(seed, n, calls):
    """The rows read one stream in the order of time, so a row depends on their number."""
    return of_streams([np.random.default_rng(seed)] * n)


def seed_with_the_number_of_rows(seed, n, calls):
    return in_lockstep(f"{seed} {n}", n, calls)


def seed_from_the_last_row(seed, n, calls):
    return in_lockstep(seed, n, calls)[::-1]


def state_of_calls_before(seed, n, calls):
    return in_lockstep(f"{seed} {next(calls) // 3}", n, calls)


RIGHT_BATCHES = (row_by_row, in_lockstep, last_row_first, noise_of_all_places)
WRONG_BATCHES = (one_stream, seed_with_the_number_of_rows, seed_from_the_last_row, state_of_calls_before)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("serve", [*RIGHT_BATCHES, *WRONG_BATCHES])
def test_rows_of_a_seed_do_not_depend_on_others(way, serve):
    calls = itertools.count()
    with WAYS[way](lambda seed, n: rows_of(serve(seed, n, calls)), "ids") as sample:
        found = statuses(sample, promises={"batch"})
    assert found["batch_is_alone"] == ("holds" if serve in RIGHT_BATCHES else "refuted"), found


def test_calls_of_one_row_have_no_neighbours():
    found = statuses(lambda seed, n: row_by_row(seed, n, None), promises={"batch"}, largest_call=1)
    assert found["batch_is_alone"] == "unknown"


# Cuts. ``uniform(seed, row, prefix, new)`` is the random number of the token behind prefix and new.

RIGHT_CUTS = {
    "of the position": lambda seed, row, prefix, new: np.random.default_rng((seed, row, len(prefix + new))).random(),
    "of the text": lambda seed, row, prefix, new: random.Random(f"{seed} {row} {prefix + new}").random(),
    "of a stream, by the position": lambda seed, row, prefix, new: np.random.default_rng((seed, row)).random(9)[
        len(prefix + new)
    ],
    "of a generator of Python": lambda seed, row, prefix, new: random.Random(
        seed + 7919 * row + len(prefix + new) * 104729
    ).random(),
}
WRONG_CUTS = {
    "stream begins again": lambda seed, row, prefix, new: np.random.default_rng((seed, row)).random(9)[len(new)],
    "seed with the length of the prompt": lambda seed, row, prefix, new: np.random.default_rng(
        (seed, row, len(prefix), len(new))
    ).random(),
    "position from the end": lambda seed, row, prefix, new: np.random.default_rng((seed, row)).random(9)[
        LENGTH - len(new)
    ],
    "token before left out": RIGHT_CUTS["of the position"],
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*RIGHT_CUTS, *WRONG_CUTS])
def test_a_text_that_is_cut_is_continued(way, kind):
    uniform = {**WRONG_CUTS, **RIGHT_CUTS}[kind]

    def answer(seed, n, prefix=()):
        last = 0 if kind == "token before left out" or not prefix else prefix[-1]
        return rows_of(plain(lambda new, row=row: uniform(seed, row, prefix, new), row=last) for row in range(n))

    with WAYS[way](answer, "ids") as sample:
        found = statuses(sample, promises={"resume"})
    assert found["resume_continues"] == ("holds" if kind in RIGHT_CUTS else "refuted"), found


# Statistics and drafts: a chain whose rounds are known.


def chain(rng, draft_row, *, accepts=True):
    """Return the new tokens and the number of accepted drafts; a round has one draft and no bonus token."""
    row, before, new, accepted = 0, 0, (), 0
    while len(new) < LENGTH:
        q = draft_row(row, before)
        draft = int(rng.choice(3, p=q))
        if not accepts:
            token = int(rng.choice(3, p=P[row]))
        elif rng.random() < P[row][draft] / q[draft]:
            token, accepted = draft, accepted + 1
        else:
            left = np.maximum(P[row] - q, 0)
            token = int(rng.choice(3, p=left / left.sum()))
        new, before, row = (*new, token), row, token
    return new, accepted


def two_a_round(rng):
    """Return tokens, accepted drafts and rounds: drawn tokens are compared with greedy drafts, one more follows one."""
    row, new, accepted, rounds = 0, (), 0, 0
    while len(new) < LENGTH:
        rounds += 1
        draft = int(Q[row].argmax())
        row = inverse(P[row], rng.random())
        new += (row,)
        if row == draft:
            accepted += 1
            row = inverse(P[row], rng.random())
            new += (row,)
    return new[:LENGTH], accepted, rounds


def of_chain(rng):
    new, accepted = chain(rng, lambda row, before: Q[row])
    positions = {"accepted_per_position": [accepted, 0], "tokens_per_round": 1.0}
    return new, {
        "accepted": accepted,
        "drafted": LENGTH,
        "rounds": LENGTH,
        "acceptance_rate": accepted / 2,
        **positions,
    }


def never_drafts(rng):
    return plain(lambda new: rng.random()), {"accepted": 0, "drafted": 0, "rounds": LENGTH, "tokens_per_round": 1.0}


def first_by_prefill(rng):
    return plain(lambda new: rng.random()), {"accepted": 0, "drafted": 1, "rounds": LENGTH - 1}


def with_a_bonus_token(rng):
    new, accepted, rounds = two_a_round(rng)
    return new, {"accepted": accepted, "drafted": rounds, "rounds": rounds, "tokens_per_round": 1 + accepted / rounds}


def changed(**changes):
    """Return the chain with other reported numbers: functions of the right ones."""

    def decode(rng):
        new, report = of_chain(rng)
        return new, {**report, **{name: change(report) for name, change in changes.items()}}

    return decode


RIGHT_REPORTS = {
    "chain": of_chain,
    "never drafts": never_drafts,
    "first by prefill": first_by_prefill,
    "with a bonus token": with_a_bonus_token,
}
WRONG_REPORTS = {
    "bonus counted as accepted": changed(accepted=lambda told: told["accepted"] + 1),
    "rounds count drafts": changed(rounds=lambda told: 2 * told["rounds"]),
    "rate of rounds": changed(acceptance_rate=lambda told: float(told["accepted"] > 0)),
    "positions shifted": changed(accepted_per_position=lambda told: told["accepted_per_position"][::-1]),
}
FORMS = ("choice", "meta_info", "timings", "stream")
"""Where a server reports: among the fields of a choice, in SGLang's place, in llama.cpp's, at the end of a stream."""
SGLANG = {"accepted": "spec_accept_token_num", "drafted": "spec_draft_token_num", "rounds": "spec_verify_ct"}
SGLANG |= {"acceptance_rate": "spec_accept_rate", "tokens_per_round": "spec_accept_length"}
LLAMA = {"accepted": "draft_n_accepted", "drafted": "draft_n"}


def reported(report, form, way):
    """Return where the numbers stand in a row."""
    if way == "sampler" or form == "choice":
        return {"report": report}
    if form == "meta_info":
        known = {SGLANG[name]: value for name, value in report.items() if name in SGLANG}
        return {"report": {"meta_info": known, **{name: v for name, v in report.items() if name not in SGLANG}}}
    known = {LLAMA[name]: value for name, value in report.items() if name in LLAMA}
    return {"whole": {"timings": known, **{name: value for name, value in report.items() if name not in LLAMA}}}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*RIGHT_REPORTS, *WRONG_REPORTS])
def test_reported_numbers_fit_the_run(way, kind):
    decode = {**RIGHT_REPORTS, **WRONG_REPORTS}[kind]
    names = tuple(decode(np.random.default_rng(0))[1])
    form = FORMS[list(RIGHT_REPORTS if kind in RIGHT_REPORTS else WRONG_REPORTS).index(kind)]

    def answer(seed, n):
        made = (decode(np.random.default_rng((seed, row))) for row in range(n))
        return [{"tokens": list(new), **reported(report, form, way)} for new, report in made]

    with WAYS[way](answer, "ids", single=form == "timings", stream=form == "stream") as sample:
        found = statuses(sample, returns=names)
    assert found["values_match"] == ("holds" if kind in RIGHT_REPORTS else "refuted"), found


def test_numbers_of_a_whole_answer_are_read_of_single_completions_alone():
    def answer(seed, n):
        made = (of_chain(np.random.default_rng((seed, row))) for row in range(n))
        return [{"tokens": list(new), **reported(report, "timings", "http")} for new, report in made]

    with WAYS["http"](answer, "ids") as sample:
        assert all("accepted" not in row for row in (*sample(1, 1), *sample(1, 2)))
    with WAYS["http"](answer, "ids", single=True) as sample:
        assert all("accepted" in row for row in sample(1, 2))


def accepted_law():
    """Return the law of the number of accepted drafts of the chain."""
    least = np.minimum(P, Q)
    rates = least.sum(axis=1)
    left = np.maximum(P - Q, 0)
    left[0] *= (1 - rates[0]) / left[0].sum()
    kept = float(least[0] @ rates)
    one = float(least[0] @ (1 - rates)) + float(left[0] @ rates)
    return [1 - kept - one, one, kept]


class Turned:
    """The generator of Python in the place of NumPy's."""

    def __init__(self, seed):
        self.random = random.Random(str(seed)).random

    def choice(self, _, p):
        return inverse(p, self.random())


def by_coupling(seed):
    """Draw each token from p and count it as accepted with probability min(1, q/p)."""
    rng = np.random.default_rng(seed)
    new = plain(lambda _: rng.random())
    return new, sum(
        bool(rng.random() < Q[row][token] / P[row][token]) for row, token in zip((0, *new), new, strict=False)
    )


def by_one_uniform(seed):
    """Draw the draft and its fate by one uniform each, the residual by inversion."""
    rng = Turned((seed, 1))
    return chain(rng, lambda row, before: Q[row] / Q[row].sum())


RIGHT_DRAFTS = {
    "numpy": lambda seed: chain(np.random.default_rng(seed), lambda row, before: Q[row]),
    "random": lambda seed: chain(Turned(seed), lambda row, before: Q[row]),
    "coupling": by_coupling,
    "one uniform": by_one_uniform,
}
WRONG_DRAFTS = {
    "stale text": lambda seed: chain(np.random.default_rng(seed), lambda row, before: Q[before]),
    "row of another token": lambda seed: chain(Turned(seed), lambda row, before: Q[(row + 1) % 3]),
    "uniform drafts": lambda seed: chain(np.random.default_rng(seed), lambda row, before: np.full(3, 1 / 3)),
    "nothing accepted": lambda seed: chain(Turned(seed), lambda row, before: Q[row], accepts=False),
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*RIGHT_DRAFTS, *WRONG_DRAFTS])
def test_accepted_drafts_follow_their_law(way, kind):
    decode = {**RIGHT_DRAFTS, **WRONG_DRAFTS}[kind]

    def answer(seed, n):
        made = (decode((seed, row)) for row in range(n))
        return [{"tokens": list(new), "report": {"accepted": accepted}} for new, accepted in made]

    with WAYS[way](answer, "ids") as sample:
        found = statuses(sample, returns={"accepted": accepted_law()}, tv=0.05 if kind in WRONG_DRAFTS else 0.4)
    assert found["acceptance_fits_law"] == ("holds" if kind in RIGHT_DRAFTS else "refuted"), found


# Constraints: a token never follows itself.

WORDS = 3


def no_repeat(new):
    return [not new or token != new[-1] for token in range(3)]


def masked(row, new, weights=P):
    result = weights[row] * np.array(no_repeat(new), dtype=float)
    return result / result.sum()


def masked_law():
    texts = itertools.product(range(3), repeat=WORDS)
    laws = {text: np.prod([masked((0, *text)[i], text[:i])[text[i]] for i in range(WORDS)]) for text in texts}
    return {text: float(mass) for text, mass in laws.items() if mass}


def constrained(rng, fault="", gamma=1):
    """Chain with masked rows and ``gamma`` drafts a round; the fault says which mask is read."""
    new, lost = (), ()
    while len(new) < WORDS:
        drafts, first, kept = (), new, ()
        for _ in range(gamma):
            text = new + drafts
            drafts += (inverse(masked(text[-1] if text else 0, text, Q), rng.random()),)
        for place in range(gamma + 1):
            text = new + kept
            row = text[-1] if text else 0
            read = {"mask of the round's first row": first, "mask follows rejected drafts": text + lost}.get(
                fault, text
            )
            bare = fault == "no row is masked" or (fault == "bonus not masked" and place == gamma)
            p = P[row] if bare else masked(row, read)
            if place == gamma:
                kept += (inverse(p, rng.random()),)
                break
            q = masked(row, text, Q)
            if rng.random() < p[drafts[place]] / q[drafts[place]]:
                kept += (drafts[place],)
                continue
            left = np.maximum(p - q, 0)
            kept += (inverse(left / left.sum(), rng.random()),)
            lost = drafts[place : place + 1]
            break
        new += kept
    return new[:WORDS]


def drawn_again(rng):
    """Draw from p until the constraint allows the token."""
    new = ()
    while len(new) < WORDS:
        token = inverse(P[new[-1] if new else 0], rng.random())
        new += (token,) if no_repeat(new)[token] else ()
    return new


RIGHT_CONSTRAINTS = {
    "one draft": constrained,
    "two drafts": lambda rng: constrained(rng, gamma=2),
    "three drafts": lambda rng: constrained(rng, gamma=3),
    "drawn again": drawn_again,
}
WRONG_CONSTRAINTS = {
    name: lambda rng, name=name: constrained(rng, name)
    for name in (
        "mask of the round's first row",
        "mask follows rejected drafts",
        "no row is masked",
        "bonus not masked",
    )
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*RIGHT_CONSTRAINTS, *WRONG_CONSTRAINTS])
def test_nothing_comes_out_that_the_constraint_forbids(way, kind):
    decode = {**RIGHT_CONSTRAINTS, **WRONG_CONSTRAINTS}[kind]
    answer = lambda seed, n: rows_of(decode(np.random.default_rng((seed, row))) for row in range(n))  # noqa: E731
    with WAYS[way](answer, "ids", length=WORDS) as sample:
        found = statuses(sample, law=masked_law(), promises={"allowed": no_repeat})
    assert found["constraint_is_kept"] == ("holds" if kind in RIGHT_CONSTRAINTS else "refuted"), found


def test_a_constraint_has_its_function():
    for promises in ({"allowed"}, {"allowed": None}, {"allowed": no_repeat, "seed": no_repeat}):
        with pytest.raises(ValueError, match="promise"):
            check_sampler(lambda seed, n: [(0,)] * n, [1.0], promises=promises)


# Sizes: every row is certain, so one text of any length is the whole law.

LONG, VOCABULARY = 132, 151_936


def next_of(text):
    """Return the only token behind a text; it depends on the whole text."""
    return (sum(text) * 7919 + 104_729 * len(text) + 90_001) % VOCABULARY


def greedy(seen, gamma=0, change=lambda token: token):
    """Decode with ``seen(text)`` in the place of the text; every third draft is right."""
    text = ()
    while len(text) < LONG:
        drafts = tuple(next_of(text) if place % 3 == 0 else 1 for place in range(gamma))
        for draft in (*drafts, None):
            text += (change(next_of(seen(text))),)
            if text[-1] != draft:
                break
    return text[:LONG]


LONG_TEXT = greedy(lambda text: text)
RIGHT_SIZES = {
    "token by token": lambda: greedy(lambda text: text),
    "four drafts": lambda: greedy(lambda text: text, 4),
    "nine drafts": lambda: greedy(lambda text: text, 9),
    "pages": lambda: greedy(lambda text: tuple(t for i in range(0, len(text), 64) for t in text[i : i + 64])),
}
WRONG_SIZES = {
    "page of 64": lambda: greedy(lambda text: text[:63] + text[64:] if len(text) == 65 else text),
    "ring of 32": lambda: greedy(lambda text: text[-32:]),
    "ids of 16 bits": lambda: greedy(lambda text: text, 2, lambda token: token % 65_536),
    "more than 128": lambda: greedy(lambda text: text[1:] if len(text) > 128 else text, 4),
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [*RIGHT_SIZES, *WRONG_SIZES])
def test_a_long_text_of_a_large_vocabulary(way, kind):
    new = {**RIGHT_SIZES, **WRONG_SIZES}[kind]()
    with WAYS[way](lambda seed, n: rows_of([new] * n), "ids", length=LONG) as sample:
        found = statuses(sample, law={LONG_TEXT: 1.0}, largest_call=32)
    assert set(found.values()) == {"holds"} if kind in RIGHT_SIZES else "refuted" in found.values(), found


# Requests that differ: a row is the texts of two requests of one call, whose parameters are temperatures.

PARAMETERS = ({"temperature": 1.0}, {"temperature": 0.5})


def warmed(row, parameters):
    weights = P[row] ** (1 / parameters["temperature"])
    return weights / weights.sum()


DIFFERENT = {
    (a, b): float(warmed(0, PARAMETERS[0])[a] * warmed(0, PARAMETERS[1])[b]) for a in range(3) for b in range(3)
}
RIGHT_PARAMETERS = {
    "own": lambda rows, row: rows[row],
    "a copy": lambda rows, row: dict(rows[row]),
    "found in a table": lambda rows, row: dict(enumerate(rows))[row],
    "merged with defaults": lambda rows, row: {"temperature": 1.0, **rows[row]},
}
WRONG_PARAMETERS = {
    "the first row's": lambda rows, row: rows[0],
    "the last row's": lambda rows, row: rows[-1],
    "the row's before": lambda rows, row: rows[row - 1],
    "merged": lambda rows, row: {"temperature": min(each["temperature"] for each in rows) * 1.2},
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("kind", [*RIGHT_PARAMETERS, *WRONG_PARAMETERS])
def test_requests_of_one_call_have_parameters_of_their_own(kind):
    of_row = {**RIGHT_PARAMETERS, **WRONG_PARAMETERS}[kind]

    def texts_of_both(rng):
        return tuple(inverse(warmed(0, of_row(PARAMETERS, row)), rng.random()) for row in range(2))

    answer = lambda seed, n: [texts_of_both(np.random.default_rng((seed, row))) for row in range(n)]  # noqa: E731
    found = statuses(answer, law=DIFFERENT, tv=0.1)
    assert found["samples_fit_law"] == ("holds" if kind in RIGHT_PARAMETERS else "refuted"), found
