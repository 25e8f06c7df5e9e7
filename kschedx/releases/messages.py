"""Texts of kube-scheduler that differ between versions. Texts that never changed are next to their plugins."""

from __future__ import annotations

from kschedx.releases.dates import DatedFacts, dated, values_of


class Messages(DatedFacts):
    """The texts of one version. Names in braces are filled in with `format`."""

    node_left_out: str = dated(
        {
            "1.26": "",
            "1.30": "node is filtered out by the prefilter result",
            "1.31": "",
            "1.32": "node(s) didn't satisfy plugin(s) [{plugins}]",
        }
    )
    """The reason of a node that PreFilter plugins did not name. If it is empty, the node has no status and is not
    reported."""
    untolerated_taint: str = dated(
        {"1.26": "node(s) had untolerated taint {{{key}: {value}}}", "1.35": "node(s) had untolerated taint(s)"}
    )
    volume_node_affinity_conflict: str = dated(
        {
            "1.26": "node(s) had volume node affinity conflict",
            "1.33": "node(s) didn't match PersistentVolume's node affinity",
        }
    )
    read_write_once_pod_in_use: str = dated(
        {
            "1.26": "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            "1.34": "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod",
        }
    )
    unmatched_declared_features: str = dated(
        {
            "1.26": "node declared features check failed - unsatisfied requirements: {missing}",
            "1.36": "node(s) didn't match Pod's required features",
        }
    )
    hard_constraints_unreadable: str = dated(
        {
            "1.26": "obtaining pod's hard topology spread constraints: {error}",
            "1.30": "get constraints from pod: obtaining pod's hard topology spread constraints: {error}",
        }
    )
    gang_waits_on_permit: str = dated(
        {
            "1.26": "waiting for minCount pods from a gang to be waiting on permit",
            "1.36": "waiting for minCount pods from a gang to be scheduled",
        }
    )
    gang_lacks_members: str = dated(
        {
            "1.26": "0/1 nodes are available: 1 rejected due to timeout after waiting 5m0s at plugin GangScheduling.",
            "1.36": "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more "
            "plugins asked to wait and no plugin rejected pod",
            "1.37": "pod group is unschedulable, pod group is unschedulable, minCount ({minimum}) cannot be satisfied: "
            "{scheduled} scheduled, {remaining} remaining",
        }
    )
    """The message of a gang member that found a node while too few others did."""


def in_every_release(name: str) -> tuple[str, ...]:
    """Return all values of a text of `Messages`, oldest first."""
    return tuple(str(text) for text in values_of(Messages, name) if text)
