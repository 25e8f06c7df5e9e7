"""What the devices of DRA drivers show about a request that they do not fulfill."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from kschedx.explain.admission import QuotaLedger
from kschedx.explain.advice import Advice, FixGroup, RootCause, root_cause
from kschedx.explain.hardware import admin_access, driver_of
from kschedx.findings import DeviceClaimNotCreated, DeviceSelectorFailed, InsufficientResource
from kschedx.framework.cycle import Cycle
from kschedx.kube.devices import ADMIN_ACCESS_LABEL, ResourceClaim
from kschedx.kube.escaping import shell_command
from kschedx.kube.types import ObjectMeta, Pod, PodSpec
from kschedx.kube.typos import nearest_name
from kschedx.patterns import lazy_pattern
from kschedx.releases.release import Release
from kschedx.snapshot.events import CLAIM_REFUSED
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_GATE = "DRAExtendedResource"


def unmapped_classes(cycle: Cycle, finding: InsufficientResource) -> Iterator[RootCause]:
    """Yield DeviceClasses for an extended resource in a version whose gate is off, or the one for the published devices
    of its vendor, which does not name the resource."""
    resource, devices, is_on = finding.resource, cycle.snapshot.devices, cycle.release.enabled(_GATE)
    if not finding.offered_nowhere:
        return
    drivers = {resource_slice.spec.driver for resource_slice in devices.slices if resource_slice.spec.devices}
    for name, device_class in sorted(devices.classes.items()):
        driver = driver_of(device_class.spec.selectors)
        if device_class.spec.extended_resource_name == resource and cycle.release.gates.get(_GATE) is False:
            text = f"DeviceClass {name} maps {resource} to devices only with feature gate {_GATE}, which is off"
            on = f"turn on feature gate {_GATE} in the control plane and the kubelets"
            title = f"{on}, or request the device with a ResourceClaim of class {name}"
            yield root_cause(text, title, group=FixGroup.CLUSTER)
        elif driver in drivers and driver.endswith(f".{resource.partition('/')[0]}"):
            text = f"driver {driver} publishes its devices for DRA, not as {resource}"
            claim = f"request a device of class {name} with a ResourceClaim instead of {resource}"
            mapping = f"set extendedResourceName: {resource} in DeviceClass {name}"
            is_open = is_on and not device_class.spec.extended_resource_name
            title = f"{mapping}, or {claim}" if is_open else claim
            yield root_cause(text, title, by_default=FixGroup.CLUSTER, leaves_no_node=True)
            return


def unused_claims(snapshot: Snapshot, claims: Iterable[str]) -> Iterator[RootCause]:
    """Yield that no pod uses allocated claims, `namespace/name`, or that they are reserved for pods that are gone."""
    pods = snapshot.pods
    for key in dict.fromkeys(claims):
        claim, (namespace, _, name) = snapshot.devices.claims.get(key), key.partition("/")
        if claim is None or snapshot.source.may_lack("Pod", namespace):
            continue
        consumers = claim.status.reserved_for
        uids = {it.uid: it.name for it in consumers} | {it.uid: it.name for it in claim.metadata.owner_references}
        rows = {uid: pods.rows.get(f"{namespace}/{its_name}") for uid, its_name in uids.items()}
        exist = (row is not None and pods.uids[row] == uid for uid, row in rows.items())
        if any(exist) or any(it.resource != "pods" for it in consumers):
            continue
        users = pods.specs.where(partial(_uses_claim, name=name)) & pods.in_namespace(namespace)
        gone = list_names([it.name for it in consumers], 2, conjunction="and")
        if not users.any():
            command = shell_command("kubectl delete resourceclaim {} -n {}", name, namespace)
            title = f"delete claim {key} if nothing uses it: it keeps its devices"
            yield root_cause(f"no known pod uses claim {key}", title, command)
        elif gone:
            title = (
                f"if {gone} no longer {'exists' if len(consumers) == 1 else 'exist'}, clear reservedFor of claim {key}"
            )
            template = "kubectl patch resourceclaim {} -n {} --subresource status --type merge -p {}"
            command = shell_command(template, name, namespace, {"status": {"reservedFor": None}})
            yield root_cause(f"claim {key} is reserved for {gone}, and no such pod is known", title, command)


def _uses_claim(spec: PodSpec, name: str) -> bool:
    return any(claim.resource_claim_name == name for claim in spec.resource_claims)


_TEMPLATE_MISSING = lazy_pattern(r"resource ?claim ?template\S* \"[^\"]+\" not found")


def device_claim_refusal(
    snapshot: Snapshot, pod: Pod, finding: DeviceClaimNotCreated, release: Release
) -> Iterator[RootCause]:
    """Yield why kube-controller-manager cannot create a claim of a pod: as its event says, or by the rules of the API
    server."""
    namespace, template = pod.metadata.namespace, snapshot.devices.templates.get(finding.template)
    event = snapshot.failed_create("Pod", pod.metadata)
    message = "" if event is None else event.message
    if not message.startswith(CLAIM_REFUSED) and template is not None:
        metadata = ObjectMeta(name=f"{pod.metadata.name}-{finding.pod_claim}", namespace=namespace)
        refusal = QuotaLedger(snapshot, release).take(ResourceClaim(metadata=metadata, spec=template))
        message = f"{CLAIM_REFUSED}: {refusal}" if refusal else ""
    if message.startswith(CLAIM_REFUSED):
        why = message.removeprefix(f"{CLAIM_REFUSED}: ").partition("failed to create ResourceClaim: ")
        text = f"kube-controller-manager cannot create the claim: {why[2] or why[0]}"
        name = finding.template.rpartition("/")[2]
        if _TEMPLATE_MISSING.search(message) and f'"{name}"' in message:
            own = (key.partition("/") for key in snapshot.devices.templates)
            meant = nearest_name(name, [own_name for space, _, own_name in own if space == namespace])
            create = f"create ResourceClaimTemplate {name} in namespace {namespace}"
            instead = f"use ResourceClaimTemplate {meant} instead of {name}, and recreate the pod"
            yield root_cause(text, instead if meant else create)
            return
        quota = re.search(r"exceeded quota: ([^\s,]+)", message)
        larger = f"raise ResourceQuota {quota[1]}, or delete claims that it counts" if quota else ""
        correction = Advice(title=larger or "correct the ResourceClaimTemplate")
        advice = admin_access(namespace) if ADMIN_ACCESS_LABEL in message else correction
        yield RootCause(text=text, advice=(advice,))
        return
    labels = snapshot.namespaces.get(namespace)
    is_admin = template is not None and any(
        request.exactly is not None and request.exactly.admin_access for request in template.devices.requests
    )
    if is_admin and labels is not None and labels.get(ADMIN_ACCESS_LABEL) != "true":
        text = f"template {finding.template} requests admin access, for which namespace {namespace} lacks the label"
        yield RootCause(text=f"{text} {ADMIN_ACCESS_LABEL}=true", advice=(admin_access(namespace),))


def failed_selector(cycle: Cycle, failed: DeviceSelectorFailed) -> Iterator[RootCause]:
    """Yield what a driver publishes instead of the attribute that a selector reads, unless it is only misspelled; or
    what an expression that is wrong for all devices does."""
    driver, missing = failed.device.partition("/")[0], failed.error.partition("no such key: ")[2]
    devices = [it for each in cycle.snapshot.devices.slices if each.spec.driver == driver for it in each.spec.devices]
    is_capacity = re.search(rf"capacity\[[^\]]*\]\.{re.escape(missing)}\b", failed.expression)
    known = sorted({name for it in devices for name in (it.capacity if is_capacity else it.attributes)})
    if missing and missing not in known and not nearest_name(missing, known):
        text = f"devices of {driver} publish no {missing}: they have {list_names(known, 5, conjunction='and')}"
        other = list_names(known, 3, conjunction="or") or "another attribute"
        yield root_cause(text, f"compare {other} instead of {missing} in the selector of {failed.owner}")
    elif not missing:
        text = "an error in a selector ends the attempt, even if other devices match"
        yield root_cause(text, f"correct the selector of {failed.owner}")
