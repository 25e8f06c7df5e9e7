"""The differences between versions of cluster-autoscaler, which are numbered like those of Kubernetes.

Upstream: cluster-autoscaler/ of kubernetes/autoscaler. 1.36 and 1.33 were tested on recorded loops; the others are read
from its code.
"""

from __future__ import annotations

from collections.abc import Sequence

from kschedx.releases.dates import DatedFacts, Minor, dated, minor, since

_NVIDIA, _DIRECT_X = "nvidia.com/gpu", "microsoft.com/directx"
_GPUS = (_NVIDIA, "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", _DIRECT_X)
_ZONE_ID = "topology.k8s.aws/zone-id"
_OF_IMAGES = ("kubernetes.azure.com/node-image-version", "kubernetes.azure.com/consolidated-additional-properties")


class AutoscalerBehavior(DatedFacts):
    """The behavior of one version.

    One difference is missing: before 1.32, pods of one controller are evaluated separately if their variables (`env`)
    differ. A snapshot keeps no variables.
    """

    # --- state of the groups (clusterstate/clusterstate.go)

    suspended_nodes_count: bool = since("1.36")  # nodes with the condition Suspended are counted separately
    upcoming_needs_scale_up: bool = since("1.36")
    """Nodes are upcoming only during a scale-up; before, whenever the target size exceeds the number of nodes."""

    # --- the cluster and its pods (core/static_autoscaler.go, core/podlistprocessor)

    nominated_pods_are_placed: bool = since("1.36")
    """A nominated pod is on its node from the start and never triggers a scale-up. Before, it is placed there after
    expendable pods are dropped, and only if the node exists."""
    schedulers_can_be_bypassed: bool = since("1.29")  # `--bypassed-scheduler-names`
    schedulers_can_be_allowed: bool = since("1.35")  # `--allowed-scheduler-names`
    max_nodes_total_is_reported: bool = since("1.33")
    """If the cluster reaches its maximum before any group is evaluated, an event reports it, for each pending pod as
    well. Before, both are only in the log."""

    # --- templates (simulator/node_info_utils.go)

    critical_daemon_sets_are_added: bool = since("1.33")
    """A template includes the system-node-critical DaemonSets even if the example node has none of their pods."""
    startup_taints_are_named: bool = since("1.29")
    """`--startup-taint`, `--status-taint`, and their prefixes exist; before, only ignored taints can be named."""
    templates_are_labelled: bool = since("1.36")  # a template node has a label that marks it as one
    cordoned_templates_can_be_opened: bool = since("1.32")  # `--scale-from-unschedulable`

    # --- GPUs (utils/gpu/gpu.go, processors/customresources/gpu_processor.go)

    gpu_resources: tuple[str, ...] = dated({"1.26": (_NVIDIA,), "1.35": _GPUS})
    """The resources that pods request and that limits count, in the order in which a node is evaluated."""
    gpus_that_show: tuple[str, ...] = dated({"1.26": (_NVIDIA, _DIRECT_X), "1.35": _GPUS})
    """A node with a GPU label is ready once its allocatable has one of these resources."""

    # --- limits (resourcequotas, core/scaleup/resource/manager.go)

    limits_are_quotas: bool = since("1.35")
    """Cluster-wide limits apply to the nodes of the snapshot, and 0 is a limit. Before, they apply to target sizes
    times templates, a group without a template is an error, and 0 means no limit."""
    balanced_sizes_heed_quotas: bool = since("1.36")
    """Each group of a balanced scale-up gets at most what the groups before it leave of the quota."""
    limit_text: str = dated(
        {
            "1.26": "max cluster {resources} limit reached",
            "1.35": 'exceeded quota: "cluster-wide", resources: {resources}',
        }
    )
    counts_nodes_of_snapshot: bool = since("1.35")
    """`--max-nodes-total` counts the nodes of the snapshot; before, ready nodes that are not cordoned, and upcoming
    nodes."""

    # --- the checks and the estimate (simulator/clustersnapshot, estimator)

    pre_filter_leaves_nodes_out: bool = since("1.32")  # a node is rejected if PreFilter does not name it
    spread_pods_go_anywhere: bool = since("1.33")
    """A pod with a topology spread constraint on hostname that the last new node rejects may use any other node."""
    similar_groups_limit_the_estimate: bool = since("1.28")
    """The free capacity up to the maximum sizes of the group and of similar groups is a limit."""

    takes_scheduler_config: bool = since("1.28")  # `--scheduler-config-file`; before, the default profile decides

    # --- the choice (config/flags/flags.go, core/scaleup/orchestrator)

    labels_still_compared: frozenset[str] = dated(
        {"1.26": frozenset({_ZONE_ID, *_OF_IMAGES}), "1.31": frozenset({_ZONE_ID}), "1.35": frozenset()}
    )
    """Labels that distinguish node groups in this version, but not in later ones (processors/nodegroupset)."""
    default_expander: str = dated({"1.26": "random", "1.33": "least-waste"})
    failures_are_reported: bool = since("1.36")
    """Pods that would have fit get an event if the scale-up fails after the choice of a group."""
    fast_path: bool = since("1.36")  # `--fastpath-binpacking-enabled`
    skipped_groups_can_be_checked: bool = since("1.36")  # `--scaleup-simulation-for-skipped-node-groups-enabled`
    startup_taint_prefixes: bool = since("1.36")

    # --- the removal of nodes (core/scaledown, simulator)

    devices_count: bool = since("1.35")
    """A new node has devices like those of the example node, and a node's utilization counts its devices; before, only
    with `--enable-dynamic-resource-allocation`."""
    nodes_at_threshold_go: bool = since("1.35")  # a node whose utilization equals the threshold may be removed
    system_pods_block_for_a_time: bool = since("1.33")
    """A pod of kube-system without a disruption budget blocks the removal of its node until
    `--blocking-system-pod-distruption-timeout`."""
    pods_may_complete: bool = since("1.36")
    """`safe-to-evict: on-completion`: the removal of the node waits until the pod has completed."""
    removed_nodes_stay_domains: bool = since("1.36")
    """While the removal is simulated, the node counts as a domain of topology spread."""

    def limited_resources(self, skipped: Sequence[str]) -> tuple[str, ...]:
        """Return the resources whose limit of the whole cluster is the reason for skipping a group."""
        start, end = self.limit_text.split("{resources}")
        texts = (text for text in skipped if text.startswith(start) and text.endswith(end))
        return next((tuple(text.removeprefix(start).removesuffix(end).split(", ")) for text in texts), ())


def autoscaler_behavior(version: str) -> AutoscalerBehavior:
    """Return the behavior of a minor version, `1.36`."""
    release: Minor = minor(version)
    return AutoscalerBehavior(release)
