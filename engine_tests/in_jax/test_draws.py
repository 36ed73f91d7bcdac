"""What is drawn from a key: the same from the same key, whatever the shape, and nothing that is not followed."""

from __future__ import annotations

from test_support.jax import needs_jax  # noqa: F401 - it skips the file where JAX is not installed

# isort: split
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from reference import Sampled
from specverify.intercept import caller
from specverify.intercept.audit import audited
from specverify.intercept.distributions import Boundary
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.jax.operations import FUNCTIONS
from specverify.intercept.refusals import Declined, NeedsValue
from test_support.jax.answers import law_of

KEY = jax.random.PRNGKey(7)
WEIGHTS = jnp.array([0.5, 0.25, 0.25])


def below(key, bound, **how):
    return jax.random.uniform(key, **how) < bound


def test_files_of_jax_are_not_taken_for_those_of_a_program_that_was_located_before(monkeypatch):
    """What was found of a file before the draws of JAX were answered says nothing of it later."""
    file = str(jax.random.__file__)
    monkeypatch.setattr(caller, "jax_is_answered", lambda: False)
    assert not caller.is_ours_or_answered(file)
    monkeypatch.setattr(caller, "jax_is_answered", lambda: True)
    assert caller.is_ours_or_answered(file)


def test_what_names_rest_on_is_so_in_jax_itself():
    """An element hangs on its key and its place alone, fewer bits are the last ones of more, parts of a key differ."""
    five, three = (np.asarray(jax.random.bits(KEY, (number,))) for number in (5, 3))
    assert (five[:3] == three).all()
    assert (np.asarray(jax.random.bits(KEY, (3, 5))).ravel()[:5] == five).all()
    assert (np.asarray(jax.random.bits(KEY, (5,), "uint8")) == five % 256).all()
    parts = np.asarray(jax.random.split(KEY, 4))
    assert len({part.tobytes() for part in parts}) == 4
    assert (np.asarray(jax.random.fold_in(KEY, 2)) == parts[2]).all()
    rows = np.asarray(jax.vmap(lambda key: jax.random.bits(key, (2,)))(parts))
    assert (rows == np.array([jax.random.bits(part, (2,)) for part in parts])).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (1e-30, 1.0), (-2.0, 5.0), (0.25, 0.5)])
def test_uniforms_have_the_steps_of_their_traced_function(ends, dtype, monkeypatch):
    """The rule for the whole function gives the same symbolic numbers as its operations one by one."""
    low, high = ends

    def law_by(rule):
        used = []
        monkeypatch.setitem(FUNCTIONS, "_uniform", lambda *asked: used.append(0) or rule(*asked))
        numbers = law_of(lambda: _below(low, high, dtype))
        assert used
        return numbers

    with jax.enable_x64(dtype == "float64"):
        whole = law_by(FUNCTIONS["_uniform"])
        assert whole == law_by(lambda *_: Declined("one by one"))
    assert len(whole) > 1


def _below(low, high, dtype):
    numbers = jax.random.uniform(KEY, (2,), dtype, minval=low, maxval=high)
    return tuple(bool(number < bound) for number in numbers for bound in (low, low + (high - low) / 3, high))


def test_one_key_is_one_number_and_its_parts_are_independent():
    assert law_of(lambda: (below(KEY, 0.25), below(KEY, 0.5))) == {(False, False): 0.5, (False, True): 0.25,
                                                                    (True, True): 0.25}  # fmt: skip
    parts = law_of(lambda: tuple(below(part, 0.5) for part in jax.random.split(KEY)))
    assert parts == dict.fromkeys([(False, False), (False, True), (True, False), (True, True)], 0.25)


def test_one_key_in_two_shapes_is_followed_where_an_element_hangs_on_its_place_alone():
    law = law_of(lambda: (below(KEY, 0.25, shape=(3,))[1], below(KEY, 0.5, shape=(2, 2))[0, 1]))
    assert law == {(False, False): 0.5, (False, True): 0.25, (True, True): 0.25}


