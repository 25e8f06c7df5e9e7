"""Devices of a cluster, the classes they fall in, and who claims them.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.kube.devices import (
    EXTENDED_RESOURCE_CLAIM,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSlice,
)
from kschedx.kube.scalars import nanoseconds
from kschedx.snapshot.columns import Derived

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With a DeviceClass's name it makes the resource that every class offers."""


class Devices(Struct, frozen=True, kw_only=True, dict=True):
    """What scheduling reads of resource.k8s.io, as v1 with its defaults."""

    claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    """By `namespace/name`."""
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    templates: Mapping[str, ResourceClaimSpec] = field(default_factory=dict)
    """By `namespace/name` of the template, what it makes."""
    slices: Sequence[ResourceSlice] = ()
    taint_rules: Sequence[DeviceTaintRule] = ()
    derived_from_slices: Derived = field(default_factory=dict)
    """What others worked out from the slices alone, shared with devices that differ in their claims."""

    @classmethod
    def of(cls, objects: Mapping[str, Sequence[Any]]) -> Devices:
        """From records by kind."""
        return cls(
            claims={claim.key: claim for claim in objects["ResourceClaim"]},
            classes={one.name: one for one in objects["DeviceClass"]},
            templates={one.key: one.spec.spec for one in objects["ResourceClaimTemplate"]},
            slices=tuple(objects["ResourceSlice"]),
            taint_rules=tuple(sorted(objects["DeviceTaintRule"], key=lambda rule: str(rule.metadata.name))),
        )

    @cached_property
    def derived(self) -> Derived:
        """What others worked out from claims and want to keep as long as they last."""
        return {}

    @cached_property
    def class_of_resource(self) -> Mapping[str, str]:
        """Extended resource to the name of the DeviceClass that stands for it on nodes that do not offer it."""
        return _class_of_resource(self.classes.values())

    @cached_property
    def extended_resource_claims(self) -> Mapping[tuple[str, str], ResourceClaim]:
        """The claim that kube-scheduler made for a pod's extended resources, by the pod's name and uid."""
        found: dict[tuple[str, str], ResourceClaim] = {}
        for claim in self.claims.values():
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true":
                for owner in claim.metadata.owner_references:
                    if owner.controller:
                        found.setdefault((owner.name, owner.uid), claim)
        return found

    def with_claims(self, changed: Mapping[str, ResourceClaim | None]) -> Devices:
        """The devices with some claims, by `namespace/name`, replaced or added, or gone where None."""
        claims = {**self.claims, **changed}
        return replace(self, claims={key: claim for key, claim in claims.items() if claim is not None})

    def after_deletion(self, pods: Collection[str]) -> Devices:
        """The devices after pods, `namespace/name`, have been deleted and kube-controller-manager has followed: claims
        that were made for them are gone, and those that no other pod uses are deallocated."""
        left = self.without_consumers(pods)
        return replace(left, claims={key: claim for key, claim in left.claims.items() if not _is_made_for(claim, pods)})

    def without_consumers(self, pods: Collection[str]) -> Devices:
        """The devices as if pods, `namespace/name`, used no claim: those that no other pod uses are not allocated, and
        kube-scheduler made none for their extended resources."""
        claims: dict[str, ResourceClaim] = {}
        for key, claim in self.claims.items():
            namespace = claim.metadata.namespace
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and _is_made_for(claim, pods):
                continue
            left = tuple(one for one in claim.status.reserved_for if not _is_among(one, namespace, pods))
            if claim.status.reserved_for and not left:
                claim = replace(claim, status=ResourceClaimStatus())
            elif left != claim.status.reserved_for:
                claim = replace(claim, status=replace(claim.status, reserved_for=left))
            claims[key] = claim
        return replace(self, claims=claims)


def _is_made_for(claim: ResourceClaim, pods: Collection[str]) -> bool:
    owner = claim.metadata.controller
    return owner is not None and owner.kind == "Pod" and f"{claim.metadata.namespace}/{owner.name}" in pods


def _is_among(consumer: ResourceClaimConsumerReference, namespace: str, pods: Collection[str]) -> bool:
    return consumer.resource == "pods" and f"{namespace}/{consumer.name}" in pods


def _class_of_resource(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Of several classes that name one resource the newest, then the first by name."""
    found: dict[str, str] = {}
    for device_class in sorted(classes, key=lambda own: (-_created(own), own.name)):
        found[IMPLICIT_PREFIX + device_class.name] = device_class.name
        if device_class.spec.extended_resource_name is not None:
            found.setdefault(device_class.spec.extended_resource_name, device_class.name)
    return found


def _created(device_class: DeviceClass) -> int:
    stamp = device_class.metadata.creation_timestamp
    return nanoseconds(stamp) if stamp else 0
