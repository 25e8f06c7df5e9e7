"""CapacityScheduling of scheduler-plugins (pkg/capacityscheduling), as of August 2026 with Kubernetes 1.35.4.

`quotas` counts, `plugin` decides with it, and `victims` is its preemption, which takes back what namespaces have
borrowed from each other.
"""

from kschedx.plugins.capacity_scheduling.plugin import CapacityScheduling

__all__ = ["CapacityScheduling"]
