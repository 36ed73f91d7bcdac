"""Checks of kernels that verify batches on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from specverify.base.arguments import argument_error, check_integer
from specverify.base.verdict import Verdict
from specverify.checks import Conditions
from specverify.checks.kernels import checks_of_samples, checks_of_uniforms, precision_of
from specverify.reference import Claim
from specverify.subjects.kernel import KernelConvention, Library, kernel_of
from specverify.subjects.kernel_samples import Calls
from specverify.subjects.libraries import imported_beside, named_functions, names_library
from specverify.subjects.subject import Subject
from specverify.testing.judged import judge, judged
from specverify.testing.plans import ALARM, CheckOptions, checked_gammas, checks_plan, claiming, name_of

QUICK_SIZES = (7,)
"""A vocabulary of which two shards have one and two possible tokens."""
QUICK_ROWS = 2**12
TV = 5e-3
"""Default of the total variation that samples of a kernel detect."""
USUAL = KernelConvention()


@judged("claims", "tv", "seed")
def check_kernel(
    kernel: Callable[..., Any],
    convention: KernelConvention = USUAL,
    *,
    gammas: Sequence[int] | None = None,
    vocabularies: Sequence[int] = (129, 1025, 8193),
    rows: int = 2**16,
    largest_call: int = 2**18,
    **options: Unpack[CheckOptions],
) -> Sequence[Verdict]:
    """Examine a kernel that verifies batches on a device.

    The law of a kernel whose uniforms are arguments is computed exactly, with models over 3 tokens (``laws.grid``). A
    kernel with an internal generator is sampled.

    Args:
        kernel: ``kernel(p, q, drafts, accept_uniforms, final_uniforms) -> tokens`` with p ``[B, gamma + 1, V]``, q
            ``[B, gamma, V]``, int64 drafts ``[B, gamma]``, uniforms ``[B, gamma]`` and ``[B]``, tokens ``[B, gamma +
            1]``. ``docs/kernels.md`` lists the other forms.
        convention: Properties of the kernel that its parameters do not show: source of random numbers, paddings, dtype,
            device.
        gammas: Numbers of drafts, each from 1 to 1024. None: every check runs at 1 and 2 drafts, and the law is also
            examined at 4 drafts if the kernel accepts that many.
        vocabularies: Vocabulary sizes to examine in addition to size 3, each at least 5. With ``quick`` size 7 takes
            their place, or none if the kernel is sampled.
        rows: Largest number of rows in the first exact evaluation of the law; 4096 with ``quick``.
        largest_call: Largest number of rows in one call of a sampled kernel; at least 4.
        **options: See ``CheckOptions``. ``tv`` is the total variation of the law that samples detect, by default 0.005.
            A dependence between two random numbers is detected if its total variation is at least ten times ``tv``.

    Returns:
        One verdict for each check that applies.

    Raises:
        SpeculationRefuted, SpeculationUndecided, UnusableSubject: As in ``check_verifier``.
        ValueError: For a convention, sizes or parameters of the kernel that do not fit each other.

    Examples:
        >>> import numpy as np
        >>> def kernel(p, q, drafts, accept_uniforms, final_uniforms):  # rejects every draft and draws from p
        ...     tokens = np.full((len(p), drafts.shape[1] + 1), -1)
        ...     tokens[:, 0] = (p[:, 0].cumsum(1) <= final_uniforms[:, None]).sum(1)
        ...     return tokens
        >>> convention = KernelConvention(uniforms="[0, 1)", dtype="float64")
        >>> [verdict] = check_kernel(kernel, convention, gammas=(1,), checks=["answers_are_rounds"], quick=True)
        >>> verdict.statement
        'every row is accepted drafts and one token more'
    """
    if isinstance(convention, KernelConvention) and convention.library is None:
        convention = convention._replace(library=_library_of(kernel))
    result = kernel_of(kernel, name_of(kernel), convention)
    chosen, sizes = checked_gammas((1, 2) if gammas is None else gammas), _vocabularies(vocabularies)
    check_integer(rows, "rows")
    check_integer(largest_call, "largest_call", least=4)
    if options.get("quick"):
        sizes, rows = () if result.inside else sizes and QUICK_SIZES, min(rows, QUICK_ROWS)
    deep, seed = gammas is None, options.get("seed", 0)
    if result.inside:
        precision = precision_of(options.get("tv") or TV, options.get("alarm", ALARM), seed)
        of_samples = deep and not options.get("quick")
        checks = checks_of_samples(result, chosen, sizes, Calls(largest_call), precision, deep=of_samples)
    else:
        checks = checks_of_uniforms(result, chosen, sizes, rows, deep=deep)
    subject = Subject(result.name, "a batched verification kernel", frozenset(Claim))
    subject = claiming(subject, options.get("claims"))
    return judge(checks_plan(subject, checks, Conditions(seed=seed), options)._replace(replays=False))


def _library_of(kernel: Any) -> Library:
    """Return the array library of a kernel whose convention does not name one: "torch" or "numpy".

    It is torch if the kernel's code, or a function that the code mentions, names torch. It is also torch if the module
    of the kernel has imported torch and the kernel's code does not name numpy.
    """
    if not callable(kernel):
        return "numpy"
    if any(names_library(each, "torch") for each in (kernel, *named_functions(kernel))):
        return "torch"
    return "torch" if imported_beside(kernel, "torch") and not names_library(kernel, "numpy") else "numpy"


def _vocabularies(sizes: Any) -> tuple[int, ...]:
    """Return the validated vocabulary sizes to examine in addition to size 3.

    Raises ``ValueError`` unless ``sizes`` is a sequence of integers of at least 5.
    """
    if not isinstance(sizes, Sequence) or isinstance(sizes, (str, bytes)):
        raise argument_error("vocabularies", sizes, "a sequence of numbers of tokens, such as (129, 1025)")
    for size in sizes:
        check_integer(size, f"a vocabulary of {tuple(sizes)}", least=5)
    return tuple(map(int, sizes))
