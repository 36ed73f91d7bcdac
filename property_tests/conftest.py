"""Hypothesis profiles: the same examples in every run by default, many fresh ones with the profile "thorough"."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

PATIENT = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("default", derandomize=True, deadline=None, max_examples=60, suppress_health_check=PATIENT)
settings.register_profile("thorough", deadline=None, max_examples=500, print_blob=True, suppress_health_check=PATIENT)
settings.load_profile("default")
