"""The devices of a cluster, their classes, and the claims for them.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.grouping import group_pairs
from kschedx.kube.devices import (
    EXTENDED_RESOURCE_CLAIM,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)
from kschedx.kube.kinds import Objects, objects_of
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.types import Pod, PodSpec
from kschedx.snapshot.columns import Derived, Memo

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource that every DeviceClass provides, before the class's name."""


_SLICES_BY_NODE = Memo[Mapping[str, Sequence[ResourceSlice]]]()


class Devices(Struct, frozen=True, kw_only=True, dict=True):
    """The objects of resource.k8s.io that scheduling reads, as v1 with its defaults."""

    claims: Mapping[str, ResourceClaim] = field(default_factory=dict)  # by `namespace/name`
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    templates: Mapping[str, ResourceClaimSpec] = field(default_factory=dict)
    """By `namespace/name` of the template, the spec of its claims."""
    slices: Sequence[ResourceSlice] = ()
    taint_rules: Sequence[DeviceTaintRule] = ()
    derived_from_slices: Derived = field(default_factory=dict)
    """Values computed from the slices alone, shared with copies that have other claims."""

    @classmethod
    def of(cls, objects: Objects) -> Devices:
        """Build from records by kind."""
        return cls(
            claims={claim.key: claim for claim in objects_of(objects, ResourceClaim)},
            classes={device_class.name: device_class for device_class in objects_of(objects, DeviceClass)},
            templates={template.key: template.spec.spec for template in objects_of(objects, ResourceClaimTemplate)},
            slices=objects_of(objects, ResourceSlice),
            taint_rules=tuple(sorted(objects_of(objects, DeviceTaintRule), key=lambda rule: str(rule.metadata.name))),
        )

    @cached_property
    def derived(self) -> Derived:
        """Values that others compute from the claims and keep with them."""
        return {}

    def slices_of_pool(self, key: str) -> list[ResourceSlice]:
        """Return the slices of the newest generation of a pool, `driver/name`."""
        driver, _, name = key.partition("/")
        return newest_slices([it for it in self.slices if (it.spec.driver, it.spec.pool.name) == (driver, name)])

    @cached_property
    def class_of_resource(self) -> Mapping[str, str]:
        """Extended resource to the DeviceClass that provides it on nodes that do not offer it."""
        return _class_of_resource(self.classes.values())

    @cached_property
    def extended_resource_claims(self) -> Mapping[tuple[str, str], ResourceClaim]:
        """The claim that kube-scheduler created for a pod's extended resources, by the pod's name and uid."""
        claims: dict[tuple[str, str], ResourceClaim] = {}
        for claim in self.claims.values():
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true":
                for owner in claim.metadata.owner_references:
                    if owner.controller:
                        claims.setdefault((owner.name, owner.uid), claim)
        return claims

    def provides_request(self, spec: PodSpec) -> bool:
        """Return whether a device class provides a resource that a pod requests."""
        classes = self.class_of_resource
        if not classes:
            return False
        requests = [container.resources.requests for container in (*spec.init_containers, *spec.containers)]
        requests += [spec.resources.requests] if spec.resources is not None else []
        return any(name in classes for some in (*requests, spec.overhead) for name in some)

    @property
    def slices_by_node(self) -> Mapping[str, Sequence[ResourceSlice]]:
        """The slices of single nodes, by the node's name."""
        return _SLICES_BY_NODE.of(
            self.derived_from_slices,
            lambda: group_pairs((each.spec.node_name, each) for each in self.slices if each.spec.node_name),
        )

    @cached_property
    def node_by_pool(self) -> Mapping[str, str] | None:
        """Name of a pool to the only node that reaches its devices; None if a pool is not node-local."""
        nodes: dict[str, str] = {}
        for resource_slice in self.slices:
            name, spec = resource_slice.spec.node_name or "", resource_slice.spec
            if spec.devices and (not name or nodes.setdefault(spec.pool.name, name) != name):
                return None
        return nodes

    def with_slices(self, more: Sequence[ResourceSlice]) -> Devices:
        return replace(self, slices=(*self.slices, *more), derived_from_slices={}) if more else self

    def with_nodes_like(self, model: str, names: Iterable[str]) -> Devices:
        """Publish the devices of a node on other nodes, too."""
        own = self.slices_by_node.get(model, ())
        return self.with_slices([each for name in names for each in slices_on(name, own)])

    def with_claims(self, changed: Mapping[str, ResourceClaim | None]) -> Devices:
        """Replace, add, or (with None) remove claims by `namespace/name`."""
        claims = {**self.claims, **changed}
        return replace(self, claims={key: claim for key, claim in claims.items() if claim is not None})

    def without_deleted_pods(self, pods: Collection[str]) -> Devices:
        """Return the devices after pods, `namespace/name`, are deleted and kube-controller-manager has cleaned up:
        claims generated for them are deleted, and claims without other consumers are deallocated."""
        return self.with_claims(self.changed_by_deletion(pods))

    def changed_by_deletion(self, pods: Collection[str]) -> dict[str, ResourceClaim | None]:
        """Return the claims that `without_deleted_pods` changes, after the change."""
        generated = (claim.key for claim in self._claims_of(pods) if _is_owned_by(claim, pods))
        return self.released_by(pods) | dict.fromkeys(generated)

    def without_consumers(self, pods: Collection[str]) -> Devices:
        """Return the devices as if pods, `namespace/name`, used no claims: claims without other consumers are not
        allocated, and kube-scheduler created none for their extended resources."""
        return self.with_claims(self.released_by(pods))

    def released_by(self, pods: Collection[str]) -> dict[str, ResourceClaim | None]:
        """Return the claims that `without_consumers` changes, after the change."""
        changed: dict[str, ResourceClaim | None] = {}
        for claim in self._claims_of(pods):
            before, namespace = claim.status.reserved_for, claim.metadata.namespace
            left = tuple(it for it in before if not (it.resource == "pods" and f"{namespace}/{it.name}" in pods))
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and _is_owned_by(claim, pods):
                changed[claim.key] = None
            elif before and not left:
                changed[claim.key] = replace(claim, status=ResourceClaimStatus())
            elif left != before:
                changed[claim.key] = replace(claim, status=replace(claim.status, reserved_for=left))
        return changed

    def claims_of(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the pod's claims that exist."""
        yield from filter(None, map(self.claims.get, pod.device_claims.values()))

    def _claims_of(self, pods: Collection[str]) -> Iterable[ResourceClaim]:
        """Return all claims that the pods use or that were generated for them, and possibly others."""
        return self.claims.values()


def slices_on(name: str, slices: Iterable[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    """Copy the slices of a node for a new node with this name."""
    return tuple(
        replace(
            each,
            metadata=replace(each.metadata, name=f"{each.metadata.name}-{name}"),
            spec=replace(each.spec, node_name=name, pool=replace(each.spec.pool, name=f"{each.spec.pool.name}-{name}")),
        )
        for each in slices
    )


def newest_slices(slices: Sequence[ResourceSlice]) -> list[ResourceSlice]:
    """Return the slices of a pool's newest generation."""
    newest = max((each.spec.pool.generation for each in slices), default=0)
    return [each for each in slices if each.spec.pool.generation == newest]


ClaimChange = tuple[ResourceClaim | None, ResourceClaim | None]
"""A claim before and after a change; None if it does not exist."""


class MovingDevices(Devices, frozen=True, kw_only=True, dict=True):
    """The devices of a moving cluster: claims change in place."""

    claims: dict[str, ResourceClaim] = field(default_factory=dict)
    changes: list[ClaimChange] = field(default_factory=list)
    """All changes of claims in order, append-only. Values computed from claims apply them later."""
    lasting: Derived = field(default_factory=dict)  # values that apply `changes`, by their `Memo`

    @classmethod
    def moving(cls, devices: Devices) -> MovingDevices:
        """Copy the devices with their own claims."""
        shared = {name: getattr(devices, name) for name in Devices.__struct_fields__}
        return cls(**(shared | {"claims": dict(devices.claims)}))

    def frozen(self) -> Devices:
        """Return the current devices as a value."""
        shared = {name: getattr(self, name) for name in Devices.__struct_fields__}
        return Devices(**(shared | {"claims": dict(self.claims)}))

    def put(self, change: Mapping[str, ResourceClaim | None]) -> dict[str, ResourceClaim | None]:
        """Change claims by `namespace/name`. Returns the change that undoes it."""
        before = {key: self.claims.get(key) for key in change}
        for key, claim in change.items():
            self.changes.append((before[key], claim))
            if claim is None:
                self.claims.pop(key, None)
            else:
                self.claims[key] = claim
        self.__dict__.pop("derived", None)
        written = (claim for claim in (*before.values(), *change.values()) if claim is not None)
        if any(claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" for claim in written):
            self.__dict__.pop("extended_resource_claims", None)
        return before

    def nodes_of(self, change: Mapping[str, ResourceClaim | None]) -> set[str]:
        """Return the nodes where this change allocates or releases devices."""
        nodes = self.node_by_pool or {}
        return {
            nodes[result.pool]
            for key, claim in change.items()
            for device_claim in (self.claims.get(key), claim)
            if device_claim is not None and device_claim.status.allocation is not None
            for result in device_claim.status.allocation.devices.results
            if result.pool in nodes
        }

    def _claims_of(self, pods: Collection[str]) -> Iterator[ResourceClaim]:
        known: _ClaimsByPod = _CLAIMS_BY_POD.of(self.lasting, lambda: _ClaimsByPod(self.claims.values()))
        for _, after in self.changes[known.seen :]:
            if after is not None:
                known.add(after)
        known.seen = len(self.changes)
        keys = (key for pod in pods for key in known.keys.get(pod, ()))
        return (self.claims[key] for key in dict.fromkeys(keys) if key in self.claims)


class _ClaimsByPod:
    """Pod to every claim that it has used or that was generated for it."""

    def __init__(self, claims: Iterable[ResourceClaim]) -> None:
        self.seen = 0
        self.keys: dict[str, dict[str, None]] = {}
        for claim in claims:
            self.add(claim)

    def add(self, claim: ResourceClaim) -> None:
        names = [reference.name for reference in claim.status.reserved_for if reference.resource == "pods"]
        owner = claim.metadata.controller
        names += [owner.name] if owner is not None and owner.kind == "Pod" else []
        for name in names:
            self.keys.setdefault(f"{claim.metadata.namespace}/{name}", {})[claim.key] = None


_CLAIMS_BY_POD = Memo[_ClaimsByPod]()


def _is_owned_by(claim: ResourceClaim, pods: Collection[str]) -> bool:
    owner = claim.metadata.controller
    return owner is not None and owner.kind == "Pod" and f"{claim.metadata.namespace}/{owner.name}" in pods


def _class_of_resource(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """If several classes name a resource, the newest wins, then the first by name. kube-scheduler reads classes by
    name, and a class that yields to an earlier one provides nothing, not even its implicit resource. Upstream:
    updateResourceName2class in k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache."""
    providers: dict[str, DeviceClass] = {}
    for device_class in sorted(classes, key=lambda own: own.name):
        resource = device_class.spec.extended_resource_name
        current = providers.get(resource) if resource is not None else None
        if current is not None and _creation_time(device_class) <= _creation_time(current):
            continue
        if resource is not None:
            providers[resource] = device_class
        providers[IMPLICIT_PREFIX + device_class.name] = device_class
    return {resource: device_class.name for resource, device_class in providers.items()}


def _creation_time(device_class: DeviceClass) -> int:
    stamp = device_class.metadata.creation_timestamp
    return nanoseconds(stamp) if stamp else 0
