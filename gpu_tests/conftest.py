"""Tests that run on the CPU and, with ``--device cuda``, on a GPU: real models and tensors, no model hub."""

from __future__ import annotations

import contextlib
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

DTYPES = ("float64", "float32", "bfloat16", "float16")
FIXTURES = {"exact_dtype": DTYPES[:2], "low_dtype": DTYPES[2:]}
"""In the first of them equality is demanded; in the others a divergence may be a near-tie."""
LISTED = 20
"""Near-ties that the summary shows in full for each dtype; the counts are of all."""


def pytest_addoption(parser: pytest.Parser) -> None:
    with contextlib.suppress(ValueError):  # benchmarks has the same option, when both are given to one pytest
        parser.addoption("--device", choices=("cpu", "cuda"), default="cpu", help="where models and tensors live")
    parser.addoption("--write-tables", action="store_true", help="write the tables under docs/ instead of reading them")
    parser.addoption(
        "--dtype",
        action="append",
        choices=(*DTYPES, "all"),
        help="dtype in which greedy decoding is compared; may be repeated (default: all)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--device") == "cuda" and not torch.cuda.is_available():
        pytest.exit("--device cuda was given but torch sees no CUDA device", returncode=2)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = metafunc.config.getoption("--dtype") or ["all"]
    for fixture in FIXTURES.keys() & set(metafunc.fixturenames):
        names = [name for name in FIXTURES[fixture] if name in wanted or "all" in wanted]
        reason = f"--dtype {' '.join(wanted)} names none of {', '.join(FIXTURES[fixture])}"
        left_out = [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="none")]
        params = [pytest.param(getattr(torch, name), id=name) for name in names] or left_out
        metafunc.parametrize(fixture, params, scope="module")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the comparisons of greedy outputs by dtype and list near-ties: position, tokens, margins."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    calls = [report for report in reports if getattr(report, "when", None) == "call"]
    greedy = [value for report in calls for name, value in report.user_properties if name == "greedy"]
    if greedy:
        terminalreporter.section("greedy outputs, speculative against plain")
    for dtype in DTYPES:
        found = [value for value in greedy if value["dtype"] == dtype]
        for line in _summary(dtype, found) if found else ():
            terminalreporter.write_line(line)


def _summary(dtype: str, found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield lines about all tests of one dtype; ``found`` are the counts that their ``Ledger`` recorded."""
    count = sum((Counter(value["counts"]) for value in found), Counter())
    ties = sum((Counter(value["ties"]) for value in found), Counter())
    yield (
        f"{dtype}: {count['runs']} runs, {count['near-tie']} end in a near-tie ({len(ties)} distinct), "
        f"{count['refuted']} refuted"
    )
    rounding = [value["rounding"] for value in found if value["rounding"]]
    if rounding:
        single, verify, between = (_range(values) for values in zip(*rounding, strict=True))
        yield f"  largest rounding of a model, in logits: one token {single}; gamma + 1 rows {verify}"
        yield f"  between the two: {between}"
    yield from (f"  {runs} x {line}" for line, runs in ties.most_common(LISTED))
    if len(ties) > LISTED:
        yield f"  and {len(ties) - LISTED} more, listed with each test by -rP"


def _range(values: tuple[float, ...]) -> str:
    return f"{min(values):.2g} to {max(values):.2g}, median {statistics.median(values):.2g}"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Use one CPU thread: models this small run fastest on one, and far slower on two when the cores are busy."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def kernels_that_are_compared() -> None:
    """Disable TF32 and cuDNN's attention, so that results can be compared.

    A float32 product keeps its bits, whatever the environment states; TF32 keeps ten. In cuDNN's attention, a row
    without visible positions (padding) may be NaN and spoil the rows above it.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.enable_cudnn_sdp(False)


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.config.getoption("--device"))


@pytest.fixture
def record_greedy(request: pytest.FixtureRequest) -> Callable[[dict[str, Any]], None]:
    """Return a function that passes what a ``Ledger`` recorded to the summary.

    ``record_property`` would warn under ``--junitxml``.
    """
    return lambda value: request.node.user_properties.append(("greedy", value))
