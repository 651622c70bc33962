"""Laws are tried without a stopwatch: speed is measured in `make bench`, never asserted in a test."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("plimsoll", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("plimsoll")