@pytest.mark.parametrize("case", ["another generator", "another setting"])
def test_one_key_in_two_shapes_is_refused_where_that_is_not_followed(case):
    key = jax.random.key(7, impl="rbg") if case == "another generator" else KEY
    assert law_of(lambda: below(key, 0.25)) == {False: 0.75, True: 0.25}
    words = r"in two shapes, by jax.random.uniform at .* split the key"
    with jax.threefry_partitionable(case != "another setting"), pytest.raises(NeedsValue, match=words):
        law_of(lambda: (below(key, 0.25, shape=(3,))[1], below(key, 0.5, shape=(2,))[1]))


def test_one_key_in_two_widths_is_refused_where_both_are_looked_at():
    with pytest.raises(NeedsValue, match="draws twice from one state of its generator, in different ways"):
        law_of(lambda: (below(KEY, 0.25), below(KEY, 0.5, dtype=jnp.bfloat16)))
    assert law_of(lambda: (below(KEY, 0.5, dtype=jnp.bfloat16), below(KEY, 0.25))[0]) == {False: 0.5, True: 0.5}


def test_a_key_that_is_used_twice_is_named_with_both_lines():
    with audited() as found:
        law_of(lambda: (below(KEY, 0.25),
                        jax.random.categorical(KEY, jnp.log(WEIGHTS))))  # fmt: skip
    assert len({found[0].first, found[0].second}) == 2
    assert "jax.random.uniform at test_draws.py" in found[0].sentence
    assert "jax.random.gumbel at test_draws.py" in found[0].sentence


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_a_uniform_of_16_bits_is_one_of_few_numbers(dtype):
    few = 2 ** (7 if dtype is jnp.bfloat16 else 10)
    assert law_of(lambda: below(KEY, 1.5 / few, dtype=dtype))[True] == pytest.approx(2 / few)


def test_the_numbers_at_an_end_are_those_that_jax_makes_of_its_bits():
    for end, uniform in ((0, 0.0), (1, 1 - 2**-23)):
        with answered_everywhere(Sampled(0), Boundary(end)):
            assert float(jax.random.uniform(KEY)) == uniform
            assert float(jax.random.exponential(KEY)) == pytest.approx(-np.log1p(-uniform))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: jnp.cos(jax.random.uniform(KEY)) < 0.5, "cos of JAX at test_draws.py:.* is needed"),
        (lambda: jax.random.gamma(KEY, 2.0) < 1, "random_gamma of JAX at test_draws.py:.* cannot be enumerated"),
        (lambda: jax.lax.rng_uniform(0.0, 1.0, ()) < 0.5, "rng_uniform of JAX at test_draws.py"),
        (lambda: jnp.sin(jax.random.uniform(KEY)) < 0.5, "sin of JAX at test_draws.py.* is needed"),
        (lambda: jax.jit(jnp.sin)(jax.random.uniform(KEY)) < 0.5, "sin of JAX at test_draws.py.* is needed"),
        (lambda: below(KEY, 0.5, shape=(100_001,))[0], "draws 100001 random numbers.*at a smaller vocabulary"),
        (lambda: traced_with_numpy(0.5), "of another library is used at test_draws.py:.* while JAX traces a function"),
        (lambda: jax.random.PRNGKey(jax.random.uniform(KEY).view(int)), "bitcast_convert_type of JAX.* test_draws.py"),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_refused_by_its_name_and_line(function, words):
    with pytest.raises(NeedsValue, match=words):
        law_of(function)


@jax.jit
def traced_with_numpy(bound):
    return np.random.default_rng().random() < bound


def test_a_refusal_under_jit_names_the_line_that_was_traced():
    @jax.jit
    def traced(key):
        u = jax.random.uniform(key)
        return jnp.cos(u)

    line = traced.__wrapped__.__code__.co_firstlineno + 3
    with pytest.raises(NeedsValue, match=f"cos of JAX.*at test_draws.py:{line}"):
        law_of(lambda: traced(KEY) < 0.5)


