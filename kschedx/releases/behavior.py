"""The differences between versions of kube-scheduler, one fact for each.

To correct a fact, edit its version. Feature gates have their own versions (`gates.py`); this module lists the changes
without a gate. Upstream: the files named in the heading of a fact's group, in that version.
"""

from __future__ import annotations

from kschedx.releases.dates import DatedFacts, between, dated, only_in, since, up_to


class Behavior(DatedFacts):
    # --- the cycle (pkg/scheduler/schedule_one.go, pkg/scheduler/framework/runtime/framework.go)

    single_node_is_scored: bool = up_to("1.5")  # the only feasible node is scored; later, it is used without scoring
    best_nodes_take_turns: bool = up_to("1.13")
    """Nodes with the highest total are used in turn; later, one of them is drawn at random."""
    pre_filter_stops_at_any_rejection: bool = up_to("1.29")
    """Unschedulable ends the PreFilter phase; later only UnschedulableAndUnresolvable does."""
    empty_node_set_is_unresolvable: bool = since("1.30")
    """If PreFilter plugins leave no node, the status is UnschedulableAndUnresolvable; before, Unschedulable."""
    pre_filter_rejection_is_each_nodes_status: bool = since("1.28")
    """PostFilter gets PreFilter's rejection as the status of every node; before, the nodes have no status."""
    unknown_node_name_is_an_error: bool = up_to("1.29")
    """If a PreFilter plugin names a node that does not exist, the cycle ends."""
    node_left_out_is_not_nominated: bool = only_in("1.30")
    """A node that PreFilter excludes has the status of excluded nodes, even the nominated node, tried before."""
    gated_nominations_count: bool = up_to("1.36")
    """The nomination of a pod with scheduling gates reserves its resources against other pods."""
    panics_without_nodes_left: bool = only_in("1.30")
    """kube-scheduler divides by zero if PreFilter plugins name only nodes that do not exist."""
    post_filter_error_is_reported: bool = since("1.27")
    """The event includes PostFilter's message even if PostFilter failed."""
    post_filter_part_gets_full_stop: bool = up_to("1.28")
    """PostFilter's message gets a full stop even if it already ends with one."""

    finished_pods_are_counted: bool = between("1.13", "1.35")
    """Pods that succeeded or failed count on their nodes like others, if kube-scheduler sees them.

    All versions rely on the API server to omit such pods from its lists. The decisions recorded for these versions used
    objects that no API server had handled. So this applies only to pods without a creation timestamp.
    """

    # --- preemption (pkg/scheduler/framework/preemption, plugins/defaultpreemption)

    preemption_tries_nodes_without_status: bool = up_to("1.30")
    """Preemption skips only UnschedulableAndUnresolvable nodes; later, it tries only Unschedulable ones."""
    preemption_awaits_only_its_victims: bool = since("1.27")
    """With the gate PodDisruptionConditions, a terminating pod counts only if a scheduler preempted it."""
    empty_budget_selector_covers_every_pod: bool = since("1.38")
    """A disruption budget with `selector: {}` covers every pod; before, preemption ignores it."""
    groups_are_queued: bool = since("1.37")
    """The queue holds a pod group as one entry with its own priority; before, the group's first pod adds the others."""
    group_members_preempt: bool = up_to("1.36")
    """In a group's cycle, each member preempts pods for itself; later, only the group as a whole does."""
    groups_preempt_for_every_member: bool = since("1.37")
    """A pod is not spared if fewer members of the preempting group would then have a node."""
    group_members_are_preempted_together: bool = since("1.37")
    """A victim's PodGroup decides whether preemption for a single pod evicts all pods of the group."""
    victims_are_ordered_by_importance: bool = since("1.32")
    """Victims that violate a disruption budget no longer come first; the first victim is the most important one."""

    # --- requests of pods (pkg/scheduler/framework/types.go, component-helpers/resource/helpers.go)

    sidecars_are_known: bool = since("1.28")
    """Restartable init containers count as running; before, they count as init containers."""
    requests_are_rounded_by_container: bool = up_to("1.26")
    """Each container's request is rounded up before the sum. This affects requests below a milli-cpu or a byte."""
    assumed_requests_are_counted_by_kind: bool = up_to("1.31")
    """The requests that scores assume for assigned pods are the larger of two values: the sum over the containers, and
    the largest init container. Sidecars are in neither."""
    scores_round_overhead_to_units: bool = up_to("1.26")
    """Scores add a pod's cpu overhead in whole cpus, as if they were milli-cpus."""

    # --- NodeResourcesFit and NodeResourcesBalancedAllocation (plugins/noderesources)

    zero_requests_can_be_short: bool = up_to("1.27")
    """Cpu, memory, and ephemeral storage are compared if the pod requests any resource at all."""
    oversized_requests_are_unresolvable: bool = since("1.34")
    """A request above the node's total allocatable is UnschedulableAndUnresolvable."""
    sidecars_are_refused_node_by_node: bool = between("1.28", "1.29")
    """Without the gate SidecarContainers, Filter rejects pods with sidecars on each node; later, PreFilter does."""
    fit_scores_honor_gates: bool = up_to("1.32")
    """NodeResourcesFit's score applies the gates of in-place resize and pod-level resources to the pod's request."""
    devices_replace_resources_offered_as_zero: bool = since("1.35")
    """DRAExtendedResource also applies if the node's allocatable has 0 of the resource, not only if it lacks it."""
    devices_are_scored: bool = since("1.35")
    """With DRAExtendedResource, scores count the devices for a resource of which the node itself has none."""
    balance_cannot_evaluate_selectors: bool = only_in("1.36")
    """NodeResourcesBalancedAllocation panics at a device whose DeviceClass has selectors."""
    balance_is_compared_with_before: bool = since("1.36")
    """NodeResourcesBalancedAllocation scores how the pod changes the balance; before, the balance with the pod."""

    # --- devices (dynamicresources, dynamic-resource-allocation/structured)

    devices_are_allocated_from_slices: bool = since("1.34")
    """DynamicResources implements resource.k8s.io/v1; before, behind its gate, each version had a different
    implementation."""
    device_alternatives_share_matches: bool = up_to("1.35")
    """Which devices an alternative for all devices selects is remembered for the alternative before it, and taken from
    what is remembered for that one."""
    device_pools_are_judged_by_node: bool = up_to("1.34")
    """A pool is complete if a node reaches all its slices. Requests for a number can have devices of incomplete pools,
    and an invalid pool is an error."""
    missing_attributes_have_a_hint: bool = since("1.37")
    """If a device selector reads an attribute that the device lacks, the error suggests how to avoid it."""
    rule_without_selector_taints_every_device: bool = up_to("1.37")
    """A DeviceTaintRule without `deviceSelector` taints every device; later, none."""
    broken_pools_fail_requests_for_all: bool = up_to("1.37")
    """An incomplete or invalid pool is an error for requests for all devices; later, only its node is rejected."""
    shared_devices_can_become_exclusive: bool = up_to("1.37")
    """A device with shares in claims can be allocated as a whole, after its slice forbids shares."""
    capacities_are_named_as_published: bool = up_to("1.37")
    """A request must name a capacity as the slice does, with or without the driver's domain; later, both are valid."""

    # --- other plugins

    init_images_are_scored: bool = since("1.30")
    """ImageLocality counts the images of init containers, which raises the sum needed for the highest score."""
    image_volumes_are_scored: bool = since("1.36")  # ImageLocality counts the images that image volumes mount
    contradictory_term_rejects: bool = up_to("1.26")
    """NodeAffinity: a term that no node name can satisfy ends PreFilter, even if another term names nodes."""
    empty_selector_counts_every_pod: bool = dated({"1.0": True, "1.27": False, "1.38": True})
    """PodTopologySpread: a constraint with an empty selector counts every pod; between these versions, none."""
    namespace_selectors_match_twice: bool = since("1.34")
    """InterPodAffinity matches a namespaceSelector also with no labels: `DoesNotExist` and `NotIn` select every
    namespace."""
    sidecar_ports_are_occupied: bool = since("1.33.6")  # NodePorts counts the host ports of restartable init containers
    user_namespace_on_host_network_is_inferred: bool = since("1.36")
    """NodeDeclaredFeatures requires the feature that such a pod needs."""
    declared_features_are_read_in_order: bool = since("1.36")
    """NodeDeclaredFeatures overlooks a feature that is listed after one that sorts after it."""
    nodes_may_be_silent_longer: bool = since("1.32")
    """The node lifecycle controller waits 50 seconds for a node, instead of 40 (--node-monitor-grace-period)."""
    gangs_are_of_workloads: bool = up_to("1.35")
    """GangScheduling reads a pod's group from the Workload that the pod names."""

    # --- volumes

    zone_labels_decide_before_claims: bool = up_to("1.26")
    """VolumeZone has only Filter, and ignores the claims if the node has no zone or region label."""
    zone_labels_of_both_generations_agree: bool = since("1.29")
    """VolumeZone compares a volume's beta label with the node's newer label if the node lacks the beta label."""
    local_volumes_name_their_nodes: bool = between("1.27", "1.31.2")
    """VolumeBinding's PreFilter keeps only the nodes that bound volumes name by hostname."""
    attachments_count: bool = since("1.32")
    """NodeVolumeLimits counts the volumes that VolumeAttachments attach to the node, besides its pods' volumes."""
    allocatable_limits_volumes: bool = up_to("1.31")
    """NodeVolumeLimits also reads a limit from the node's allocatable `attachable-volumes-csi-*`."""
    device_statuses_need_an_allocator: bool = up_to("1.34")
    """DynamicResources uses its newest allocator for DRAResourceClaimDeviceStatus alone."""
    missing_claim_is_unresolvable: bool = since("1.30")
    """NodeVolumeLimits rejects a pod with a claim that does not exist; before, this is an internal error."""
    provisioned_volumes_are_scored: bool = since("1.33")
    """VolumeBinding's score counts volumes to provision if there are none to bind."""
    drivers_ask_to_be_installed: bool = since("1.36")
    """With VolumeLimitScaling, a missing driver rejects the node only if its CSIDriver requires that."""
