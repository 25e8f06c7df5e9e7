"""The API server's validation of a workload and its claims: names, labels, a selector that does not match its own pods,
restart policies, rolling updates that could replace no pod, and updates of immutable fields.

--dry-run=server validates the rest of a workload's spec. Upstream: pkg/apis/apps/validation, pkg/apis/batch/validation,
and, for PersistentVolumeClaims, pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from kschedx.apiserver.placement_validation import validate_label_selector, validate_labels
from kschedx.apiserver.validation import validate_claim_spec
from kschedx.errors import InputError, NotChangedError, Place
from kschedx.kube.decoding import Manifest, decode, is_stored, list_at, map_at, value_at
from kschedx.kube.field_errors import as_json, invalid, not_supported_error, quote_go, required_error, syntax
from kschedx.kube.kinds import KINDS, ResourceKind, name_of
from kschedx.kube.names import dns_label_errors, dns_subdomain_errors, label_key_errors
from kschedx.kube.quantity import parse_quantity
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.storage import PersistentVolumeClaim
from kschedx.kube.types import PersistentVolumeClaimSpec, Pod
from kschedx.kube.workloads import LOOKS_LIKE_A_PATCH, MAKING_PODS, contains, has_same_template

_SELECTING = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_COUNTS = ("replicas", "parallelism", "completions")


def validate_workload(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """Validate the name and labels of a workload or a claim, and that a workload's selector matches its own pods. For a
    stored object, only the selector is validated."""
    kind, spec = str(manifest.get("kind")), map_at(manifest, "spec")
    if not is_stored(manifest) and (kind in MAKING_PODS or kind == "PersistentVolumeClaim"):
        yield from _metadata(manifest)
        for field in _COUNTS:
            count = spec.get(field)
            if isinstance(count, int) and count < 0:
                yield invalid(f"spec.{field}", str(count), "must be greater than or equal to 0")
    if not is_stored(manifest) and kind in MAKING_PODS:
        yield from _restarts(kind, manifest)
    if not is_stored(manifest) and kind == "CronJob":
        yield from _cron_job(str(map_at(manifest, "metadata").get("name") or ""), spec)
    if (manifest.get("apiVersion"), kind) == ("v1", "ReplicationController"):
        yield from _selects_own_pods(map_at(spec, "selector"), spec)
    if manifest.get("apiVersion") != "apps/v1" or manifest.get("kind") not in _SELECTING:
        return
    written = spec.get("selector")
    if not map_at(spec, "template"):
        return
    if not is_stored(manifest):
        yield from _rolling_update(kind, spec)
    if not isinstance(written, Mapping):
        hint = LOOKS_LIKE_A_PATCH if _is_of_patch(map_at(spec, "template")) else ""
        required = InputError("Required value", place=Place(field="spec.selector"), hint=hint)
        yield _selector_error(spec) if kind == "DaemonSet" and not hint else required
        return

    selector = decode(msgspec.json.encode(written), LabelSelector)
    faults = list(validate_label_selector(selector, "spec.selector"))
    yield from faults
    if not selector.match_labels and not selector.match_expressions:
        of = "deployment" if kind == "ReplicaSet" else kind.lower()
        yield invalid("spec.selector", "{}", f"empty selector is invalid for {of}")
    elif not faults and not compile_selector(selector).matches(_labels_of_template(spec)):
        yield _selector_error(spec)


_ENDING = ("Job", "CronJob")  # kinds whose pods end
_NAME_OF_CRON_JOB = 52  # the maximum length, so that the names of its Jobs, with 11 more characters, are valid labels


def _restarts(kind: str, manifest: Mapping[str, object]) -> Iterator[InputError]:
    """Validate the restart policy of the pod template, which is Always by default."""
    path = (*KINDS[kind].template, "spec")
    policy, field = str(map_at(manifest, *path).get("restartPolicy") or "Always"), ".".join((*path, "restartPolicy"))
    job = map_at(manifest, *path[:-2])
    if not map_at(manifest, *path):
        return
    if kind not in _ENDING and policy != "Always":
        yield not_supported_error(field, quote_go(policy), ("Always",))
    elif kind in _ENDING and policy == "Always":
        yield required_error(field, 'valid values: "OnFailure", "Never"')
    elif kind in _ENDING and policy not in ("OnFailure", "Never"):
        yield not_supported_error(field, quote_go(policy), ("OnFailure", "Never"))
    elif kind in _ENDING and policy != "Never" and map_at(job, "podFailurePolicy"):
        yield invalid(field, quote_go(policy), 'only "Never" is supported when podFailurePolicy is specified')
    if kind in _ENDING and job.get("completionMode") == "Indexed" and _lacks_completions(job):
        yield required_error(".".join((*path[:-2], "completions")), "when completion mode is Indexed")


def _lacks_completions(job: Mapping[str, object]) -> bool:
    """A Job without parallelism, too, has one completion by default."""
    return job.get("completions") is None and job.get("parallelism") is not None


def _cron_job(name: str, spec: Mapping[str, object]) -> Iterator[InputError]:
    schedule = str(spec.get("schedule") or "")
    if len(name) > _NAME_OF_CRON_JOB:
        yield invalid("metadata.name", quote_go(name), f"must be no more than {_NAME_OF_CRON_JOB} characters")
    if not schedule:
        yield required_error("spec.schedule", "")
    elif not schedule.startswith(("@", "TZ=", "CRON_TZ=")) and len(fields := schedule.split()) != _FIELDS:
        shown = " ".join(fields)
        yield invalid("spec.schedule", quote_go(schedule), f"expected exactly 5 fields, found {len(fields)}: [{shown}]")


_FIELDS = 5  # of a schedule: minute, hour, day of the month, month, and day of the week


def _rolling_update(kind: str, spec: Mapping[str, object]) -> Iterator[InputError]:
    """Validate that a rolling update can replace pods. Amounts are numbers or percentages."""
    strategy = "strategy" if kind == "Deployment" else "updateStrategy"
    rolling, field = map_at(spec, strategy, "rollingUpdate"), f"spec.{strategy}.rollingUpdate"
    unavailable = rolling.get("maxUnavailable", "25%" if kind == "Deployment" else 1) in _NONE
    surge = rolling.get("maxSurge", "25%" if kind == "Deployment" else 0)
    match kind:
        case "Deployment" if unavailable and surge in _NONE:
            yield invalid(
                f"{field}.maxUnavailable", as_json(rolling["maxUnavailable"]), "may not be 0 when `maxSurge` is 0"
            )
        case "DaemonSet" if unavailable and surge in _NONE:
            yield required_error(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")
        case "DaemonSet" if not unavailable and surge not in _NONE:
            yield invalid(f"{field}.maxSurge", as_json(surge), "may not be set when maxUnavailable is non-zero")


_NONE = (0, "0", "0%")


def _selects_own_pods(selector: Mapping[str, object], spec: Mapping[str, object]) -> Iterator[InputError]:
    """The default selector of a ReplicationController is its template's labels."""
    labels = _labels_of_template(spec)
    if not selector and not labels:
        yield InputError("Required value", place=Place(field="spec.selector"))
    elif any(labels.get(str(key)) != value for key, value in selector.items()):
        yield _selector_error(spec)


