"""What the API server would not store of what a change makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kschedx.api.selector_validation import validate_labels
from kschedx.api.stored import as_new
from kschedx.api.types import Node, Pod
from kschedx.api.validation import validate_written_node, validate_written_pod_spec
from kschedx.apiserver.budget_validation import validate_budget
from kschedx.apiserver.strict import faults
from kschedx.apiserver.workload_validation import validate_claims, validate_workload
from kschedx.errors import InputError
from kschedx.simulate.changes import Manifest


def require_node(before: Node, after: Node) -> None:
    """Raises `InputError` for what is wrong now and was not before."""
    _require(_of_node(before), _of_node(after))


def require_pod(before: Pod, after: Pod) -> None:
    """Raises `InputError` for what is wrong now and was not before."""
    _require(_of_pod(before), _of_pod(after))


def require_workload(before: Manifest, after: Manifest) -> None:
    """Raises `InputError` for what is wrong now and was not before, with the nearest field."""
    for name in ("apiVersion", "kind"):
        if before.get(name) != after.get(name):
            raise InputError(f"{name} cannot be changed")
    named = [one.get("metadata") for one in (before, after)]
    if not isinstance(named[1], dict) or not isinstance(named[0], dict):
        raise InputError("metadata is a map")
    for name in ("name", "namespace"):
        if named[0].get(name) != named[1].get(name):
            raise InputError(f"metadata.{name} cannot be changed")
    _require(_of_workload(before), _of_workload(after))


def require_object(before: Manifest, after: Manifest) -> None:
    """Of an object that makes no pods. Raises `InputError` for what is wrong now and was not before, with the nearest
    field."""
    _require(_of_object(before), _of_object(after))


def _require(before: Iterable[InputError], after: Iterable[InputError]) -> None:
    known = {str(error) for error in before}
    for error in after:
        if str(error) not in known:
            raise error


def _of_node(node: Node) -> Iterator[InputError]:
    yield from validate_labels(node.metadata.labels, "metadata.labels")
    for index, taint in enumerate(node.spec.taints):
        yield from validate_labels({taint.key: taint.value}, f"spec.taints[{index}]")
    yield from validate_written_node(node)


def _of_pod(pod: Pod) -> Iterator[InputError]:
    yield from validate_labels(pod.metadata.labels, "metadata.labels")
    yield from validate_written_pod_spec(pod.spec)


def _of_workload(manifest: Manifest) -> Iterator[InputError]:
    yield from faults(_as_written(manifest))
    yield from validate_workload(as_new(manifest))


def _of_object(manifest: Manifest) -> Iterator[InputError]:
    yield from faults(_as_written(manifest))
    yield from validate_claims(manifest)
    yield from validate_budget(manifest)


def _as_written(manifest: Manifest) -> Manifest:
    """Without what an API server adds."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return {**{key: value for key, value in manifest.items() if key != "status"}, "metadata": {"name": name}}
