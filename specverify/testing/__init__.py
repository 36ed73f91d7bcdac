"""The checks from inside somebody's own test file.

    from specverify.testing import check_verifier

    def test_my_rejection_sampler():
        check_verifier(my_rejection_sampler)

Each function returns its verdicts, and raises where one is not good: ``SpeculationRefuted`` with the counterexample,
``SpeculationUndecided`` where something is UNKNOWN, ``UnusableSubject`` where the subject cannot be examined. What is
handed in is looked at first: ``ValueError`` says in a sentence what was got and what was expected. All of them take the
options of ``CheckOptions``, each as its signature shows:

    check_verifier(verify, quick=True)                                  an answer in seconds, from a fixed list of cases
    check_verifier(verify, checks=["law_is_target"], fail_fast=True)    these checks, until one fails
    check_verifier(verify, expected_failures={"acceptance_is_optimal": "drops drafts below 0.01, issue 12"})
    check_verifier(verify, on_fail="warn", callback=print)              warn; print each verdict when its check ends

``timeout`` is the time limit of all checks together. In a thread that is not the main thread, or in code that catches
``BaseException``, it cannot always be kept (see ``specverify.foreign.limit``), and nothing here survives a crash of the
process: the command line examines in processes of their own.
"""

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.laws.size_scenarios import Sizes
from specverify.promises.values import Kind
from specverify.reference import Algorithm, Claim, LanguageModel, Pmf, Tokens
from specverify.subjects.external import Form
from specverify.subjects.hard_calls import HardCall, hard_calls
from specverify.subjects.kernel import Ends, KernelConvention, Library, Recovery, Rule, Uniforms
from specverify.subjects.made_engine import EngineScenario, Made
from specverify.subjects.observer import Observer, ReadPass
from specverify.subjects.rank_groups import Group
from specverify.subjects.recorded_calls import AnyCall, BatchedCall, Call, LogitsCall
from specverify.subjects.subject import Forward, Subject, UnusableSubject
from specverify.subjects.tree_verifier import Drafts
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
]
