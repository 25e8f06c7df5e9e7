"""What the cluster-autoscaler does in some releases and not in others; its releases go with those of Kubernetes.

Upstream: cluster-autoscaler/ of kubernetes/autoscaler. 1.36 and 1.33 have been measured on recorded loops, the others
are read from its code.
"""

from __future__ import annotations

from kschedx.releases.dates import DatedFacts, Minor, dated, minor, since

MEASURED = ("1.36", "1.33")


_NVIDIA, _DIRECT_X = "nvidia.com/gpu", "microsoft.com/directx"
_GPUS = (_NVIDIA, "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", _DIRECT_X)
_ZONE_ID = "topology.k8s.aws/zone-id"
_OF_IMAGES = ("kubernetes.azure.com/node-image-version", "kubernetes.azure.com/consolidated-additional-properties")


class AutoscalerBehaviour(DatedFacts):
    """The claims that hold in one release.

    Not among them: before 1.32, pods of one controller with different variables (`env`) are judged apart; a snapshot
    keeps no variables.
    """

    # --- state of the groups (clusterstate/clusterstate.go)

    suspended_nodes_count: bool = since("1.36")
    """A node with the condition Suspended is in a class of its own."""
    upcoming_needs_scale_up: bool = since("1.36")
    """Nodes are upcoming only while a scale-up is in progress; before, whenever the target is above the nodes."""

    # --- the cluster and its pods (core/static_autoscaler.go, core/podlistprocessor)

    nominated_pods_are_placed: bool = since("1.36")
    """A nominated pod is on its node from the start and never helped; before, it is put there after the expendable
    ones are dropped, and only if the node exists."""
    schedulers_can_be_bypassed: bool = since("1.29")
    """`--bypassed-scheduler-names`."""
    schedulers_can_be_allowed: bool = since("1.35")
    """`--allowed-scheduler-names`."""
    max_nodes_total_is_told: bool = since("1.33")
    """Where the cluster is at its maximum before any group is evaluated, an event says so, and each pod left gets one;
    before, both are only in the log."""

    # --- templates (simulator/node_info_utils.go)

    critical_daemon_sets_are_added: bool = since("1.33")
    """Those that are system-node-critical are on a template even if the example has no pod of them."""
    startup_taints_are_named: bool = since("1.29")
    """`--startup-taint`, `--status-taint` and the prefixes of their own; before, only those that are ignored."""
    templates_are_labelled: bool = since("1.36")
    """A template has a label of its own."""
    cordoned_templates_can_be_opened: bool = since("1.32")
    """`--scale-from-unschedulable`."""

    # --- GPUs (utils/gpu/gpu.go, processors/customresources/gpu_processor.go)

    gpu_resources: tuple[str, ...] = dated({"1.26": (_NVIDIA,), "1.35": _GPUS})
    """What pods ask for and limits count, in the order in which a node is evaluated."""
    gpus_that_show: tuple[str, ...] = dated({"1.26": (_NVIDIA, _DIRECT_X), "1.35": _GPUS})
    """A node that is labelled as one with a GPU is ready once it offers one of these."""

    # --- limits (resourcequotas, core/scaleup/resource/manager.go)

    limits_are_quotas: bool = since("1.35")
    """Cluster-wide limits hold for what is in the snapshot, and 0 is a limit; before, they hold for target sizes times
    templates, a group without template is an error, and 0 is none."""
    balanced_sizes_heed_quotas: bool = since("1.36")
    """Each group of a balanced scale-up is cut by what the groups before it leave."""
    limit_text: str = dated(
        {
            "1.26": "max cluster {resources} limit reached",
            "1.35": 'exceeded quota: "cluster-wide", resources: {resources}',
        }
    )
    counts_nodes_of_snapshot: bool = since("1.35")
    """`--max-nodes-total` counts the nodes of the snapshot; before, ready and not cordoned nodes, and upcoming ones."""

    # --- the checks and the estimate (simulator/clustersnapshot, estimator)

    pre_filter_leaves_nodes_out: bool = since("1.32")
    """Whether PreFilter named the node is evaluated."""
    spread_pods_go_anywhere: bool = since("1.33")
    """A pod with a constraint on hostname that the last new node refuses may go to any other node."""
    similar_groups_limit_the_estimate: bool = since("1.28")
    """What is left of the maxima of the group and its similar ones is a limit."""

    takes_scheduler_config: bool = since("1.28")
    """`--scheduler-config-file`; before, the default profile judges."""

    # --- the choice (config/flags/flags.go, core/scaleup/orchestrator)

    labels_still_compared: frozenset[str] = dated(
        {"1.26": frozenset({_ZONE_ID, *_OF_IMAGES}), "1.31": frozenset({_ZONE_ID}), "1.35": frozenset()}
    )
    """Labels that distinguish groups, and in later versions do not (processors/nodegroupset)."""
    default_expander: str = dated({"1.26": "random", "1.33": "least-waste"})
    failures_are_told: bool = since("1.36")
    """Pods that would have fitted get an event about a failure after the choice."""
    fast_path: bool = since("1.36")
    """`--fastpath-binpacking-enabled`."""
    skipped_groups_can_be_checked: bool = since("1.36")
    """`--scaleup-simulation-for-skipped-node-groups-enabled`."""
    startup_taint_prefixes: bool = since("1.36")
    """`--startup-taint-prefix`."""

    # --- the removal of nodes (core/scaledown, simulator)

    devices_count: bool = since("1.35")
    """Devices of its own say how much a node is used; before, only with `--enable-dynamic-resource-allocation`."""
    nodes_at_threshold_go: bool = since("1.35")
    """A node that is used exactly as much as the threshold may be removed."""
    system_pods_block_for_a_time: bool = since("1.33")
    """A pod of kube-system without a budget keeps its node until `--blocking-system-pod-distruption-timeout`."""
    pods_may_complete: bool = since("1.36")
    """`safe-to-evict: on-completion`: the node waits for the pod's end."""
    removed_nodes_stay_domains: bool = since("1.36")
    """While places are looked for, the node counts as a domain of topology spread."""


def autoscaler_behaviour(version: str) -> AutoscalerBehaviour:
    """The claims of a minor release, `1.36`."""
    release: Minor = minor(version)
    return AutoscalerBehaviour(release)
