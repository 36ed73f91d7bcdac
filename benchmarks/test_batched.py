"""The batched verifier's speed, beside a device-to-device copy in the same run. Printed; what it emits is asserted.

A verification must read one row of p and, unless every draft was accepted, one row of q: that is the traffic counted.
Eager torch writes its float64 intermediates out as well; compiled, it keeps them, and reads each row once.
"""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from reference import Sampled, chain, verify_batched
from reference.verifiers.speculative_sampling import speculative_sampling

GAMMA = 4
SIZES = {"cpu": [(8, 32_000), (4, 151_936)], "cuda": [(32, 32_000), (128, 151_936)]}


class Inputs(NamedTuple):
    """The arguments of ``verify_batched``."""

    p: Any
    q: Any
    draft_tokens: Any
    lengths: Any
    accept_uniforms: Any
    final_uniforms: Any


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other on a busy machine are what would be measured, and the copy has one too."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def device(request):
    name = request.config.getoption("--device")
    if name == "cuda" and not torch.cuda.is_available():
        pytest.skip("--device cuda was given but torch sees no CUDA device")
    return torch.device(name)


def random_inputs(batch, vocabulary, device, dtype=torch.float32):
    """Float32 softmax rows, a draft that resembles the target, drafts drawn from it."""
    generator = torch.Generator(device).manual_seed(0)
    normal = dict(generator=generator, device=device)
    target = 2 * torch.randn((batch, GAMMA + 1, vocabulary), **normal)
    p = target.softmax(dim=-1)
    q = (target[:, :GAMMA] + 0.5 * torch.randn((batch, GAMMA, vocabulary), **normal)).softmax(dim=-1)
    tokens = torch.multinomial(q.reshape(-1, vocabulary), 1, generator=generator).reshape(batch, GAMMA)
    lengths = torch.full((batch,), GAMMA, device=device)
    accepts = torch.rand((batch, GAMMA), dtype=torch.float64, **normal)
    return Inputs(p.to(dtype), q.to(dtype), tokens, lengths, accepts, torch.rand(batch, dtype=torch.float64, **normal))


def finished(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def copy_rate(device, repeats=10):
    """GB/s, reads and writes counted, of copying what no cache holds: the median of ten, after two to warm up."""
    source = torch.ones(2**28 if device.type == "cuda" else 2**26, device=device)
    into, times = torch.empty_like(source), []
    for _ in range(repeats + 2):
        finished(device)
        start = time.perf_counter()
        into.copy_(source)
        finished(device)
        times.append(time.perf_counter() - start)
    return 2 * source.nbytes / statistics.median(times[2:]) / 1e9


def median(benchmark):
    """The median that pytest-benchmark measured, None when it is switched off."""
    return benchmark.stats.stats.median if benchmark.stats else None


def compiled(inputs):
    """The verifier compiled whole; skips where no compiler works."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compiler.reset()  # it imports the compiler, which is full of what is deprecated
        options = {"cpp.simdlen": 256}  # in 512 bits torch 2.13 widens a float32 through memory
        verify = torch.compile(verify_batched, fullgraph=True, dynamic=False, options=options)
        try:
            verify(*inputs)
        except Exception as error:  # noqa: BLE001 - which error a missing compiler raises differs by platform
            pytest.skip(f"torch.compile makes no kernel here: {type(error).__name__}: {str(error).splitlines()[0]}")
    return verify


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("mode", ["eager", "compiled"])
@pytest.mark.parametrize("size", [0, 1])
def test_bandwidth_against_a_copy(benchmark, device, size, mode, dtype):
    batch, vocabulary = SIZES[device.type][size]
    inputs = random_inputs(batch, vocabulary, device, dtype)
    expected = verify_batched(*inputs)
    verify = verify_batched if mode == "eager" else compiled(inputs)

    def run():
        found = verify(*inputs)
        finished(device)
        return found

    found = benchmark(run)
    assert found.emitted.tolist() == expected.emitted.tolist()
    rejected = int((expected.accepted < inputs.lengths).sum())
    traffic = (batch + rejected) * vocabulary * inputs.p.element_size()
    copy = copy_rate(device)
    if (each := median(benchmark)) is not None:
        rate = traffic / each / 1e9
        benchmark.extra_info.update(gigabytes_per_second=rate, copy_gigabytes_per_second=copy)
        print(
            f"\n{device.type} {mode} {dtype} B={batch} gamma={GAMMA} V={vocabulary}: {rate:.2f} GB/s of needed reads,"
            f" {batch / each:.0f} rows/s; a copy moves {copy:.2f} GB/s, so that is {rate / copy:.0%} of it"
        )


def row_by_row(inputs, draws):
    """The reference's own verifier, one row after the other, on the same NumPy arrays."""
    found = []
    for row, tokens in enumerate(inputs.draft_tokens.tolist()):
        draft = chain(tuple(tokens), tuple(inputs.q[row]))
        found.append(speculative_sampling(draws, lambda seen, row=row: inputs.p[row, len(seen)], (), draft))
    return found


@pytest.mark.parametrize("vocabulary", [8, 1000])
@pytest.mark.parametrize("how", ["row by row", "numpy", "torch"])
def test_a_batch_against_row_by_row(benchmark, how, vocabulary):
    batch = 64
    tensors = random_inputs(batch, vocabulary, torch.device("cpu"), torch.float64)
    arrays = Inputs(*(values.numpy() for values in tensors))
    exact = arrays._replace(**{name: normalised(getattr(arrays, name)) for name in ("p", "q")})
    ways = {
        "row by row": lambda: row_by_row(exact, Sampled(0)),
        "numpy": lambda: verify_batched(*exact),
        "torch": lambda: verify_batched(*tensors),
    }
    found = benchmark(ways[how])
    assert len(found.emitted if how != "row by row" else found) == batch
    if (each := median(benchmark)) is not None:
        print(f"\n{how} B={batch} gamma={GAMMA} V={vocabulary}: {batch / each:.0f} rows/s")


def normalised(rows):
    """Float32 rows widened to float64 sum to 1 within 1e-7; the row-by-row verifier asks for 1e-9."""
    return rows / np.sum(rows, axis=-1, keepdims=True)
