"""What a pod's volumes ask of its node, whether its claims let Karpenter look at it, and how many a node takes.

Upstream: scheduling/volumetopology.go, pkg/scheduling/volumeusage.go, pkg/utils/volume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kschedx.api.csi_translation import plugin_named
from kschedx.api.pod_volumes import Volume
from kschedx.api.selectors import NodeSelectorRequirement
from kschedx.api.storage import BIND_COMPLETED, IMMEDIATE, PersistentVolume, PersistentVolumeClaim
from kschedx.api.types import Pod
from kschedx.karpenter.labels import HOSTNAME
from kschedx.karpenter.requirements import Requirements
from kschedx.snapshot.storage import Storage

_EBS = "ebs.csi.aws.com"


def claim_names(pod: Pod) -> Iterator[tuple[Volume, str]]:
    """Volumes that have a claim, with its name."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume, volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield volume, f"{pod.metadata.name}-{volume.name}"


def refusal(pod: Pod, storage: Storage) -> str:
    """Why Karpenter passes over the pod for its claims, in its words; empty where it does not."""
    namespace = pod.metadata.namespace
    for _, name in claim_names(pod):
        claim = storage.claim(namespace, name)
        if claim is None:
            missing = f'persistentvolumeclaims "{name}" not found'
            return f"getting persistent volume claim, {missing} (PersistentVolumeClaim={name})"
        told = _claim_refusal(claim, storage)
        if told:
            return told
    return ""


def _claim_refusal(claim: PersistentVolumeClaim, storage: Storage) -> str:
    key, volume, named = claim.key, claim.spec.volume_name, claim.spec.storage_class_name or ""
    about = f"(PersistentVolumeClaim={key}, StorageClass={named})"
    if claim.metadata.deletion_timestamp:
        return f"persistentvolumeclaim is being deleted (PersistentVolumeClaim={key})"
    if claim.status.phase == "Lost":
        both = f"(PersistentVolume={volume}, PersistentVolumeClaim={key})"
        return f"persistentvolumeclaim bound to non-existent persistentvolume {both}"
    if volume:
        found = storage.volumes.get(volume)
        all_three = f"(PersistentVolume={volume}, PersistentVolumeClaim={key}, StorageClass={named})"
        if found is None:
            return f'failed to validate pvc, persistentvolumes "{volume}" not found {all_three}'
        if found.metadata.deletion_timestamp:
            return f"failed to validate pvc, persistentvolume is being deleted {all_three}"
        if BIND_COMPLETED not in claim.metadata.annotations:
            both = f"(PersistentVolume={volume}, PersistentVolumeClaim={claim.name}, annotation={BIND_COMPLETED})"
            return f"pvc is considered unbound because it does not contain annotation {both}"
        return ""
    if not named:
        return f"unbound pvc must define a storage class (PersistentVolumeClaim={key}, StorageClass=)"
    of_class = storage.classes.get(named)
    if of_class is None:
        missing = f'storageclasses.storage.k8s.io "{named}" not found'
        return f"failed to validate pvc, failed to get storage class, {missing} {about}"
    if of_class.volume_binding_mode == IMMEDIATE:
        return f"failed to validate pvc, pvc with immediate volume binding mode must be bound {about}"
    return ""


def alternatives(pod: Pod, storage: Storage) -> tuple[Requirements | None, ...]:
    """Where the pod's volumes can be reached, one of them has to hold; None among them asks for nothing.

    Of volumes that have nothing in common all combinations are kept, as upstream does, and none of them holds.
    """
    found: list[Requirements | None] = [None]
    for _, name in claim_names(pod):
        claim = storage.claim(pod.metadata.namespace, name)
        own = _of_claim(claim, storage) if claim is not None else ()
        if not own:
            continue
        pairs = [(before, more) for before in found for more in own]
        fitting = [pair for pair in pairs if pair[0] is None or pair[0].overlaps(pair[1])]
        found = [(before or Requirements()).together(more.values()) for before, more in fitting or pairs]
    return tuple(found)


def _of_claim(claim: PersistentVolumeClaim, storage: Storage) -> tuple[Requirements, ...]:
    if claim.spec.volume_name:
        volume = storage.volumes.get(claim.spec.volume_name)
        return () if volume is None else tuple(_of_volume(volume))
    of_class = storage.classes.get(claim.spec.storage_class_name or "")
    if of_class is None:
        return ()
    terms = (term.match_label_expressions for term in of_class.allowed_topologies)
    return tuple(
        Requirements.of_expressions(
            NodeSelectorRequirement(key=one.key, operator="In", values=one.values) for one in expressions
        )
        for expressions in terms
        if expressions
    )


def _of_volume(volume: PersistentVolume) -> Iterator[Requirements]:
    """The host of a volume that is on a node's own disk does not count: a pod that goes elsewhere leaves it."""
    required = volume.required_node_affinity
    for term in required.node_selector_terms if required is not None else ():
        expressions = term.match_expressions
        if volume.spec.is_on_node:
            expressions = tuple(one for one in expressions if one.key != HOSTNAME)
            if term.match_expressions and not expressions:
                yield Requirements()
        if expressions:
            yield Requirements.of_expressions(expressions)


def mounted(pod: Pod, storage: Storage) -> Mapping[str, frozenset[str]]:
    """Driver to the keys of the claims that the pod mounts with it."""
    found: dict[str, set[str]] = {}
    for _, name in claim_names(pod):
        claim = storage.claim(pod.metadata.namespace, name)
        driver = _driver(claim, storage) if claim is not None else ""
        if claim is not None and driver:
            found.setdefault(driver, set()).add(claim.key)
    return {driver: frozenset(keys) for driver, keys in found.items()}


def _driver(claim: PersistentVolumeClaim, storage: Storage) -> str:
    if claim.spec.volume_name:
        volume = storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return ""
        if volume.spec.csi is not None:
            return volume.spec.csi.driver
        return _EBS if volume.spec.aws_elastic_block_store is not None else ""
    of_class = storage.classes.get(claim.spec.storage_class_name or "")
    if of_class is None:
        return ""
    plugin = plugin_named(of_class.provisioner)
    return of_class.provisioner if plugin is None else plugin.driver
