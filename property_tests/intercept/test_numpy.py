"""NumPy's and the standard library's random calls, in tables of expressions: their exact laws, and what is refused."""

from __future__ import annotations

import itertools
import math
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.numpy import numpy_answered_by
from specverify.intercept.python import random_answered_by
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.deferred import OutcomeNumber
from specverify.laws.draws import Replayed
from specverify.laws.enumeration import program_law
from specverify.laws.paths import paths

P, Q, CDF = np.array([0.5, 0.125, 0.375]), np.array([0.25, 0.5, 0.25]), np.array([0.5, 0.625, 1.0])
LAW, LOGITS = {0: 0.5, 1: 0.125, 2: 0.375}, np.array([0.0, 1.0, -0.5, -np.inf])
W, ORDERS = np.exp(LOGITS) / np.exp(LOGITS).sum(), list(itertools.permutations(range(3)))
BEFORE, BOUND_BEFORE = random.Random(3), random.choice


class Always:
    """Answers the first outcome that is possible and remembers the sites."""

    def __init__(self):  # noqa: D107
        self.sites = []

    def categorical(self, pmf, site):  # noqa: D102
        self.sites.append(site)
        return int(np.flatnonzero(pmf)[0])


def table(text):
    return [expression.strip() for expression in text.replace("\n", ";;").split(";;") if expression.strip()]


def value_of(expression, **names):
    return eval(compile(expression, __file__, "eval"), globals() | {"rng": np.random.default_rng(0)} | names)


def run(draws, call, **names):
    with numpy_answered_by(draws), random_answered_by(draws):
        value = value_of(call, **names)
        return plain(int(value) if type(value) is OutcomeNumber else value)


def law_of(call, **names):
    return dict(program_law(lambda draws: run(draws, call, **names)).probabilities)


def plain(outcome):
    """Make NumPy's arrays and scalars hashable."""
    outcome = outcome.tolist() if isinstance(outcome, np.ndarray | np.generic) else outcome
    return tuple(map(plain, outcome)) if isinstance(outcome, list) else outcome


def close(law, expected):
    expected = {outcome: mass for outcome, mass in expected.items() if mass}
    assert law.keys() == expected.keys()
    assert max(abs(law[outcome] - mass) for outcome, mass in expected.items()) < 1e-12


def uniformly(outcomes):
    return {outcome: outcomes.count(outcome) / len(outcomes) for outcome in outcomes}


def twice(law):
    return {(a, b): law[a] * law[b] for a in law for b in law}


def counted(n):
    eighths = itertools.product([0, 0, 0, 0, 1, 2, 2, 2], repeat=n)
    return uniformly([tuple(map(tokens.count, range(3))) for tokens in eighths])


def rejection(accepts):
    rng = np.random.default_rng(0)
    token, residual = int(rng.choice(3, p=Q)), np.maximum(P - Q, 0)
    accepted = value_of(accepts, rng=rng, p=P[token], q=Q[token])
    return token if accepted else int(rng.choice(3, p=residual / residual.sum()))


