"""Hypothesis profiles: the same examples in every run of the same files, many fresh ones with the profile "thorough".

What "thorough" finds is kept in ``.hypothesis`` and tried first the next time. The profile "mutation" is for code that
was changed on purpose: few examples, and none is made smaller.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase

PATIENT = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("default", derandomize=True, deadline=None, max_examples=40, suppress_health_check=PATIENT)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=500,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
    suppress_health_check=PATIENT,
)
settings.register_profile(
    "mutation", settings.get_profile("default"), phases=(Phase.explicit, Phase.generate), max_examples=30
)
settings.load_profile("default")
