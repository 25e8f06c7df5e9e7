"""InterPodAffinity (pkg/scheduler/framework/plugins/interpodaffinity): `terms` reads affinity terms, `plugin` applies them."""

from kschedx.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
