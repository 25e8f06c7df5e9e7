"""Builders of devices, DeviceClasses, and ResourceClaims, as manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.builders import Manifest, pod

DRIVER = "gpu.example.com"


def device(name: str, *, memory: str = "", **more: object) -> Manifest:
    """Return a device. Capitalized keywords are its fields, others its attributes: `model="a100"`, `numa=0`."""
    fields = {key: value for key, value in more.items() if key[0].isupper()}
    attributes = {key: _attribute(value) for key, value in more.items() if key not in fields}
    built: Manifest = {"name": name, "attributes": attributes}
    if memory:
        built["capacity"] = {"memory": {"value": memory}}
    return built | {key[0].lower() + key[1:]: value for key, value in fields.items()}


def _attribute(value: object) -> object:
    kinds = {bool: "bool", int: "int", str: "string"}
    return value if isinstance(value, dict) else {kinds[type(value)]: value}


def resource_slice(node: str, *devices: Manifest, name: str = "", **spec: object) -> Manifest:
    """Return the devices of a node in a pool of its name; `spec` replaces fields, and None omits one."""
    full = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": list(devices),
        **spec,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"slice-{node}"},
        "spec": {key: value for key, value in full.items() if value is not None},
    }


def device_class(
    name: str = "gpu", *expressions: str, resource: str | None = None, created: str | None = None
) -> Manifest:
    spec: Manifest = {"selectors": selectors(*expressions)} if expressions else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name} | ({"creationTimestamp": created} if created else {}),
        "spec": spec | ({"extendedResourceName": resource} if resource else {}),
    }


def selectors(*expressions: str) -> list[Manifest]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def request(name: str = "r", *, device_class: str = "gpu", select: Sequence[str] = (), **more: object) -> Manifest:
    return {"name": name, "exactly": {"deviceClassName": device_class, "selectors": selectors(*select), **more}}


def first_available(name: str, *alternatives: Manifest) -> Manifest:
    """Return a request with alternatives, each from `request`."""
    options: list[Manifest] = []
    for alternative in alternatives:
        fields = alternative["exactly"]
        assert isinstance(fields, dict)
        options.append({"name": alternative["name"], **fields})
    return {"name": name, "firstAvailable": options}


def claim(
    name: str,
    *requests: Manifest,
    constraints: Sequence[Manifest] = (),
    status: Mapping[str, object] | None = None,
    **metadata: object,
) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **metadata},
        "spec": {"devices": {"requests": list(requests or (request(),)), "constraints": list(constraints)}},
        "status": dict(status or {}),
    }


def allocated(
    name: str,
    node: str,
    *devices: str,
    reserved_for: Sequence[str] = ("somebody",),
    since: str | None = None,
    conditions: Sequence[Manifest] = (),
    **result: object,
) -> Manifest:
    """Return a claim with allocated devices of a node, reserved for pods; every device has the `conditions`."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": item, **result} for item in devices]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    status = {
        "allocation": allocation | ({"allocationTimestamp": since} if since else {}),
        "devices": [
            {"driver": DRIVER, "pool": node, "device": item, "conditions": list(conditions)} for item in devices
        ],
        "reservedFor": [{"resource": "pods", "name": item, "uid": f"default/{item}"} for item in reserved_for],
    }
    return claim(name, status=status)


def claiming(*claims: str, name: str = "me", **more: object) -> Manifest:
    """Return a pending pod that uses claims by name."""
    uses = [{"name": item, "resourceClaimName": item} for item in claims]
    return pod(name, spec={"resourceClaims": uses, **more})