def test_a_key_may_hang_on_an_outcome_or_on_a_seed_that_is_drawn():
    def of_token():
        token = jax.random.categorical(KEY, jnp.log(WEIGHTS))
        return token, below(jax.random.fold_in(KEY, token), 0.5)

    assert law_of(of_token)[0, True] == pytest.approx(0.25)
    seeds = {
        "bits": lambda: jax.random.bits(KEY),
        "randint": lambda: jax.random.randint(KEY, (), 0, 2**31 - 1),
        "a float": lambda: (jax.random.uniform(KEY) * 1e7).astype(int),
        "NumPy": lambda: np.random.default_rng().integers(2**31),
    }
    for seed in seeds.values():
        assert law_of(lambda: below(jax.random.PRNGKey(seed()), 0.25)) == {False: 0.75, True: 0.25}  # noqa: B023


def test_whole_numbers_and_orders_have_their_laws():
    thirds = {0: pytest.approx(1 / 3), 1: pytest.approx(1 / 3), 2: pytest.approx(1 / 3)}
    assert law_of(lambda: jax.random.randint(KEY, (), 0, 3)) == thirds
    orders = law_of(lambda: jax.random.permutation(KEY, 3))
    assert len(orders) == 6
    assert list(orders.values()) == pytest.approx([1 / 6] * 6)


def test_what_nobody_looks_at_has_no_branches():
    runs = []

    def program(draws):
        runs.append(draws)
        with answered_everywhere(draws):
            tokens = jax.random.categorical(KEY, jnp.log(WEIGHTS), shape=(5,))
            return int(tokens[3])

    from specverify.laws.enumeration import program_law

    assert len(program_law(program).probabilities) == 3
    assert len(runs) == 3


def test_a_thread_is_answered_too():
    def in_a_thread():
        found = []
        thread = threading.Thread(target=lambda: found.append(bool(below(KEY, 0.25))))
        thread.start()
        thread.join()
        return found[0]

    assert law_of(in_a_thread) == {False: 0.75, True: 0.25}


def test_double_precision():
    with jax.enable_x64(True):
        assert law_of(lambda: below(KEY, 0.1, dtype=jnp.float64)) == {False: 0.9, True: 0.1}


def test_nothing_is_left_behind():
    before = float(jax.random.uniform(KEY))
    law_of(lambda: jax.jit(below)(KEY, 0.25))
    assert float(jax.random.uniform(KEY)) == before
    assert isinstance(jax.jit(below)(KEY, 0.25), jax.Array)
    assert type(jax.jit(below)(KEY, 0.25)) is type(KEY)


def test_what_is_known_is_computed_as_jax_does_whatever_was_computed_before():
    def found():
        numbers = [1, 1.0, True, np.float32(1), np.ones(1, np.float32), np.int8(1), jnp.ones(2), jnp.ones((2, 1)), -0.0]
        sums = [jnp.add(number, 1) for number in numbers]
        return [(each.dtype, each.weak_type, each.shape, np.asarray(each).tobytes()) for each in sums]

    expected = found()
    for _ in range(2):
        with answered_everywhere(Sampled(0)):
            assert found() == expected


def test_arrays_that_a_function_is_given_for_good_are_not_those_that_are_remembered():
    given_away = jax.jit(lambda values: values * 2, donate_argnums=0)

    def program():
        return given_away(jnp.arange(3) + 1)[jax.random.categorical(KEY, jnp.log(WEIGHTS))]

    for _ in range(2):
        assert law_of(program) == {2: pytest.approx(0.5), 4: pytest.approx(0.25), 6: pytest.approx(0.25)}


def test_an_outcome_that_was_looked_at_has_the_type_that_jax_gives_it():
    def program():
        chosen = jnp.where(below(KEY, 0.5), 1.0, 2.0)
        assert chosen in (1, 2)
        return (chosen + jnp.ones(1, jnp.bfloat16)).dtype == jnp.bfloat16, chosen.weak_type

    assert program() == (True, True)
    assert law_of(program) == {(True, True): 1.0}
