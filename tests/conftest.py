"""Settings of the test run; this file puts the folder on the path (``from strategies import``)."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Nothing is timed: the machine may be busy.
settings.register_profile("crowdtree", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crowdtree")
