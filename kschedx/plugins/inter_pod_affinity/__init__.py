"""InterPodAffinity (pkg/scheduler/framework/plugins/interpodaffinity): `plugin` applies what `terms` reads."""

from kschedx.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