COINS = """
rng.random() < p / q ;; rng.random() <= p / q ;; not rng.random() >= min(1, p / q) ;; p / q > rng.random()
rng.random() * q < p ;; q * rng.random() - p < 0 ;; rng.uniform() < p / q ;; rng.uniform(0, 2) / 2 < p / q
rng.uniform(-1, 1) < 2 * p / q - 1 ;; 1 - rng.random() > 1 - p / q ;; np.log(rng.random()) < np.log(p) - np.log(q)
np.log(1 - rng.random()) < np.log(p / q) ;; np.exp(np.log(rng.random())) < p / q ;; 1 / rng.random() > q / p
-np.log(rng.random()) > np.log(q / p) ;; rng.exponential() >= np.log(q / p) ;; rng.random(1) < p / q
rng.random((1,), dtype=np.float32)[0] < np.float32(p / q) ;; (rng.random(2).astype(np.float32) < p / q)[1]
np.random.rand() < p / q ;; np.random.random() < p / q ;; np.random.random_sample(1)[0] < p / q
np.random.ranf() < p / q ;; np.random.sample() < p / q ;; np.random.uniform(0, 1) < p / q
np.random.RandomState(1).rand(1, 1)[0, 0] < p / q ;; np.random.Generator(np.random.PCG64(1)).random() < p / q
rng.binomial(1, min(1, p / q)) == 1 ;; rng.uniform([0, 1], [1, 3])[1] < 1 + 2 * p / q
"""
LOOK_UPS = """
np.searchsorted(CDF, rng.random(), side="right") ;; CDF.searchsorted(rng.random()) ;; np.argmax(rng.random() < CDF)
CDF.searchsorted(rng.random(1), side="right")[0] ;; np.searchsorted(CDF, rng.random((2, 1)), "right")[1, 0]
np.searchsorted(2 * CDF, 2 * rng.random(2))[0] ;; np.searchsorted(CDF, 1 - rng.random(2))[0]
np.digitize(rng.random(2), CDF)[1] ;; (CDF > rng.random()).argmax() ;; np.sum(CDF <= rng.random())
(rng.random((2, 1)) < CDF).argmax(axis=-1)[1] ;; np.count_nonzero(rng.random(1) > CDF)
np.where(rng.random() < CDF)[0][0] ;; np.nonzero(np.random.rand() <= CDF)[0][0]
np.where(rng.random(1) < 0.5, 0, np.where(rng.random(1) < 0.25, 1, 2))[0]
(lambda u: next(token for token, bound in enumerate(CDF) if u < bound))(rng.random())
(lambda u: 1 - (np.clip(u, 0.25, 0.75) < 0.5) + (np.minimum(u, 0.9) > 0.625))(rng.random())
rng.choice(3, p=P) ;; np.random.choice(3, p=P.tolist()) ;; rng.multinomial(1, P).argmax() ;; rng.choice([0, 1, 2], p=P)
rng.choice(np.diag([1, 2, 3]), p=P, axis=1).argmax() ;; np.random.multinomial(1, [0.5, 0.125, 0.125]).argmax()
"""
RACES = """
np.argmax(LOGITS + rng.gumbel(size=4)) ;; (rng.gumbel(size=4) + LOGITS).argmax() ;; np.argmax(W / rng.exponential(1, 4))
np.argmax(np.random.gumbel(0, 1, 4) + LOGITS, axis=-1) ;; np.argmax(LOGITS - np.log(-np.log(rng.random(4))))
np.argmax(LOGITS - np.log(-np.log(1 - rng.random(4)))) ;; np.argmax(LOGITS - np.log(-np.log1p(-rng.random(4))))
np.argmax(LOGITS - np.log(rng.exponential(size=4))) ;; np.argmax((LOGITS + rng.gumbel(size=4)) / 0.7)
np.argmax(np.exp(LOGITS + rng.gumbel(size=4))) ;; np.argmin(-rng.gumbel(size=4) - LOGITS)
(W / rng.standard_exponential(4)).argmax() ;; np.argmax(W / np.random.exponential(1.0, 4))
np.argmax(np.log(W[:3] / rng.exponential(size=3))) ;; np.argmin(rng.exponential(size=3) / W[:3])
(rng.exponential(size=4) / np.append(W[:3], 0)).argmin() ;; np.argmin(-np.log(rng.random(3)) / W[:3])
np.argmax(np.log(rng.random(3)) / W[:3]) ;; np.argmin(np.log(rng.exponential(size=3)) - LOGITS[:3])
np.argmin(rng.exponential(1 / W[:3], size=3)) ;; np.argmax(rng.gumbel(LOGITS[:3], size=3))
np.argmax(np.where(np.isfinite(LOGITS), rng.gumbel(size=4) + LOGITS, -np.inf))
np.argmax(np.stack([LOGITS, LOGITS]) + rng.gumbel(size=(2, 4)), axis=1)[1]
np.argmax(LOGITS + rng.gumbel(size=4), keepdims=True)[0] ;; np.argmax(rng.gumbel(size=4) / 2 + LOGITS / 2)
np.argmax(rng.gumbel(size=(4, 1)) + LOGITS[:, None], axis=0, keepdims=True)[0, 0]
"""
TWO = """
np.searchsorted(CDF, np.random.rand(2)) ;; rng.choice(3, size=2, p=P) ;; np.random.multinomial(1, P, size=2).argmax(1)
rng.multinomial(1, np.stack([P, P])).argmax(1) ;; (rng.random((2, 1)) < CDF).argmax(1)
"""
UNIFORM = """
rng.choice(3) ;; rng.integers(3) ;; rng.integers(0, 2, endpoint=True) ;; np.random.randint(3) ;; rng.integers(2, 5) - 2
rng.random(3).argmax() ;; np.argmin(rng.random(3)) ;; np.argmin(rng.exponential(size=3)) ;; np.random.choice([0, 1, 2])
np.argmax(rng.gumbel(size=3)) ;; np.argmax(rng.exponential(size=3)) ;; rng.choice(3, 2, False)[1]
random.choice([0, 1, 2]) ;; BOUND_BEFORE([0, 1, 2]) ;; BEFORE.choice([0, 1, 2]) ;; random.randint(0, 2)
random.SystemRandom().choice([0, 1, 2]) ;; random.randrange(3) ;; random.randrange(0, 6, 2) // 2
random.choices([0, 1, 2])[0] ;; random.sample([0, 1, 2], 2)[1] ;; random.sample(range(30), 2)[1] % 3
["ab", "ba", "bb"].index("".join(random.sample("ab", 2, counts=[1, 2])))
"""
SHUFFLES = """
np.random.permutation(3) ;; rng.permutation([0, 1, 2]) ;; rng.permuted(range(3)) ;; tuple(random.sample(range(3), 3))
(lambda x: (np.random.shuffle(x), tuple(x))[1])([0, 1, 2]) ;; (lambda x: (rng.shuffle(x), plain(x))[1])(np.arange(3))
(lambda x: (random.shuffle(x), tuple(x))[1])([0, 1, 2])
"""
THREE_EIGHTHS = """
random.random() < 0.375 ;; BEFORE.random() < 0.375 ;; random.getrandbits(3) < 3 ;; random.uniform(0, 4) < 1.5
random.uniform(2, 1) > 1.625 ;; random.Random(1).random() < 0.375 ;; np.random.mtrand._rand.rand() < 0.375
random.SystemRandom().random() < 0.375 ;; random.expovariate(1) > -math.log(0.375)
np.log(random.random()) < math.log(0.375) ;; random.expovariate(2) > -math.log(0.375) / 2
BEFORE.choices(range(3), P.tolist(), k=2)[1] == 2 ;; random.choices(range(3), weights=[4, 1, 3])[0] == 2
random.choices(range(3), cum_weights=CDF.tolist())[0] == 2
"""
ONE_IS_LEFT = """np.argmin(-np.log(1 - rng.random(3)) / [0, 1, 0]) ;; np.argmin(rng.exponential(size=3) / [0, 1, 0])
np.argmax((1 - rng.random(3)) ** [np.inf, 1, np.inf]) ;; np.argmax(np.log1p(-rng.random(3)) / [0, 1, 0])
"""
EXPECTED = [
    *((call, {1: 1}) for call in table(ONE_IS_LEFT)),
    *((f"rejection({coin!r})", LAW) for coin in table(COINS)),
    ("rejection('rng.random() < 0.5')", {0: 0.125 + 0.5 * 2 / 3, 1: 0.25, 2: 0.125 + 0.5 / 3}),
    *((call, LAW) for call in table(LOOK_UPS)),
    *((call, dict(enumerate(W))) for call in table(RACES)),
    *((call, twice(LAW)) for call in table(TWO)),
    *((call, uniformly([0, 1, 2])) for call in table(UNIFORM)),
    *((call, {True: 0.375, False: 0.625}) for call in table(THREE_EIGHTHS)),
    ("(lambda u: (u < 0.5, u < 0.25, u >= 0.75, 2 * u < 1))(rng.random())",
     uniformly([(True, True, False, True), (True, False, False, True), (False,) * 4, (False, False, True, False)])),
    ("rng.random(2) < [0.25, 0.25]", twice({True: 0.25, False: 0.75})),
    ("(lambda u: (u < math.nan, u > math.nan, -u < math.nan, -u >= math.nan))(rng.random())", {(False,) * 4: 1}),
    ("(lambda u: (u < u, u <= u, u > u, u >= u))(rng.random())", {(False, True, False, True): 1}),
    ("rng.choice(['a', 'b'], p=[0.25, 0.75])", {"a": 0.25, "b": 0.75}),
    ("rng.integers(0, 2, (2, 1), np.int8).dtype.name, np.random.choice(2, size=(1, 2)).shape", {("int8", (1, 2)): 1}),
    ("np.random.randint(2, size=2)", twice({0: 0.5, 1: 0.5})),
    ("rng.choice(3, 2, replace=False, p=P)", {(a, b): LAW[a] * LAW[b] / (1 - LAW[a]) for a, b, _ in ORDERS}),
    ("np.random.choice(3, 2, False)", uniformly([order[:2] for order in ORDERS])),
    ("np.random.binomial(2, 0.25)", {0: 9 / 16, 1: 6 / 16, 2: 1 / 16}),
    ("rng.binomial(1, [0.25, 0.25])", twice({0: 0.75, 1: 0.25})),
    *((call, uniformly(ORDERS)) for call in table(SHUFFLES)),
    ("rng.permuted(np.eye(2), axis=1)", twice({(1.0, 0.0): 0.5, (0.0, 1.0): 0.5})),
    ("(LOGITS[:2] + rng.gumbel(size=(2, 2))).argmax(1)", twice({0: 1 / (1 + math.e), 1: math.e / (1 + math.e)})),
    *((f"{call}({n}, P)", counted(n)) for call in ("rng.multinomial", "np.random.multinomial") for n in range(4)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), EXPECTED, ids=[call for call, _ in EXPECTED])
