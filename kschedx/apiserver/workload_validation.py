"""What an API server refuses about a workload and its claims: names, labels, and a selector that misses its own pods.

The rest of a workload's spec, --dry-run=server checks. Upstream: pkg/apis/apps/validation and, for
PersistentVolumeClaims, pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kschedx.apiserver.placement_validation import validate_label_selector, validate_labels
from kschedx.apiserver.validation import validate_claim_spec
from kschedx.errors import InputError, Place
from kschedx.kube.decoding import decode, is_stored
from kschedx.kube.field_errors import invalid, quoted, syntax
from kschedx.kube.names import dns_label_errors, dns_subdomain_errors, label_key_errors
from kschedx.kube.selectors import LabelSelector, compile_selector
from kschedx.kube.types import PersistentVolumeClaimSpec
from kschedx.kube.workloads import MAKING_PODS

SELECTING = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_COUNTS = ("replicas", "parallelism", "completions")
"""Numbers of pods in the spec of a workload."""
_PATCH = "it looks like a kustomize patch: kubectl kustomize FOLDER | kschedx why -"


def validate_workload(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """The name and labels of a workload or a claim; and for a workload, that its selector is there and selects its own
    pods. Of what an API server has stored, only the selector is checked."""
    kind, spec = str(manifest.get("kind")), _map(manifest.get("spec"))
    if not is_stored(manifest) and (kind in MAKING_PODS or kind == "PersistentVolumeClaim"):
        yield from _metadata(manifest)
        for field in _COUNTS:
            count = spec.get(field)
            if isinstance(count, int) and count < 0:
                yield invalid(f"spec.{field}", str(count), "must be greater than or equal to 0")
    if (manifest.get("apiVersion"), kind) == ("v1", "ReplicationController"):
        yield from _selects_own_pods(_map(spec.get("selector")), spec)
    if manifest.get("apiVersion") != "apps/v1" or manifest.get("kind") not in SELECTING:
        return
    written = spec.get("selector")
    if not _map(spec.get("template")):
        return
    if not isinstance(written, Mapping):
        hint = _PATCH if _is_of_patch(_map(spec.get("template"))) else ""
        yield InputError("Required value", place=Place(field="spec.selector"), hint=hint)
        return

    selector = decode(msgspec.json.encode(written), LabelSelector)
    faults = list(validate_label_selector(selector, "spec.selector"))
    yield from faults
    if not selector.match_labels and not selector.match_expressions:
        of = "deployment" if kind == "ReplicaSet" else kind.lower()
        yield invalid("spec.selector", "{}", f"empty selector is invalid for {of}")
    elif not faults and not compile_selector(selector).matches(_labels_of_template(spec)):
        yield _not_selected(_labels_of_template(spec))


def _selects_own_pods(selector: Mapping[str, object], spec: Mapping[str, object]) -> Iterator[InputError]:
    """Of a ReplicationController, whose selector is that of its template's labels where it has none."""
    labels = _labels_of_template(spec)
    if not selector and not labels:
        yield InputError("Required value", place=Place(field="spec.selector"))
    elif any(labels.get(str(key)) != value for key, value in selector.items()):
        yield _not_selected(labels)


def _not_selected(labels: Mapping[str, str]) -> InputError:
    shown = msgspec.json.encode(dict(sorted(labels.items()))).decode() if labels else "null"
    return invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")


def _labels_of_template(spec: Mapping[str, object]) -> dict[str, str]:
    labels = _map(_map(_map(spec.get("template")).get("metadata")).get("labels"))
    return {str(key): str(value) for key, value in labels.items()}


def validate_claims(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """For a PersistentVolumeClaim, and for the claims that a StatefulSet's controller would create."""
    match (manifest.get("apiVersion"), manifest.get("kind")):
        case ("v1", "PersistentVolumeClaim"):
            yield from _claim(manifest, "spec")
        case ("apps/v1", "StatefulSet"):
            templates = _map(manifest.get("spec")).get("volumeClaimTemplates")
            for index, template in enumerate(templates if isinstance(templates, list) else ()):
                yield from _claim(_map(template), f"spec.volumeClaimTemplates[{index}].spec")


def _claim(manifest: Mapping[str, object], field: str) -> Iterator[InputError]:
    spec = decode(msgspec.json.encode(_map(manifest.get("spec"))), PersistentVolumeClaimSpec)
    return validate_claim_spec(spec, field)


def _metadata(manifest: Mapping[str, object]) -> Iterator[InputError]:
    metadata = _map(manifest.get("metadata"))
    yield from _name(str(manifest.get("kind")), metadata)
    labels = {str(key): value for key, value in _map(metadata.get("labels")).items() if isinstance(value, str)}
    yield from validate_labels(labels, "metadata.labels")
    for key in sorted(map(str, _map(metadata.get("annotations")))):
        yield from (invalid("metadata.annotations", quoted(key), text) for text in label_key_errors(key.lower()))


def _name(kind: str, metadata: Mapping[str, object]) -> Iterator[InputError]:
    name = metadata.get("name")
    if not isinstance(name, str):
        return
    yield from syntax(dns_label_errors if kind == "StatefulSet" else dns_subdomain_errors, name, "metadata.name")


def _is_of_patch(template: Mapping[str, object]) -> bool:
    """As one repeats only what it changes, and so has no labels, or no images."""
    containers = _map(template.get("spec")).get("containers")
    has_images = isinstance(containers, list) and all("image" in _map(one) for one in containers)
    return not has_images or not _map(template.get("metadata")).get("labels")


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