def _selector_error(spec: Mapping[str, object]) -> InputError:
    labels = map_at(spec, "template", "metadata").get("labels")
    shown = "null" if labels is None else as_json(dict(sorted(_labels_of_template(spec).items())))
    return invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")


def _labels_of_template(spec: Mapping[str, object]) -> dict[str, str]:
    labels = map_at(spec, "template", "metadata", "labels")
    return {str(key): str(value) for key, value in labels.items()}


def validate_claims(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """Validate a PersistentVolumeClaim, or the claims that a StatefulSet's controller would create."""
    match (manifest.get("apiVersion"), manifest.get("kind")):
        case ("v1", "PersistentVolumeClaim"):
            yield from _claim(manifest, "spec")
        case ("apps/v1", "StatefulSet"):
            for index, template in enumerate(list_at(manifest, "spec", "volumeClaimTemplates")):
                yield from _claim(map_at(template), f"spec.volumeClaimTemplates[{index}].spec")


def _claim(manifest: Mapping[str, object], field: str) -> Iterator[InputError]:
    spec = decode(msgspec.json.encode(map_at(manifest, "spec")), PersistentVolumeClaimSpec)
    return validate_claim_spec(spec, field)


def _metadata(manifest: Mapping[str, object]) -> Iterator[InputError]:
    metadata = map_at(manifest, "metadata")
    yield from _name(str(manifest.get("kind")), metadata)
    labels = {str(key): value for key, value in map_at(metadata, "labels").items() if isinstance(value, str)}
    yield from validate_labels(labels, "metadata.labels")
    for key in sorted(map(str, map_at(metadata, "annotations"))):
        yield from (invalid("metadata.annotations", quote_go(key), text) for text in label_key_errors(key.lower()))


def _name(kind: str, metadata: Mapping[str, object]) -> Iterator[InputError]:
    name = metadata.get("name")
    if name in (None, "") and not metadata.get("generateName"):
        yield required_error("metadata.name", "name or generateName is required")
    if not isinstance(name, str) or not name:
        return
    yield from syntax(dns_label_errors if kind == "StatefulSet" else dns_subdomain_errors, name, "metadata.name")


def _is_of_patch(template: Mapping[str, object]) -> bool:
    """Return whether the template is from a patch, which contains only changes and so lacks labels or images."""
    containers = map_at(template, "spec").get("containers")
    has_images = isinstance(containers, list) and all("image" in map_at(container) for container in containers)
    return not has_images or not map_at(template, "metadata").get("labels")


# Immutable fields, and the API server's refusals of updates.


_FIXED: Mapping[str, tuple[str, ...]] = {
    "PersistentVolume": ("spec.csi", "spec.hostPath", "spec.local", "spec.volumeMode"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.selector", "spec.volumeMode"),
    "PriorityClass": ("value", "preemptionPolicy"),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "RuntimeClass": ("handler",),
    "StorageClass": ("provisioner", "volumeBindingMode"),
}
_FIXED_ONCE_SET: Mapping[str, tuple[str, ...]] = {
    "PersistentVolume": ("spec.nodeAffinity",),
    "PersistentVolumeClaim": ("spec.storageClassName", "spec.volumeName"),
}

_CLAIM = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_FORBIDDEN: Mapping[tuple[str, str], str] = {
    **{
        ("PersistentVolume", field): "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable "
        "after creation"
        for field in ("spec.csi", "spec.hostPath", "spec.local")
    },
    **{
        ("PersistentVolumeClaim", f"spec.{field}"): f"spec: Forbidden: {_CLAIM}"
        for field in ("accessModes", "resources", "selector", "storageClassName", "volumeMode", "volumeName")
    },
    **{
        ("StatefulSet", f"spec.{field}"): f"spec: Forbidden: {_STATEFUL_SET}"
        for field in ("podManagementPolicy", "selector", "serviceName", "volumeClaimTemplates")
    },
    ("PriorityClass", "value"): "value: Forbidden: may not be changed in an update.",
    ("StorageClass", "provisioner"): "provisioner: Forbidden: updates to provisioner are forbidden.",
}
"""The API server's messages for some fields; others have "field is immutable"."""
_LONG = 200  # the maximum number of a value's characters in a refusal


def fixed_fields(before: Struct, kind: ResourceKind) -> Iterator[str]:
    """Yield the paths of an existing object's immutable fields."""
    yield from _FIXED.get(kind.key, ())
    if isinstance(before, PersistentVolumeClaim) and before.status.phase != "Bound":
        yield "spec.resources"  # only an existing volume can be expanded
    empty = kind.record() if kind.record is not None else None
    once_set = _FIXED_ONCE_SET.get(kind.key, ())
    yield from (field for field in once_set if field_at(before, field) != field_at(empty, field))


def field_at(record: object, path: str) -> object:
    return value_at(msgspec.to_builtins(record), *path.split("."))


def fixed_kind(written: Manifest) -> ResourceKind | None:
    """Return the kind of a manifest if it has immutable fields and creates no pods."""
    kind = next((it for it in KINDS.values() if it.name == written.get("kind") and it.key in _FIXED), None)
    return None if kind is None or written.get("apiVersion") != kind.api_version else kind


def require_same_fields(kind: ResourceKind, before: Struct, written: Manifest) -> None:
    """Raises `NotChangedError` if a manifest changes an immutable field of an existing object. Fields that only one of
    the two has are not compared."""
    assert kind.record is not None, "a kind of the table has objects"
    after, unset = decode(msgspec.json.encode(written), kind.record), kind.record()
    for field in fixed_fields(before, kind):
        stored, value = field_at(before, field), field_at(after, field)
        if field == "spec" or stored == value or field_at(unset, field) in (stored, value):
            continue
        raise _immutable_error(kind.key, name_of(after)[1], field, _shown(value))


def require_same_workload(stored: Manifest, written: Manifest) -> None:
    """Raises `NotChangedError` if a manifest changes an immutable field of an existing workload. Fields that only one
    of the two has are not compared."""
    kind = str(written.get("kind"))
    before, after = map_at(stored, "spec"), map_at(written, "spec")
    workload = str(map_at(written, "metadata").get("name"))
    for name in _changed_fields(kind, before, after):
        raise _immutable_error(kind, workload, f"spec.{name}", _shown(after.get(name)))
    if kind == "Job" and before.get("suspend") is not True and not has_same_template(stored, written):
        raise _immutable_error(kind, workload, "spec.template", "…")  # its environment may be secret


_FIXED_OF_POD = {
    "nodeName": "node_name",
    "nodeSelector": "node_selector",
    "affinity": "affinity",
    "topologySpreadConstraints": "topology_spread_constraints",
    "schedulerName": "scheduler_name",
    "priorityClassName": "priority_class_name",
    "runtimeClassName": "runtime_class_name",
    "hostNetwork": "host_network",
}


def changed_fields_of_pod(before: Pod, written: Manifest) -> Iterator[str]:
    """Yield the fields that a manifest of an existing pod would change, although the API server refuses it
    (ValidatePodUpdate of pkg/apis/core/validation). Of a gated pod, the node selector and affinity may change."""
    after, spec = decode(msgspec.json.encode(written), Pod).spec, map_at(written, "spec")
    for name, attribute in () if before.spec.scheduling_gates else _FIXED_OF_POD.items():
        if name in spec and getattr(before.spec, attribute) != getattr(after, attribute):
            yield f"spec.{name}"
    stored = {container.name: container.resources.requests for container in before.spec.containers}
    for container in after.containers:
        requests = stored.get(container.name, {})
        for resource, amount in container.resources.requests.items():
            before_amount = requests.get(resource, "0")
            if parse_quantity(amount).milli_value() != parse_quantity(before_amount).milli_value():
                yield f"requests.{resource} of container {container.name}"


def _changed_fields(kind: str, before: Manifest, after: Manifest) -> Iterator[str]:
    if kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"):
        item, other = before.get("selector"), after.get("selector")
        if item and other and _selector(item) != _selector(other):
            yield "selector"
    if kind == "StatefulSet":
        for name, default in (("serviceName", ""), ("podManagementPolicy", "OrderedReady")):
            if name in before and name in after and (before[name] or default) != (after[name] or default):
                yield name
        templates = [version.get("volumeClaimTemplates") for version in (before, after)]
        if all(isinstance(template, list) for template in templates) and not contains(*templates):
            yield "volumeClaimTemplates"
    if kind == "Job":
        is_indexed = "Indexed" in (before.get("completionMode"), after.get("completionMode"))
        if (
            "completionMode" in before
            and "completionMode" in after
            and before["completionMode"] != after["completionMode"]
        ):
            yield "completionMode"
        is_elastic = is_indexed and after.get("completions") == after.get("parallelism", before.get("parallelism"))
        if "completions" in after and before.get("completions", 1) != after["completions"] and not is_elastic:
            yield "completions"


def _selector(value: object) -> tuple[object, object]:
    selector = map_at(value)
    expressions = selector.get("matchExpressions")
    return dict(map_at(selector, "matchLabels")), expressions or []


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _immutable_error(kind: str, name: str, field: str, shown: str) -> NotChangedError:
    refusal = _FORBIDDEN.get((kind, field), f"{field}: Invalid value: {shown}: field is immutable")
    hint = f"delete {kind} {name} first, and apply it then"
    return NotChangedError(f'The {kind} "{name}" is invalid: {refusal}', hint=hint)
