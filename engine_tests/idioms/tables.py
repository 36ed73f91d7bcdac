"""All idioms, table by table."""

from __future__ import annotations

import coins_by_arithmetic
import coins_of_numpy
import coins_of_random
import coins_of_several
import coins_of_torch
import counts_of_torch
import functions_of_numpy
import functions_of_torch
import lookups_of_torch
import mixed_libraries
import numbers_of_random
import orders_and_buffers
import pools
import races_of_torch
import surroundings
import tokens_of_numpy
import tokens_of_random
import verifiers_of_numpy
import verifiers_of_torch
from idiom import idioms_of

TABLES = (coins_of_torch, coins_by_arithmetic, coins_of_several, counts_of_torch, races_of_torch, lookups_of_torch,
          verifiers_of_torch, surroundings, mixed_libraries, coins_of_numpy, tokens_of_numpy, verifiers_of_numpy,
          coins_of_random, tokens_of_random, orders_and_buffers, functions_of_numpy, functions_of_torch,
          numbers_of_random, pools)  # fmt: skip
IDIOMS = idioms_of(TABLES)
