"""NodeResourceTopologyMatch of scheduler-plugins (pkg/noderesourcetopology), as of August 2026 with Kubernetes 1.35.4.

`numa` reads what a node says of its NUMA nodes, `plugin` rejects and scores with it, by the strategies in `zone_scores`
and `least_numa`.

What a node's NodeResourceTopology says is taken as it stands, as without a cache. With one
(`cacheResyncPeriodSeconds`, `discardReservedNodes`) the scheduler also remembers what it gave away since a node
reported last, which no snapshot has.
"""

from kschedx.plugins.node_resource_topology_match.plugin import NodeResourceTopologyMatch

__all__ = ["NodeResourceTopologyMatch"]
