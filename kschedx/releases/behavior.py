"""What kube-scheduler does in some releases and not in others, a claim each. A line's date is all there is to edit.

Feature gates have their own dates (`feature_gates.py`); here is what changed without one. Upstream: the files named
with a claim's group, at the release of its date.
"""

from __future__ import annotations

from kschedx.releases.dates import DatedFacts, between, dated, only_in, since, up_to


class Behaviour(DatedFacts):
    """The claims that hold in one release."""

    # --- the cycle (pkg/scheduler/schedule_one.go, pkg/scheduler/framework/runtime/framework.go)

    single_node_is_scored: bool = up_to("1.5")
    """A node that is the only feasible one; later it is taken unscored."""
    best_nodes_take_turns: bool = up_to("1.13")
    """Of several nodes with the highest total; later one of them is drawn."""
    pre_filter_stops_at_any_rejection: bool = up_to("1.29")
    """Unschedulable ends the PreFilter phase; later only UnschedulableAndUnresolvable does."""
    empty_node_set_is_unresolvable: bool = since("1.30")
    """PreFilter plugins that leave no node: UnschedulableAndUnresolvable, before that Unschedulable."""
    pre_filter_rejection_is_each_nodes_status: bool = since("1.28")
    """PostFilter sees a rejection by PreFilter on every node; before, it sees nodes without a status."""
    unknown_node_name_is_an_error: bool = up_to("1.29")
    """A PreFilter plugin that names a node which does not exist ends the cycle."""
    node_left_out_is_not_nominated: bool = only_in("1.30")
    """A node that PreFilter leaves out has the status of such nodes, even the nominated one, which was tried before."""
    gated_nominations_count: bool = up_to("1.36")
    """The nomination of a pod that its gates hold keeps others from the room that it was promised."""
    panics_without_nodes_left: bool = only_in("1.30")
    """kube-scheduler divides by zero where PreFilter plugins name only nodes that do not exist."""
    post_filter_error_is_reported: bool = since("1.27")
    """The event's text has PostFilter's message even where PostFilter failed."""
    post_filter_part_gets_full_stop: bool = up_to("1.28")
    """After a message that ends in one already."""

    finished_pods_are_counted: bool = between("1.13", "1.35")
    """Pods that have succeeded or failed count on their nodes like others, where kube-scheduler is given them.

    All releases leave it to the API server to omit them when it lists pods. The decisions recorded of these releases
    were taken on objects that had gone through none, so this holds only for pods without a creation timestamp.
    """

    # --- preemption (pkg/scheduler/framework/preemption, plugins/defaultpreemption)

    preemption_tries_nodes_without_status: bool = up_to("1.30")
    """Only an UnschedulableAndUnresolvable node is passed over; later a node has to be Unschedulable to be tried."""
    preemption_awaits_only_its_victims: bool = since("1.27")
    """With the gate PodDisruptionConditions, a terminating pod counts only if a scheduler preempted it."""
    empty_budget_selector_covers_every_pod: bool = since("1.38")
    """A disruption budget with `selector: {}` counts; before, preemption ignores it."""
    groups_are_queued: bool = since("1.37")
    """A pod group is in the queue as one, by its own priority; before, its first pod brings the others along."""
    group_members_preempt: bool = up_to("1.36")
    """In a group's cycle each member preempts pods for itself; later only the group as a whole does."""
    groups_preempt_for_every_member: bool = since("1.37")
    """A pod is not spared where fewer members of the group that preempts it would find a node."""
    group_members_are_preempted_together: bool = since("1.37")
    """A victim's PodGroup decides whether preemption for a single pod takes all pods of the group."""
    victims_are_ordered_by_importance: bool = since("1.32")
    """Those that violate a disruption budget no longer come first, so that the first is the most important."""

    # --- what pods ask for (pkg/scheduler/framework/types.go, component-helpers/resource/helpers.go)

    sidecars_are_known: bool = since("1.28")
    """Restartable init containers count as running; before, as init containers."""
    requests_are_rounded_by_container: bool = up_to("1.26")
    """Each container's request is rounded up before the sum, which matters below a milli-cpu or a byte."""
    assumed_requests_are_counted_by_kind: bool = up_to("1.31")
    """The requests that scores assume for pods on nodes: the sum over the containers or the largest init container,
    whichever is larger; sidecars are in neither sum."""
    scores_round_overhead_to_units: bool = up_to("1.26")
    """Scores add a pod's cpu overhead in whole cpus, but as if they were milli-cpus."""

    # --- NodeResourcesFit and NodeResourcesBalancedAllocation (plugins/noderesources)

    zero_requests_can_be_short: bool = up_to("1.27")
    """Cpu, memory and ephemeral storage are compared as soon as the pod asks for anything at all."""
    oversized_requests_are_unresolvable: bool = since("1.34")
    """A request beyond the node's whole allocatable is UnschedulableAndUnresolvable."""
    sidecars_are_refused_node_by_node: bool = between("1.28", "1.29")
    """With the gate SidecarContainers off; later PreFilter refuses them."""
    fit_scores_honor_gates: bool = up_to("1.32")
    """NodeResourcesFit's score counts the pod's request with the gates of in-place resize and pod-level resources."""
    devices_replace_resources_offered_as_zero: bool = since("1.35")
    """DRAExtendedResource: also where the node offers none of a resource, and not only where it does not name it."""
    devices_are_scored: bool = since("1.35")
    """With DRAExtendedResource, where a node offers none of a resource itself, scores count the devices for it."""
    balance_is_compared_with_before: bool = since("1.36")
    """NodeResourcesBalancedAllocation scores what the pod changes; before, how balanced the node is with it."""

    # --- devices (dynamicresources, dynamic-resource-allocation/structured)

    devices_are_allocated_from_slices: bool = since("1.34")
    """DynamicResources as resource.k8s.io/v1 has it; before, behind its gate, it was another in each release."""
    missing_attributes_have_a_hint: bool = since("1.37")
    """The error of a device selector that reads an attribute which the device lacks says how to avoid it."""
    rule_without_selector_taints_every_device: bool = up_to("1.37")
    """A DeviceTaintRule without `deviceSelector`; later it taints none."""
    broken_pools_fail_requests_for_all: bool = up_to("1.37")
    """An incomplete or invalid pool is an error for requests for all devices; later only its node is rejected."""
    shared_devices_can_become_exclusive: bool = up_to("1.37")
    """A device of which claims have shares, after its slice forbids that, can be allocated as a whole."""
    capacities_are_named_as_published: bool = up_to("1.37")
    """A request names a capacity with the driver's domain, or without, as the slice does; later either is right."""

    # --- other plugins

    init_images_are_scored: bool = since("1.30")
    """ImageLocality counts the images of init containers, and a larger sum for them is needed."""
    image_volumes_are_scored: bool = since("1.36")
    """ImageLocality counts the images that volumes mount."""
    contradictory_term_rejects: bool = up_to("1.26")
    """NodeAffinity: a term that names no node ends PreFilter, although another term may name some."""
    empty_selector_counts_every_pod: bool = dated({"1.0": True, "1.27": False, "1.38": True})
    """PodTopologySpread: in between such a constraint counts none."""
    sidecar_ports_are_occupied: bool = since("1.34")
    """NodePorts counts the host ports of restartable init containers."""
    user_namespace_on_host_network_is_inferred: bool = since("1.36")
    """NodeDeclaredFeatures asks for the feature that such a pod needs."""
    declared_features_are_read_in_order: bool = since("1.36")
    """NodeDeclaredFeatures overlooks a feature that follows one which sorts after it."""
    nodes_may_be_silent_longer: bool = since("1.32")
    """The node lifecycle controller waits 50 seconds for a node, and not 40 (--node-monitor-grace-period)."""
    gangs_are_of_workloads: bool = up_to("1.35")
    """GangScheduling looks for a pod's group in the Workload that the pod names."""

    # --- volumes

    zone_labels_decide_before_claims: bool = up_to("1.26")
    """VolumeZone has only Filter, and does not look at the claims where the node has no zone or region label."""
    zone_labels_of_both_generations_agree: bool = since("1.29")
    """VolumeZone holds a volume's beta label against the node's newer label where the node lacks the beta one."""
    local_volumes_name_their_nodes: bool = between("1.27", "1.31")
    """VolumeBinding's PreFilter leaves only the nodes that bound volumes name by hostname."""
    attachments_count: bool = since("1.32")
    """NodeVolumeLimits counts what VolumeAttachments have attached to the node beside its pods' volumes."""
    allocatable_limits_volumes: bool = up_to("1.31")
    """NodeVolumeLimits takes a limit also from the node's allocatable `attachable-volumes-csi-*`."""
    csi_nodes_name_migrated_plugins: bool = up_to("1.35")
    """NodeVolumeLimits counts an in-tree volume only on nodes whose CSINode lists its plugin as migrated; later on
    every node that has a CSINode."""
    missing_claim_is_unresolvable: bool = since("1.30")
    """NodeVolumeLimits: a claim that does not exist rejects the pod; before, it is an internal error."""
    provisioned_volumes_are_scored: bool = since("1.33")
    """VolumeBinding's score counts volumes to be made where there are none to be bound."""
    drivers_ask_to_be_installed: bool = since("1.36")
    """With VolumeLimitScaling, a missing driver rejects only if its CSIDriver asks for that."""