def test_calls_have_their_exact_law(call, expected):
    close(law_of(call), expected)


def test_an_acceptance_uniform_reused_for_the_residual_gives_the_biased_law_computed_by_hand():
    target, draft = np.array([0.375, 0.375, 0.25]), np.array([0.0, 0.25, 0.75])
    residual_cdf = np.cumsum([0.75, 0.25, 0.0])  # the residual is (3/8, 1/8, 0)

    def program(reuse):
        rng = np.random.default_rng(0)
        token, u = int(rng.choice(3, p=draft)), rng.random()
        if u < target[token] / draft[token]:
            return token
        return int(np.searchsorted(residual_cdf, u if reuse else rng.random(), side="right"))

    # Token 2 is rejected for u in [1/3, 1): then outcome 0 owns [1/3, 3/4), which is 5/8 of it, instead of 3/4.
    close(law_of("program(reuse=False)", program=program), dict(enumerate(target)))
    close(law_of("program(reuse=True)", program=program), {0: 0.5 * 5 / 8, 1: 0.25 + 0.5 * 3 / 8, 2: 0.25})


@pytest.mark.parametrize(("forced", "value"), [(0, 0.0), (1, 1 - 2**-53), (0.25, 0.25)])
def test_forced_uniforms_are_real_floats(forced, value):
    with numpy_answered_by(Always(), forced), random_answered_by(Always(), forced):
        singles = value_of("[rng.random(), np.random.rand(), random.random(), random.Random(0).random()]")
        assert [(type(single), single) for single in singles] == [(float, value)] * 4
        assert value_of("rng.random((2, 1))").tolist() == [[value], [value]]
        assert value_of("np.random.uniform(1, 3)") == 1 + 2 * value
        assert np.isfinite(value_of("rng.gumbel(size=2)")).all()
        assert value_of("random.expovariate(1)") == value_of("-math.log(1 - random.random())") == -math.log(1 - value)
        assert value_of("np.searchsorted([0.0, 0.5, 1.0], rng.random())") == (0 if forced == 0 else 1 + (forced == 1))


