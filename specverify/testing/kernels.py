"""Kernels that verify batches on a device."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Unpack

from specverify.base.arguments import (
    argument_error,
    check_integer,
    check_seed,
)
from specverify.checks import Conditions
from specverify.checks.kernels import checks_of_samples, checks_of_uniforms, precision_of
from specverify.reference import Claim
from specverify.subjects.kernel import Ends, Library, Recovery, Rule, Uniforms, kernel_of
from specverify.subjects.kernel_samples import Calls
from specverify.subjects.libraries import imported_beside, named_functions, names_library
from specverify.subjects.subject import Subject
from specverify.testing.judged import judged
from specverify.testing.plans import ALARM, Judging, Plan, checked_gammas, checks_plan, claiming, name_of

QUICK_ROWS = 2**12


@judged
def check_kernel(
    kernel: Callable[..., Any],
    *,
    uniforms: Uniforms = "[0, 1)",
    recovery: Recovery = "inverse cdf",
    rule: Rule = "token",
    ends: Ends = "padding",
    padding: int = -1,
    draft_padding: int = -1,
    offset_step: int = 1,
    library: Library | None = None,
    dtype: str = "float32",
    device: Any = None,
    gammas: Sequence[int] | None = None,
    vocabularies: Sequence[int] = (129, 1025, 8193),
    rows: int = 2**16,
    tv: float = 5e-3,
    rows_per_call: int = 2**18,
    seed: int = 0,
    claims: Collection[Claim] | None = None,
    **how: Unpack[Judging],
) -> Plan:
    """Examine a kernel that verifies batches on a device; what it is called with is in ``subjects.kernel``.

    ``uniforms`` says where its random numbers come from. If they are arguments, in ``"[0, 1)"`` or ``"(0, 1]"``, its
    law is exact: see ``laws.grid``. If there are a ``"seed"`` and an offset, or it has its ``"own"`` generator, it is
    sampled: a total variation of ``tv`` is seen, ten times that between two of its random numbers.

    ``recovery``: the last token by ``"inverse cdf"``, or as a race of ``"exponential"`` or ``"gumbel"`` noises.
    ``rule``: what a coin decides, a ``"token"`` (2211.17192) or that a ``"block"`` is accepted (2403.10444).
    ``ends``: what tells the end of a row, ``"padding"`` or a number beside the tokens, of those ``"emitted"`` or of the
    drafts ``"accepted"``. ``padding`` is behind the tokens of an answer, ``draft_padding`` behind the drafts of a row.
    ``offset_step`` is what a caller adds to the offset from call to call. ``library``, ``dtype`` and ``device`` are of
    its arrays. ``library`` is torch where its code names torch, or where its module does and its code does not name
    NumPy, and NumPy elsewhere.

    ``gammas`` are the numbers of drafts, 1 and 2 unless told otherwise, and then the law is asked for 4 too if it runs
    on them: nothing is said of more. ``vocabularies`` are sizes beside the 3 of the exact tables; ``rows`` is how many
    rows one look at the tables may take, in all, ``rows_per_call`` how many one call has at most when it is sampled.
    With ``quick`` the larger vocabularies are left out and ``rows`` is 4096 at most. Raises ``ValueError`` for options
    or parameters that do not fit each other.
    """
    result = kernel_of(
        kernel,
        name_of(kernel),
        uniforms=uniforms,
        recovery=recovery,
        rule=rule,
        ends=ends,
        padding=padding,
        draft_padding=draft_padding,
        offset_step=offset_step,
        library=library or _library_of(kernel),
        dtype=dtype,
        device=device,
    )
    chosen, sizes = checked_gammas((1, 2) if gammas is None else gammas), _vocabularies(vocabularies)
    check_seed(seed)
    check_integer(rows, "rows")
    check_integer(rows_per_call, "rows_per_call", least=4)
    if how.get("quick"):
        sizes, rows = (), min(rows, QUICK_ROWS)
    deep = gammas is None and not how.get("quick")
    if result.inside:
        precision = precision_of(tv, how.get("alarm", ALARM), seed)
        checks = checks_of_samples(result, chosen, sizes, Calls(rows_per_call), precision, deep=deep)
    else:
        checks = checks_of_uniforms(result, chosen, sizes, rows, deep=deep)
    subject = claiming(Subject(result.name, "a batched verification kernel", frozenset(Claim)), claims)
    return checks_plan(subject, checks, Conditions(seed=seed), how)._replace(replays=False)


def _library_of(kernel: Any) -> Library:
    """Return the library whose arrays a kernel is given where nobody says: see ``check_kernel``."""
    if not callable(kernel):
        return "numpy"
    if any(names_library(each, "torch") for each in (kernel, *named_functions(kernel))):
        return "torch"
    return "torch" if imported_beside(kernel, "torch") and not names_library(kernel, "numpy") else "numpy"


def _vocabularies(sizes: Any) -> tuple[int, ...]:
    """Return the larger vocabularies of a kernel, as they were given."""
    if not isinstance(sizes, Sequence) or isinstance(sizes, (str, bytes)):
        raise argument_error("vocabularies", sizes, "a sequence of numbers of tokens, such as (129, 1025)")
    for size in sizes:
        check_integer(size, f"a vocabulary of {tuple(sizes)}", least=5)
    return tuple(map(int, sizes))
