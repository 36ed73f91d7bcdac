"""Scenarios of engines that are created for each scenario: small ones, and the lists that add longer ones."""

from __future__ import annotations

from specverify.laws.certain_tables import few_after
from specverify.laws.deep_scenarios import CARRIED, LONG_SCENARIOS, NEW_TOKENS, ONE_TOKEN, SIX_TOKENS, WRITTEN_OUT
from specverify.laws.scenarios import CONFIDENT, Scenario

_SHAPES = ("generic", "peaked", "zeros", "disjoint", "equal", "point_target", "point_draft", "ties", "nearly_equal")
SECOND_ROUND = Scenario("generic", 3, (1, 1), 4, seed=24)
"""A scenario with a random draft among three tokens after a first round of one or two tokens. A processor that reads
the last two tokens may then forbid one of three tokens at a draft, across the end of a round."""
SCENARIOS = (
    *(Scenario("generic", 2, (0, 1, 0), horizon, seed=seed) for horizon, seed in ((2, 0), (4, 1))),
    *(Scenario(shape, 3, (0, 1, 0), 3, seed=seed) for seed, shape in enumerate(_SHAPES, start=2)),
    *(Scenario(("generic", "ties")[seed % 2], 3, (1, 0), 3, seed=seed, greedy=True) for seed in range(12, 24)),
    SECOND_ROUND,
    CONFIDENT,
    NEW_TOKENS,
    ONE_TOKEN,
    SIX_TOKENS,
    Scenario("generic", 4, (3, 0), 2, seed=24),
)
"""Small scenarios, because every path of a whole decode is followed; scenarios with one-hot targets have few paths.
Longer texts are in ``LONG_SCENARIOS``, thresholds and large vocabularies in ``WRITTEN_OUT``; in both, all but a few
rows are one-hot."""
SEVERAL_ROUNDS = Scenario("generic", 2, (0, 1, 0), 7, seed=26)
"""The scenario of samples of several rounds."""
MANY_DRAWS = Scenario("generic", 2, (0, 1), 100, seed=27)
"""The scenario in which more than a hundred random numbers are drawn for one text. It has too many texts for a law, so
it is left out if a constraint may leave no token after some text."""
TABLES_OF_ONE_PATH = tuple(
    Scenario("generic", 2 + seed % 4, (1, 0, 1)[: 1 + seed % 3], (6, 9, 14)[seed // 4 % 3], seed=600 + seed)
    for seed in range(60)
)
"""Scenarios for engines that draw nothing. They have too many texts for a law, as ``MANY_DRAWS`` has."""
TABLES_OF_FEW_PATHS = tuple(Scenario("peaked", 2, (1, 0, 1)[: 1 + seed % 3], 4, seed=700 + seed) for seed in range(12))
"""Scenarios for engines that draw only for the tests of drafts, such as trees of the most probable tokens. Their rows
have improbable tokens, which such a tree may leave out."""
CERTAIN_SCENARIOS = (*LONG_SCENARIOS, *WRITTEN_OUT, CARRIED[0])
OF_OTHER_PARAMETERS = (*SCENARIOS[:3], *CERTAIN_SCENARIOS)
"""Scenarios for the other parameters of an engine whose requests differ in them; all have them in batches too."""
PROBE = Scenario(few_after(1, 2, 3), 5, (0,), 4, seed=4)
"""The scenario that explains a refutation: three open rows, with entries of different sizes, and few paths."""