REFUSED = """
np.argmax(np.where(P > 0.2, np.log(P) + rng.gumbel(size=3), 0.0)) ;; np.argmax(rng.gumbel(size=3) * P)
np.argmax(np.append(rng.random(3), 0.5)) ;; float(rng.random(3).max()) -> __float__
(lambda e: (np.argmax(e), e < 0))(rng.gumbel(size=3))
(lambda e: (np.argmax(P / e), np.argmax(e)))(rng.exponential(size=3))
float(u) -> __float__ ;; math.log(u) -> math functions ;; {u} -> __hash__ ;; (u - 0.5) ** 2 -> unknown sign
f"{u:.3f}" -> __format__ ;; np.sin(u) -> np.sin ;; u / (u - 0.5) -> unknown sign
np.spacing(rng.random(1)) -> np.spacing ;; np.array([u], dtype=float) -> __float__
np.zeros(1).__setitem__(0, u) -> float ;; np.maximum(u, 0.2) < 0.2 -> clamped at 0.2
u * (1 - u) == 0 -> joined, and compared for equality ;; 1 / (u - 0.5) -> unknown sign
np.log(u - 0.5) -> unknown sign ;; (u - 0.5) / 0 -> unknown sign ;; np.searchsorted(rng.random(1), 0.5) -> among random
CDF.searchsorted(rng.random(2)) -> second race ;; rng.gamma(2) -> default_rng.0..gamma ;; rng.bytes(3) -> bytes
rng.standard_gamma(3) -> standard_gamma ;; np.random.zipf(2) -> np.random.zipf
np.random.RandomState(0).beta(2, 3) -> beta ;; rng.bit_generator.random_raw() -> random_raw
int(rng.integers(20000)) -> 20000 outcomes ;; rng.integers([1], [3]) -> arrays ;; np.random.choice(10**9) -> choice has
np.random.permutation(9) -> permutation of 9 ;; np.random.binomial(1000, 0.5) -> binomial of 1000
rng.choice(3, 2, replace=False, shuffle=False) -> not random ;; rng.random(out=np.empty(3)) -> written
random.vonmisesvariate(0, 1) -> vonmisesvariate
BEFORE.betavariate(2, 3) -> random.betavariate ;; random.randbytes(2) -> randbytes
rng.integers(2**40) % 3 -> rest of a division ;; rng.random() % rng.random() -> rest of a division
"""


