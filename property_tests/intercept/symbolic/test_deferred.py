"""An outcome that is drawn when it is read behaves as the integer it stands for."""

import copy
import operator
import pickle
import sys
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from reference import Sampled
from specverify.checks.coupled_runs import coupled
from specverify.intercept.distributions import Boundary
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.numpy import may_stand
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic import deferred
from specverify.intercept.symbolic.deferred import OutcomeNumber
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law, total_variation
from specverify.laws.paths import outcomes_of, paths
from specverify.subjects.algorithm import float_task
from specverify.subjects.batch_call import arguments_of
from specverify.subjects.emitted import emitted_row, ends_left_open
from specverify.subjects.forms import ROW
from specverify.subjects.remembered_calls import remembered
from specverify.subjects.verifier import build
from specverify.subjects.verifier_rounds import START

P = np.array([0.5, 0.25, 0.25])
VALUE = 2


@pytest.fixture(autouse=True)
def _without_other_libraries(monkeypatch):
    """Give the code under test outcome numbers also where another test has imported torch or JAX."""
    monkeypatch.setattr("specverify.intercept.numpy.may_stand", lambda: True)


def standing():
    """Return an outcome number, and the list of its reads."""
    reads = []

    def value():
        reads.append(VALUE)
        return VALUE

    return OutcomeNumber(SimpleNamespace(value=value)), reads


def law_of(call):
    """Return the law of a call, and its number of runs."""

    def program(draws):
        with answered_everywhere(draws):
            return call()

    runs, law = 0, {}
    for path in paths(program):
        runs += 1
        for outcome, share in outcomes_of(path.outcome):
            law[outcome] = law.get(outcome, 0) + path.weight * share
    return law, runs


OF_BITS = ("lshift", "rshift", "and_", "or_", "xor")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge")  # fmt: skip
UNARY = (abs, int, float, complex, bool, hash, repr, str, format, operator.index, operator.neg, operator.pos,
         operator.invert, round, copy.copy, copy.deepcopy, np.asarray, np.array, np.int64, np.float32, np.sqrt, np.ndim,
         np.isscalar, np.zeros, lambda x: x.bit_length(), lambda x: x.real, lambda x: "%d" % x,  # noqa: UP031
         lambda x: pickle.loads(pickle.dumps(x)), lambda x: f"{x:>4}", lambda x: [7, 8, 9][x], lambda x: range(x)[1],
         lambda x: [4, 5, 6][:x], lambda x: np.arange(5)[x], lambda x: np.arange(5)[:x], lambda x: np.array([1, x]),
         lambda x: np.array([[0, x], [x, 1]]), lambda x: np.append([1], x), lambda x: np.full(2, x),
         lambda x: {2: 3}[x], lambda x: np.where(np.arange(3) == x, 1, 0), lambda x: x in (1, 2),
         lambda x: np.eye(3)[x], lambda x: divmod(x, 2), lambda x: np.concatenate([[0], [x]]), lambda x: bytes([x]),
         lambda x: sorted([3, x, 1]), lambda x: int(max(1, x)), lambda x: np.take(np.arange(4), x))  # fmt: skip


def same(one, other):
    return type(one) is type(other) and np.array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("number", range(len(UNARY)))
def test_an_operation_gives_what_it_gives_of_the_integer(number):
    symbolic, reads = standing()
    result, expected = UNARY[number](symbolic), UNARY[number](VALUE)
    assert same(result, expected)
    assert reads or result in (0, True)  # the number of dimensions, and whether it is a scalar


@pytest.mark.parametrize("name", BINARY + OF_BITS)
def test_an_operation_of_two_gives_what_it_gives_of_the_integer(name):
    operation, integer = getattr(operator, name), VALUE
    for other in (3, np.int64(3), np.int8(3), np.arange(1, 4), *(() if name in OF_BITS else (1.5,))):
        assert same(operation(standing()[0], other), operation(integer, other))
        assert same(operation(other, standing()[0]), operation(other, integer))


def test_a_small_dtype_is_kept_as_with_an_integer():
    small = np.arange(3, dtype=np.int8)
    for function in (np.add, lambda x, y: x + y, lambda x, y: y * x, lambda x, y: np.where(x == 1, x, y), np.maximum):
        assert same(function(small, standing()[0]), function(small, VALUE))


