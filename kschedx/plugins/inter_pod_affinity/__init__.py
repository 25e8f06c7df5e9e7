"""InterPodAffinity (pkg/scheduler/framework/plugins/interpodaffinity): `plugin` applies the terms that `terms` reads."""

from kschedx.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