@pytest.mark.parametrize("case", table(REFUSED))
def test_what_cannot_be_enumerated_is_refused_by_name_and_line(case):
    call, _, name = case.partition(" -> ")
    with numpy_answered_by(Always()), random_answered_by(Always()):
        u = np.random.default_rng(0).random()
        with pytest.raises(NeedsValue) as refused:
            value_of(call, u=u)
    assert re.search(name, str(refused.value))
    assert re.search(r" at test_numpy\.py:\d+", str(refused.value))


@pytest.mark.parametrize("call", table("""
np.random.choice(3, p=[0.5, 0.5, 0.5]) ;; rng.choice(3, p=[0.5, 0.5]) ;; rng.choice(3, p=[1.5, -0.5, 0.0])
rng.choice(2, 3, replace=False) ;; rng.choice(3, 2, replace=False, p=[1, 0, 0]) ;; rng.choice([]) ;; rng.integers(3, 3)
rng.binomial(1, 1.5) ;; rng.multinomial(1, [0.9, 0.9, 0.1]) ;; rng.rand(3) ;; np.random.RandomState(0).integers(3)
"""))  # fmt: skip
def test_wrong_calls_are_wrong_as_in_numpy(call):
    with pytest.raises((ValueError, AttributeError)) as in_numpy:
        value_of(call)
    with pytest.raises(in_numpy.type), numpy_answered_by(Always()):
        value_of(call)


