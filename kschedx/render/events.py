"""A FailedScheduling event's text taken apart: how many nodes, which plugin said it, which finding explains it.

All texts of the newest release, and those of older ones in which events still come along. What is not known is kept as
unknown. Upstream: FitError in pkg/scheduler/framework/types.go, the reasons beside each plugin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Stage(StrEnum):
    """Which part of the event a reason stands in."""

    FILTER = "filter"
    """Said of `count` nodes, or by PreFilter of the pod as a whole."""
    PREEMPTION = "preemption"
    """Said by preemption of `count` nodes, or of the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPart:
    """One reason of an event."""

    stage: Stage
    count: int | None
    """Nodes; None where the reason is about the pod as a whole."""
    text: str
    plugin: str
    """Empty where the reason is unknown."""
    reason: str
    """The id that `kschedx reason` explains; empty where the text has none."""
    subject: str = ""
    """What the text names: a resource, a taint, a claim."""

    @property
    def is_known(self) -> bool:
        return bool(self.plugin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    nodes: int | None
    """In the cluster; None where the text does not say."""
    parts: tuple[EventPart, ...]

    @property
    def counted(self) -> int:
        """What the counts of the filter reasons add up to."""
        return sum(part.count or 0 for part in self.parts if part.stage is Stage.FILTER)


_HEAD = re.compile(r"(\d+)/(\d+) nodes are available:?\s*")
_OLDEST = re.compile(r"failed to fit in any node\s+fit failure summary on nodes ?: ?(.*)", re.DOTALL)
_OLDEST_PART = re.compile(r"(.+?) \((\d+)\)(?:, |$)")
_NEXT_PART = re.compile(r",\s+(?=\d+ \S)")
_COUNTED = re.compile(r"(\d+) (.+)", re.DOTALL)
_POST_FILTER = re.compile(
    r"(?:^|\s|(?<=\.))((?:no new claims to deallocate|still not schedulable|(?:deallocation|deletion) of ResourceClaim "
    r"completed|ResourceClaim unreserved for PodGroup)(?:, preemption:|\.|$)|preemption:)"
)


def parse(text: str) -> Event:
    """Any text: an event's message, a line of `kubectl describe` around it, or a single reason."""
    text = " ".join(text.split())
    oldest = _OLDEST.search(text)
    if oldest:
        parts = (_part(Stage.FILTER, int(n), reason) for reason, n in _OLDEST_PART.findall(oldest[1]))
        return Event(nodes=None, parts=tuple(parts))
    head = _HEAD.search(text)
    if head is None:
        return Event(nodes=None, parts=tuple(_parts(Stage.FILTER, text)))
    body = text[head.end() :]
    after = _POST_FILTER.search(body)
    if after is None:
        return Event(nodes=int(head[2]), parts=tuple(_parts(Stage.FILTER, body)))
    said, then = body[: after.start()], body[after.start() :].strip()
    parts = (*_parts(Stage.FILTER, said), *_post_filter(then))
    return Event(nodes=int(head[2]), parts=parts)


def _post_filter(text: str) -> Iterator[EventPart]:
    claims, found, preemption = text.partition("preemption:")
    yield from _parts(Stage.PREEMPTION, claims.strip().rstrip(","))
    if found:
        head = _HEAD.search(preemption)
        yield from _parts(Stage.PREEMPTION, preemption[head.end() :] if head else preemption)


def _parts(stage: Stage, text: str) -> Iterator[EventPart]:
    """The reasons of one part; a sentence of PreFilter's before the counted ones is a part of its own."""
    text = text.strip().strip(".").strip()
    if not text:
        return
    for sentence in re.split(r"(?<=\S)\. (?=\d+ )", text):
        for piece in _NEXT_PART.split(sentence):
            counted = _COUNTED.fullmatch(piece)
            if counted:
                yield _part(stage, int(counted[1]), counted[2])
            else:
                yield _part(stage, None, piece)


def _part(stage: Stage, count: int | None, text: str) -> EventPart:
    text = text.strip().rstrip(".")
    for pattern, plugin, reason in _patterns():
        found = pattern.fullmatch(text)
        if found:
            groups = found.groupdict()
            subject = groups.get("subject") or ""
            named = groups.get("plugins")
            return EventPart(
                stage=stage,
                count=count,
                text=text,
                plugin=", ".join(named.split()) if named else plugin,
                reason=reason,
                subject=subject,
            )
    return EventPart(stage=stage, count=count, text=text, plugin="", reason="")


_TEXTS: tuple[tuple[str, str, str], ...] = (
    # a node's resources
    (r"Insufficient pods|Too many pods", "NodeResourcesFit", "too-many-pods"),
    (r"Insufficient (?P<subject>\S+)", "NodeResourcesFit", "insufficient-resource"),
    (r"Pod has a restartable init container and the SidecarContainers feature is disabled", "NodeResourcesFit",
     "plugin-message"),
    # taints, cordons, names, labels
    (r"node\(s\) had untolerated taint\(s\)|node\(s\) had taints that the pod didn't tolerate|PodToleratesNodeTaints",
     "TaintToleration", "untolerated-taint"),
    (r"node\(s\) had (?:untolerated )?taint \{(?P<subject>.*?)\}(?:, that the pod didn't tolerate)?", "TaintToleration",
     "untolerated-taint"),
    (r"node\(s\) were unschedulable|NodeUnschedulable", "NodeUnschedulable", "node-unschedulable"),
    (r"node\(s\) didn't match the requested (?:node name|hostname)|HostName", "NodeName", "node-name-mismatch"),
    (r"node\(s\) didn't match (?:Pod's node affinity(?:/selector)?|node selector|scheduler-enforced node affinity)"
     r"|MatchNodeSelector|pod affinity terms conflict", "NodeAffinity", "node-affinity-mismatch"),
    (r"node\(s\) didn't satisfy plugin(?:\(s\))? \[?(?P<plugins>[^\]]+?)\]?(?: simultaneously)?", "PreFilter",
     "nodes-excluded"),
    (r"node is filtered out by the prefilter result", "PreFilter", "nodes-excluded"),
    (r"node\(s\) didn't match Pod's required features|node declared features check failed.*", "NodeDeclaredFeatures",
     "missing-node-features"),
    (r"node\(s\) didn't have free ports for the requested pod ports|PodFitsHostPorts", "NodePorts",
     "host-port-conflict"),
    (r"node\(s\) (?:had memory pressure|had disk pressure|had pid pressure|were not ready|were out of disk space|had "
     r"unavailable network|had unknown conditions)|Node(?:NotReady|OutOfDisk|NetworkUnavailable|UnderMemoryPressure|"
     r"UnderDiskPressure)", "CheckNodeCondition", "untolerated-taint"),
    # topology
    (r"node\(s\) didn't match pod topology spread constraints \(missing required label\)", "PodTopologySpread",
     "topology-label-missing"),
    (r"node\(s\) didn't match pod topology spread constraints", "PodTopologySpread", "topology-spread-skew"),
    (r"node\(s\) didn't match pod affinity rules|PodAffinityRulesNotMatch", "InterPodAffinity",
     "pod-affinity-unsatisfied"),
    (r"node\(s\) didn't match pod anti-affinity rules|PodAntiAffinityRulesNotMatch", "InterPodAffinity",
     "pod-anti-affinity-conflict"),
    (r"node\(s\) didn't satisfy existing pods anti-affinity rules|ExistingPodsAntiAffinityRulesNotMatch",
     "InterPodAffinity", "existing-anti-affinity-conflict"),
    (r"node\(s\) didn't match pod affinity/anti-affinity(?: rules)?|MatchInterPodAffinity", "InterPodAffinity",
     "pod-affinity-unsatisfied"),
    # volumes
    (r"node\(s\) didn't match PersistentVolume's node affinity|node\(s\) had volume node affinity conflict",
     "VolumeBinding", "volume-node-affinity-mismatch"),
    (r"node\(s\) didn't find available persistent volumes to bind", "VolumeBinding", "no-matching-volume"),
    (r"node\(s\) did not have enough free storage", "VolumeBinding", "insufficient-storage-capacity"),
    (r"(?:node\(s\) unavailable due to one or more )?pvc\(s\) bound to non-existent pv\(s\)", "VolumeBinding",
     "volume-not-found"),
    (r"pod has unbound immediate PersistentVolumeClaims(?: \(repeated \d+ times\))?"
     r"|\[?(?:SchedulerPredicates failed due to )?PersistentVolumeClaim is not bound: \"(?P<subject>[^\"]+)\".*",
     "VolumeBinding", "claim-unbound"),
    (r"(?:looking up PVC \S+: )?persistentvolumeclaim \"(?P<subject>[^\"]+)\" not found(?:\. not found)?"
     r"(?: \(repeated \d+ times\))?", "VolumeBinding", "claim-not-found"),
    (r"waiting for ephemeral volume controller to create the persistentvolumeclaim \"(?P<subject>[^\"]+)\""
     r"(?:\. not found)?", "VolumeBinding", "claim-not-found"),
    (r"persistentvolumeclaim \"(?P<subject>[^\"]+)\" is being deleted(?:\. not found)?", "VolumeBinding",
     "claim-being-deleted"),
    (r"persistentvolumeclaim \"(?P<subject>[^\"]+)\" bound to non-existent persistentvolume.*", "VolumeBinding",
     "claim-lost"),
    (r"PVC (?P<subject>\S+) was not created for pod .*", "VolumeBinding", "claim-not-owned"),
    (r"persistentvolume \"(?P<subject>[^\"]+)\" not found(?:\. not found)?", "VolumeZone", "volume-not-found"),
    (r"node\(s\) had no available volume zone|NoVolumeZoneConflict", "VolumeZone", "volume-zone-mismatch"),
    (r"PersistentVolume(?:Claim)? had no (?:pv name and storageClass )?name(?:\. not found)?"
     r"|VolumeBindingMode not set for StorageClass .*|storageclass\.storage\.k8s\.io \"(?P<subject>[^\"]+)\" not found"
     r"(?:\. not found)?", "VolumeZone", "plugin-message"),
    (r"node\(s\) had no available disk|NoDiskConflict", "VolumeRestrictions", "disk-conflict"),
    (r"node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
     r"|node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
     "VolumeRestrictions", "claim-in-use"),
    (r"node\(s\) exceed max volume count|MaxVolumeCount", "NodeVolumeLimits", "volume-limit-exceeded"),
    (r"(?P<subject>\S+) CSI driver is not installed on the node", "NodeVolumeLimits", "driver-not-installed"),
    # devices
    (r"(?:cannot allocate all claims|resourceclaim not available on the node|resourceclaim in use|cannot schedule "
     r"extended resource claim|.*[Rr]esource ?[Cc]laim.*|.*device class.*|.*timed out trying to allocate devices.*"
     r"|\d* ?invalid resource pools were encountered|no new claims to deallocate|still not schedulable"
     r"|number of requested devices.*|.*CEL (?:runtime|compile) error.*)", "DynamicResources", "plugin-message"),
    # gates, preemption, the cluster
    (r"waiting for scheduling gates: \[?(?P<subject>[^\]]*)\]?", "SchedulingGates", "scheduling-gated"),
    (r"waiting for the preemption for this pod to be finished", "DefaultPreemption", "no-preemption-victims"),
    (r"Preemption is not helpful for scheduling", "DefaultPreemption", "preemption-not-helpful"),
    (r"No preemption victims found for incoming pod|No victims found on node .*", "DefaultPreemption",
     "no-preemption-victims"),
    (r"not eligible due to .*|pod group for pod not found", "DefaultPreemption", "preemption-not-eligible"),
    (r"no nodes available to schedule pods", "kube-scheduler", "no-nodes"),
)
"""Reason as a regular expression, the plugin that says it, and the id that explains it. The first match counts."""


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str, str], ...]:
    return tuple((re.compile(text), plugin, reason) for text, plugin, reason in _TEXTS)
