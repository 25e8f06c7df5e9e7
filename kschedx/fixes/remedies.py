"""What could be done about the findings on a node. Whether it helps is for the trial to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedx import findings as f
from kschedx.fixes import steps as s
from kschedx.fixes.affinity_remedies import affinity_remedies
from kschedx.fixes.claim_remedies import claim_remedies, give_up_volume
from kschedx.fixes.device_remedies import device_remedies
from kschedx.fixes.node_remedies import host_port_remedies, taint_remedies, uncordon
from kschedx.fixes.resource_remedies import larger_node, resource_remedies
from kschedx.fixes.situation import Place
from kschedx.fixes.topology_remedies import existing_rule_remedies, own_rule_remedies, spread_remedies
from kschedx.fixes.victims import stop_holder, take_from_holder
from kschedx.fixes.volume_remedies import volume_remedies


def last_remedies(found: Sequence[f.Finding], place: Place) -> tuple[tuple[s.Step, ...], ...]:
    """The same where no other node would do: what the pod is tied to stands on one that is too small, is where no node
    can be, or is in the hands of a more important pod."""
    short = [x for x in found if isinstance(x, f.InsufficientResource | f.TooManyPods)]
    groups: list[tuple[s.Step, ...]] = [(larger_node(short, place),)] if short else []
    for one in found:
        if isinstance(one, f.VolumeNodeAffinityMismatch | f.VolumeZoneMismatch):
            groups.append(tuple(give_up_volume(one, place)))
        elif isinstance(one, f.ClaimInUse | f.DiskConflict):
            groups.append(tuple(stop_holder(one.holder, place) or take_from_holder(one.holder, place)))
        elif not isinstance(one, f.InsufficientResource | f.TooManyPods):
            groups.append(tuple(_for_one(one, place)))
    return tuple(groups)


def remedies(found: Sequence[f.Finding], place: Place) -> tuple[tuple[s.Step, ...], ...]:
    """For each thing that has to be mended on the node, the ways to do it. A thing without any makes the node
    hopeless."""
    groups: list[tuple[s.Step, ...]] = []
    short = [x for x in found if isinstance(x, f.InsufficientResource | f.TooManyPods)]
    if short:
        groups.append(tuple(resource_remedies(short, place)))
    groups.extend(tuple(_for_one(x, place)) for x in found if not isinstance(x, f.InsufficientResource | f.TooManyPods))
    return tuple(groups)


def _for_one(finding: f.Finding, place: Place) -> Iterator[s.Step]:
    match finding:
        case f.NodeUnschedulable():
            yield uncordon(place)
        case f.UntoleratedTaint():
            yield from taint_remedies(place)
        case f.NodeAffinityMismatch():
            yield from affinity_remedies(finding, place)
        case f.NodeNameMismatch():
            yield s.DropNodeName(wanted=finding.wanted)
        case f.NodesExcluded():
            yield s.DropNodeNames()
        case f.HostPortConflict():
            yield from host_port_remedies(finding, place)
        case f.TopologySpreadSkew() | f.TopologyLabelMissing():
            yield from spread_remedies(finding, place)
        case f.PodAffinityUnsatisfied() | f.PodAntiAffinityConflict():
            yield from own_rule_remedies(finding, place)
        case f.ExistingAntiAffinityConflict():
            yield from existing_rule_remedies(finding, place)
        case f.ClaimInUse() | f.DiskConflict():
            yield from stop_holder(finding.holder, place)
        case (
            f.ClaimNotFound()
            | f.ClaimLost()
            | f.ClaimBeingDeleted()
            | f.ClaimNotOwned()
            | f.ClaimUnbound()
            | f.VolumeNotFound()
            | f.SelectedNodeMismatch()
        ):
            yield from claim_remedies(finding, place)
        case (
            f.NoMatchingVolume()
            | f.InsufficientStorageCapacity()
            | f.VolumeLimitExceeded()
            | f.ProvisioningTopologyMismatch()
        ):
            yield from volume_remedies(finding, place)
        case (
            f.InsufficientDevices()
            | f.DeviceClaimNotFound()
            | f.DeviceClaimNotCreated()
            | f.DeviceClaimBeingDeleted()
            | f.DeviceClaimNotOwned()
            | f.DeviceClassNotFound()
            | f.DeviceClaimOutOfReach()
        ):
            yield from device_remedies(finding, place)
        case _:
            return  # nothing that a change of the pod, its neighbours or its node would mend