def test_its_type_does_not_read_it():
    symbolic, reads = standing()
    assert isinstance(symbolic, int)
    assert not hasattr(symbolic, "dtype")
    assert not hasattr(symbolic, "reshape")
    assert not reads


def test_every_method_of_an_integer_is_forwarded():
    methods = {name for name in dir(int) if name.startswith("__")}
    assert not methods - deferred._OWN - set(vars(OutcomeNumber))


@pytest.mark.parametrize("call", [lambda rng: rng.choice(3), lambda rng: rng.choice(3, p=P),
                                  lambda rng: rng.choice(3, replace=False)])  # fmt: skip
def test_the_library_gives_an_integer_of_python(call, monkeypatch):
    for make in (np.random.default_rng, np.random.RandomState):
        for lazy in (True, False):
            monkeypatch.setattr("specverify.intercept.numpy.may_stand", lambda lazy=lazy: lazy)
            assert type(call(make())) is int
            with answered_everywhere(Sampled(0)):
                number = call(make())
                assert isinstance(number, int)
                assert type(number) in {int, OutcomeNumber}


def test_a_library_that_takes_the_exact_type_is_no_fault_of_the_program():
    def program(draws):
        with answered_everywhere(draws):
            return Decimal(np.random.default_rng().choice(3, p=P))

    with pytest.raises(NeedsValue, match="OutcomeNumber"):
        program(Sampled(0))


def test_a_token_that_is_passed_on_takes_one_run_and_one_that_is_read_takes_one_each():
    def row(read):
        with ends_left_open():
            return law_of(lambda: emitted_row([0, read(np.random.default_rng().choice(3, p=P))], drafts=1))

    passed, one = row(lambda token: token)
    known, each = row(int)
    assert passed == known == {(0, token): mass for token, mass in enumerate(P)}
    assert (one, each) == (1, 3)
    changed, _ = row(lambda token: 1 if token == 0 else token)
    assert changed == {(0, 1): 0.75, (0, 2): 0.25}


def test_a_token_whose_generator_state_decided_before_is_read():
    def call():
        coin = np.random.default_rng(3).choice(3, p=P) == 0
        return emitted_row([int(coin), np.random.default_rng(3).choice(3, p=P)], drafts=1)

    with ends_left_open():
        law, _ = law_of(call)
    assert law == {(1, 0): 0.5, (0, 1): 0.25, (0, 2): 0.25}


def test_at_forced_values_outcomes_stay_symbolic_and_with_values_they_are_integers():
    def kind(forced):
        with answered_everywhere(Sampled(0), forced):
            return type(np.random.default_rng().choice(3, p=P))

    assert kind(None) is kind(0.0) is OutcomeNumber
    assert kind(Boundary(0.0, values=[0.5])) is int


def test_a_library_in_c_plus_plus_is_given_integers(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())
    assert not may_stand()


def rows(replacement):
    rng = np.random.default_rng()

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens):
            if rng.random() >= p[i][token] / q[i][token]:
                weights = replacement(p[i], q[i])
                return [*draft_tokens[:i], rng.choice(len(weights), p=weights / weights.sum())]
        return [*draft_tokens, rng.choice(len(p[-1]), p=p[-1])]

    return verify


def residual(p, q):
    left = np.maximum(p - q, 0)
    return left if left.any() else p


@pytest.mark.parametrize(("replacement", "is_right"), [(residual, True), (lambda p, q: p, False)])
def test_a_sampler_that_passes_its_tokens_on_has_its_law(replacement, is_right):
    task = float_task(3, 1.0, 3)
    law = decoder_law(build(rows(replacement), arguments_of(None, ROW), 2, None, task, remembered), START)
    distance = total_variation(law, target_law(task, START)).high
    assert distance < 1e-12 if is_right else distance > 1e-3


def test_code_that_asks_for_the_exact_type_is_found_by_coupled_runs():
    def ends_in(kind):
        def program(draws):
            with answered_everywhere(draws):
                token = np.random.default_rng().choice(3, p=P)
                return int(token) if kind(token) else 3

        return coupled(program, runs=2).parted

    assert not ends_in(lambda token: isinstance(token, int))
    assert ends_in(lambda token: type(token) is int)
