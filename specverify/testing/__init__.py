"""The checks as functions for a test file.

    from specverify.testing import check_verifier

    def test_my_rejection_sampler():
        check_verifier(my_rejection_sampler)

Each function returns its verdicts. It raises ``SpeculationRefuted`` with the counterexample if a check refutes,
``SpeculationUndecided`` if a check is UNKNOWN, and ``UnusableSubject`` if the subject cannot be examined. Arguments are
validated first: ``ValueError`` states in a sentence the value given and the value expected. All functions take options
of ``CheckOptions``, as their signatures show:

    check_verifier(verify, quick=True)                                  an answer in seconds, from a fixed list of cases
    check_verifier(verify, checks=["law_is_target"], fail_fast=True)    these checks, until one fails
    check_verifier(verify, expected_failures={"acceptance_is_optimal": "drops drafts below 0.01, issue 12"})
    check_verifier(verify, on_fail="warn", callback=print)              warn; print each verdict when its check ends

``timeout`` limits the time of all checks together. It cannot always be kept in a thread other than the main thread, or
in code that catches ``BaseException`` (see ``specverify.foreign.limit``), and a crash of the process ends the test run:
the command line examines subjects in processes of their own.
"""

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.laws.size_scenarios import Sizes
from specverify.promises.known_values import Kind
from specverify.reference import Algorithm, Claim, LanguageModel, Pmf, Tokens
from specverify.subjects.engine_making import EngineScenario, Made
from specverify.subjects.external import FormName as Form
from specverify.subjects.forms import Drafts
from specverify.subjects.hard_calls import HardCall, hard_calls
from specverify.subjects.kernel import Ends, KernelConvention, Library, Recovery, Rule, Uniforms
from specverify.subjects.observer import Observer, ReadPass
from specverify.subjects.rank_groups import Group
from specverify.subjects.recorded_calls import AnyCall, BatchedCall, Call, LogitsCall
from specverify.subjects.subject import Forward, Subject, UnusableSubject
from specverify.testing.caches import CacheOperations, check_cache
from specverify.testing.drafters import check_drafter
from specverify.testing.engines import check_engine
from specverify.testing.items import CheckOfSubject, parametrize_with_checks
from specverify.testing.judged import (
    SpeculationRefuted,
    SpeculationUndecided,
    SpeculationWarning,
    check_subject,
)
from specverify.testing.kernels import check_kernel
from specverify.testing.networks import NetworkCache, NetworkResult, torch_network
from specverify.testing.plans import CheckOptions, OnFail
from specverify.testing.promised import Returns
from specverify.testing.samplers import SampleCall, SamplerLaw, check_sampler
from specverify.testing.servers import server_sampler
from specverify.testing.verifiers import check_decoder, check_verifier
from specverify.trust.calibrate import Calibration, ErrorDetection, Takes, calibrate

__all__ = [
    "Algorithm",
    "AnyCall",
    "BatchedCall",
    "CacheOperations",
    "Calibration",
    "Call",
    "CheckOfSubject",
    "CheckOptions",
    "Claim",
    "Counterexample",
    "Drafts",
    "Ends",
    "EngineScenario",
    "ErrorDetection",
    "Evidence",
    "Form",
    "Forward",
    "Group",
    "HardCall",
    "KernelConvention",
    "Kind",
    "LanguageModel",
    "Library",
    "LogitsCall",
    "Made",
    "NetworkCache",
    "NetworkResult",
    "Observer",
    "OnFail",
    "Pmf",
    "ReadPass",
    "Recovery",
    "Returns",
    "Rule",
    "SampleCall",
    "SamplerLaw",
    "Sizes",
    "SpeculationRefuted",
    "SpeculationUndecided",
    "SpeculationWarning",
    "Status",
    "Subject",
    "Takes",
    "Tokens",
    "Uniforms",
    "UnusableSubject",
    "Verdict",
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
    "torch_network",
]
