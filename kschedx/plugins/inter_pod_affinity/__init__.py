"""InterPodAffinity (pkg/scheduler/framework/plugins/interpodaffinity).

`terms` reads affinity terms, `domains` adds up over topology domains, `filtering` and `scoring` hold the rules,
`accounts` explains a rejection, `plugin` ties them to the framework.
"""

from kschedx.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
