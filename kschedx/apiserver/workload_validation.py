"""What an API server refuses about a workload itself and about claims, not about the pods of its template.

Upstream: ValidateDeploymentSpec, ValidateStatefulSetSpec, ValidateDaemonSetSpec in pkg/apis/apps/validation,
ValidatePersistentVolumeClaim in pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from kschedx.api.claim_validation import validate_claim_spec
from kschedx.api.decode import decode
from kschedx.api.field_errors import invalid
from kschedx.api.names import dns_subdomain_errors
from kschedx.api.pod_volumes import PersistentVolumeClaimSpec
from kschedx.api.selectors import LabelSelector, compile_selector
from kschedx.api.validation_parts import syntax
from kschedx.api.workloads import MAKING_PODS
from kschedx.errors import InputError, Place

SELECTING = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})
_PATCH = "of a patch, what it comes to: kubectl kustomize FOLDER | kschedx why -"


def validate_workload(manifest: Mapping[str, object]) -> Iterator[InputError]:
    """The name of any workload; and for one of apps/v1, that its selector is there and selects its own pods."""
    name = _map(manifest.get("metadata")).get("name")
    if manifest.get("kind") in MAKING_PODS and isinstance(name, str):
        yield from syntax(dns_subdomain_errors, name, "metadata.name")
    spec = _map(manifest.get("spec"))
    for field in ("replicas", "parallelism", "completions"):
        number = spec.get(field)
        if manifest.get("kind") in MAKING_PODS and isinstance(number, int) and number < 0:
            yield invalid(f"spec.{field}", str(number), "must be greater than or equal to 0")
    if manifest.get("apiVersion") != "apps/v1" or manifest.get("kind") not in SELECTING:
        return
    written = spec.get("selector")
    if not _map(spec.get("template")):
        return
    if not isinstance(written, Mapping):
        hint = _PATCH if _is_of_patch(_map(spec.get("template"))) else ""
        yield InputError("a selector is required", place=Place(field="spec.selector"), hint=hint)
        return

    selector = decode(msgspec.json.encode(written), LabelSelector)
    labels = {
        str(key): str(value)
        for key, value in _map(_map(_map(spec.get("template")).get("metadata")).get("labels")).items()
    }
    if not selector.match_labels and not selector.match_expressions:
        yield InputError("an empty selector is not allowed", place=Place(field="spec.selector"))
    elif not compile_selector(selector).matches(labels):
        shown = ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "none"
        yield InputError(
            f"`selector` does not match template `labels` (the labels are {shown})",
            place=Place(field="spec.template.metadata.labels" if labels else "spec.selector"),
        )


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


def _is_of_patch(template: Mapping[str, object]) -> bool:
    """As one repeats only what it changes, and so has no labels, or no images."""
    containers = _map(template.get("spec")).get("containers")
    has_images = isinstance(containers, list) and all("image" in _map(one) for one in containers)
    return not has_images or not _map(template.get("metadata")).get("labels")


def _map(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
