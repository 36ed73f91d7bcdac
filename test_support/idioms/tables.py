"""All idioms, table by table."""

from __future__ import annotations

from test_support.idioms import (
    coins_by_arithmetic,
    coins_of_numpy,
    coins_of_random,
    coins_of_several,
    coins_of_torch,
    counts_of_torch,
    functions_of_numpy,
    functions_of_torch,
    lookups_of_torch,
    mixed_libraries,
    numbers_of_random,
    orders_and_buffers,
    pools,
    races_of_torch,
    surroundings,
    tokens_of_numpy,
    tokens_of_random,
    verifiers_of_numpy,
    verifiers_of_torch,
)
from test_support.idioms.idiom import idioms_of

TABLES = (coins_of_torch, coins_by_arithmetic, coins_of_several, counts_of_torch, races_of_torch, lookups_of_torch,
          verifiers_of_torch, surroundings, mixed_libraries, coins_of_numpy, tokens_of_numpy, verifiers_of_numpy,
          coins_of_random, tokens_of_random, orders_and_buffers, functions_of_numpy, functions_of_torch,
          numbers_of_random, pools)  # fmt: skip
IDIOMS = idioms_of(TABLES)