def test_sites_name_function_line_and_stream_and_a_path_can_be_replayed():
    draws = Always()
    with numpy_answered_by(draws), random_answered_by(draws):
        value_of(
            "[int(np.random.default_rng(5).choice(3)), rng.random(1) < 0.5, np.random.seed(11), np.random.randint(3)]"
        )
        value_of("[random.Random(4).randint(0, 1), random.random() < 0.5]")
    sites = (
        "default_rng(5).choice default_rng(0).random np.random_seed(11).randint random.randint_seed(4) random.random"
    )
    assert [site[0].removeprefix("np.random.").replace(" ", "_") for site in draws.sites] == sites.split()
    assert all(site[1] == "test_numpy.py:1" for site in draws.sites)
    found = list(paths(lambda draws: run(draws, "rejection('rng.random() < p / q')")))
    assert all(run(Replayed(path.choices), "rejection('rng.random() < p / q')") == path.outcome for path in found)


def state():
    places = (np.random, np.random.mtrand, random, random.Random, random.SystemRandom)
    held = [(name, id(value)) for place in places for name, value in sorted(vars(place).items())]
    return held, np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002


def test_everything_is_restored_also_after_an_exception_and_blocks_nest():
    before, outer, inner, call = state(), Always(), Always(), "[np.random.randint(2), random.choices([1, 2], [1, 1])]"
    with pytest.raises(ZeroDivisionError), numpy_answered_by(outer), random_answered_by(outer):  # noqa: PT012
        assert value_of("isinstance(rng, np.random.Generator) and np.random.default_rng(rng) is rng")
        value_of("[np.random.seed(0), random.seed(0), isinstance(np.random.RandomState(0), np.random.RandomState)]")
        with numpy_answered_by(inner), random_answered_by(inner):
            value_of(call)
        assert (len(outer.sites), len(inner.sites)) == (0, 2)
        value_of(call)
        rng = np.random.default_rng(0)
        raise ZeroDivisionError
    assert (len(outer.sites), len(inner.sites), state(), "random" in vars(random.Random)) == (2, 2, before, False)
    assert value_of("isinstance(random.random(), float) and isinstance(rng.random(), float)")
    assert isinstance(rng.random(), float)


def test_torch_is_not_imported():
    script = "import sys, specverify.intercept.numpy, specverify.intercept.python"
    script += "; assert 'specverify.intercept.symbolic.numbers' in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def looked_up(bounds):
    """Return the outcomes of a lookup of one uniform in ``bounds``, and the number of draws on each path."""

    def program(draws):
        with answered_everywhere(draws):
            return int(np.searchsorted(bounds, np.random.default_rng().random(), side="right"))

    return [(path.outcome, len(path.decisions)) for path in paths(program)]


@pytest.mark.parametrize(("bounds", "place"), [([0.0, 1.0], 1), ([], 0), ([-1.0, 0.0], 2), ([1.0, 2.0], 0)])
def test_a_lookup_that_the_interval_decides_is_no_draw(bounds, place):
    assert looked_up(bounds) == [(place, 0)]


def test_a_lookup_in_bounds_that_are_not_sorted_is_refused():
    with pytest.raises(NeedsValue, match="not sorted"):
        looked_up([1.0, 0.0])
