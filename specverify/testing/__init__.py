"""The checks from inside somebody's own test file.

    from specverify.testing import check_verifier

    def test_my_rejection_sampler():
        check_verifier(my_rejection_sampler)

Each function returns its verdicts, and raises where one is not good: ``SpeculationRefuted`` with the counterexample,
``SpeculationUndecided`` where something is UNKNOWN, ``UnusableSubject`` where the subject cannot be examined. What is
handed in is looked at first: ``ValueError`` says in a sentence what was got and what was expected. All of them take the
options of ``plans.Judging``:

    check_verifier(verify, quick=True)                                  an answer in seconds, from a fixed list of cases
    check_verifier(verify, checks=["law_is_target"], fail_fast=True)    these checks, until one fails
    check_verifier(verify, expected_failures={"acceptance_is_optimal": "drops drafts below 0.01, issue 12"})
    check_verifier(verify, on_fail="warn", callback=print)              warn; print each verdict when its check ends

``timeout`` is the time limit of all checks together. In a thread that is not the main thread, or in code that catches
``BaseException``, it cannot always be kept (see ``specverify.foreign.limit``), and nothing here survives a crash of the
process: the command line examines in processes of their own.
"""

from specverify.laws.size_scenarios import Sizes
from specverify.subjects.hard_calls import hard_calls
from specverify.subjects.made_engine import EngineScenario, Made
from specverify.subjects.observer import Observer
from specverify.subjects.recorded_calls import BatchedCall, Call, LogitsCall
from specverify.subjects.subject import UnusableSubject
from specverify.testing.caches import check_cache
from specverify.testing.drafters import check_drafter
from specverify.testing.engines import check_engine
from specverify.testing.items import parametrize_with_checks
from specverify.testing.judged import (
    SpeculationRefuted,
    SpeculationUndecided,
    SpeculationWarning,
    check_subject,
)
from specverify.testing.kernels import check_kernel
from specverify.testing.samplers import check_sampler
from specverify.testing.servers import server_sampler
from specverify.testing.verifiers import check_decoder, check_verifier
from specverify.trust.calibrate import Calibration, calibrate

__all__ = [
    "BatchedCall",
    "Calibration",
    "Call",
    "EngineScenario",
    "LogitsCall",
    "Made",
    "Observer",
    "Sizes",
    "SpeculationRefuted",
    "SpeculationUndecided",
    "SpeculationWarning",
    "UnusableSubject",
    "calibrate",
    "check_cache",
    "check_decoder",
    "check_drafter",
    "check_engine",
    "check_kernel",
    "check_sampler",
    "check_subject",
    "check_verifier",
    "hard_calls",
    "parametrize_with_checks",
    "server_sampler",
]
