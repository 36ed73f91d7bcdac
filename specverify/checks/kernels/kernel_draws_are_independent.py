"""Within one row of a kernel, the last token is drawn independently of the accept tests, and these of each other.

The check compares rows of two kinds. The examined draw has the same law in both, but the accept tests before it have
other probabilities. If the frequency of an outcome of the draw differs, the draw and a test share a random number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from specverify.base.host_arrays import host_array
from specverify.base.verdict import Evidence
from specverify.checks.check import Check
from specverify.checks.kernels.judged_tables import examine_tables
from specverify.checks.kernels.row_texts import kernel_check
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_designs import (
    Design,
    RowKind,
    bonuses_after_coins,
    coins_after_coins,
    design_of,
    replacements_after_coins,
    replacements_after_drafts,
)
from specverify.subjects.kernel_samples import Calls, answers, binned, bits_of
from specverify.subjects.kernel_tables import SIZE


def tables(kernel: Kernel, designs: dict[str, Design], calls: Calls, samples: int, seed: int) -> dict[str, object]:
    """Return one contingency table for each of ``designs``: how often rows of each kind show each value of a bit.

    A design is a batch with rows of several kinds, each of which shows one random draw of the kernel as a bit. If draws
    are independent, the bit has the same law for all kinds.

    Args:
        kernel: The kernel.
        designs: The designs, by name.
        calls: How the sampled rows are divided among calls of the kernel.
        samples: The approximate number of bits in each table.
        seed: The seed of the first table; each further table has the next seed.
    """
    return {
        name: _table(kernel, design, calls, int(samples / _share_seen(design)) + 1, seed + number)
        for number, (name, design) in enumerate(designs.items())
    }


def _table(kernel: Kernel, design: Design, calls: Calls, samples: int, seed: int) -> object:
    total = np.zeros(len(design.kinds) * 3, dtype=np.int64)
    for answer in answers(kernel, design, samples, seed, calls):
        keys = answer.kinds * 3 + bits_of(kernel, design, answer)
        total += host_array(binned(kernel, keys, len(total))).astype(np.int64)
    return total.reshape(-1, 3)[:, :2]


def _share_seen(design: Design) -> float:
    """Return the probability that a row of the batch ``design`` makes the random draw that is examined in it.

    For example, the replacement of a draft is drawn only if the draft is rejected. The rows are weighted by their
    shares of the batch.
    """
    share = 0.0
    for weight, kind in zip(design.shares, design.kinds, strict=True):
        kept = [float(p[0] / q[0]) for p, q in zip(kind.p, kind.q, strict=False)]
        if kind.bit[0] == "accepted":
            share += weight * float(np.prod(kept[: kind.seen]))
        else:
            place = kind.bit[1]
            rejected = 1 - kept[place] if place < len(kept) else 1.0
            share += weight * float(np.prod(kept[:place])) * rejected
    return share


def _design(kernel: Kernel, kinds: Sequence[RowKind]) -> Design:
    return design_of(kinds, [1 / len(kinds)] * len(kinds), SIZE, kernel.convention.draft_padding)


def checks_of(kernel: Kernel, gamma: int, samples: int, alarm: float, calls: Calls) -> tuple[Check, ...]:
    """Return two checks of a kernel: of its last draws, and, if ``gamma`` is above 1, of its accept tests.

    ``gamma`` is the number of drafts per row, ``samples`` the number of samples per table, and ``alarm`` the
    false-alarm rate of each check. ``calls`` states how the rows are divided among calls of the kernel.
    """
    last = {
        "replacement": _design(kernel, replacements_after_coins() if gamma == 1 else _longer(gamma)),
        **{
            f"replacement of draft {place + 1}": _design(kernel, replacements_after_drafts(gamma, place))
            for place in range(1, gamma)
        },
        "bonus": _design(kernel, bonuses_after_coins(gamma)),
    }
    coins = {"coin of the last draft": _design(kernel, coins_after_coins(gamma))}
    examined = {
        "coins_and_last_draw_are_independent": (
            last,
            "the replacement and the bonus do not depend on the coins before",
        ),
        "positions_are_independent": (coins, "the coin of a draft does not depend on those before"),
    }
    return tuple(
        kernel_check(
            name,
            summary,
            None,
            Evidence.STATISTICAL,
            {
                f"gamma={gamma}": partial(
                    examine_tables, partial(tables, kernel, designs, calls), samples, alarm / len(designs), summary
                )
            },
        )
        for name, (designs, summary) in examined.items()
        if gamma > 1 or designs is last
    )


def _longer(gamma: int) -> list[RowKind]:
    """Return the rows of ``replacements_after_coins``, which have one draft, with further drafts up to ``gamma``.

    The further drafts are accepted with certainty.
    """
    longer = []
    for kind in replacements_after_coins():
        p, q = np.repeat(np.eye(SIZE)[:1], gamma, axis=0), np.repeat(np.eye(SIZE)[:1], gamma - 1, axis=0)
        longer.append(
            kind._replace(p=np.concatenate([kind.p[:1], p]), q=np.concatenate([kind.q, q]), drafts=(0,) * gamma)
        )
    return longer
