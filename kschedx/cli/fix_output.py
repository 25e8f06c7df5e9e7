"""The manifests that a fix changes, as far as they are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kschedx.cli.output import Report
from kschedx.errors import InputError
from kschedx.kube.decoding import manifest, map_at
from kschedx.kube.documents import Change
from kschedx.kube.escaping import shell_comment
from kschedx.kube.types import Pod
from kschedx.kube.workloads import MAKING_PODS, has_same_template
from kschedx.patterns import lazy_pattern

if TYPE_CHECKING:
    from kschedx.inquiry.explanation import Explanation
    from kschedx.inquiry.fix import Fix
    from kschedx.inquiry.manifests import PodInQuestion
    from kschedx.render.manifests import Find
    from kschedx.snapshot.snapshot import Snapshot


_STEP = lazy_pattern(r"\.?([^.\[\]]+)|\[(\d+)\]")


def _changes_to_send(changes: Sequence[Change], written_pod: PodInQuestion, pod: Pod) -> list[Change]:
    """Return the changes; those of a pod created from a custom resource's template become changes of that template."""
    if written_pod.workload is None or written_pod.workload.get("kind") in MAKING_PODS:
        return [*changes]
    from kschedx.fixes.owners import Owner, owner_change

    name = str(map_at(written_pod.workload, "metadata").get("name") or "")
    path = tuple(int(index) if index else step for step, index in _STEP.findall(written_pod.template))
    owner = Owner(
        kind=str(written_pod.workload.get("kind")), name=name, manifest=written_pod.workload, own_template=path
    )
    return [owner_change(change, owner, pod) for change in changes]


def fix_report(
    explanation: Explanation, fixes: Sequence[Fix], number: int, written_pod: PodInQuestion, before: Snapshot
) -> Report:
    """Return the report of the fix of this number. `before` is the cluster without the files. A script without a
    command begins with the title, which says what you do. Raises `InputError` if there are fewer fixes."""
    if number > len(fixes):
        there = f"there {'is' if len(fixes) == 1 else 'are'} {len(fixes)}" if fixes else "there are no fixes"
        raise InputError(f"no fix {number}: {there}")
    fix = fixes[number - 1]
    sent = _changes_to_send(fix.apply, written_pod, explanation.cycle.pod)
    followed = [change for change in fix.changes if change.by]  # controllers make these afterwards

    def yaml() -> str:
        from kschedx.render.manifests import patched_manifests

        return patched_manifests(sent, _known_manifest(explanation.cycle.snapshot, written_pod))

    def patch() -> str:
        from kschedx.render.manifests import kubectl_commands, node_commands

        if of_nodes := node_commands(sent, fix.commands):
            return of_nodes + kubectl_commands(followed)
        script = kubectl_commands((*sent, *followed), _only_written(before, written_pod))
        has_command = any(line and not line.startswith("#") for line in script.splitlines())
        title = (explanation.coverage(fix) or fix).title
        return script if has_command else f"{shell_comment(title)}\n{script}"

    return Report(screen=lambda *_: (), document=fix.to_dict, yaml=yaml, patch=patch)


def _known_manifest(snapshot: Snapshot, written_pod: PodInQuestion) -> Find:
    """Return a search in the given files, then among the cluster's workloads, then in its pods, nodes, namespaces, and
    claims."""
    written = _manifest_finder(written_pod)

    def find(change: Change) -> Mapping[str, object] | None:
        target = change.target
        if (item := written(change)) is not None:
            return item
        if (stored := snapshot.manifest_of((target.kind, target.namespace, target.name))) is not None:
            return stored
        if target.kind == "Node" and target.name in snapshot.cluster.index:
            return manifest("v1", "Node", snapshot.cluster.nodes[snapshot.cluster.index[target.name]])
        if target.kind == "Pod" and written_pod.stored is not None:
            return written_pod.manifest
        if target.kind == "Namespace" and target.name in snapshot.namespaces:
            metadata = {"name": target.name, "labels": dict(snapshot.namespaces[target.name])}
            return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        if target.kind == "PersistentVolumeClaim":
            claim = snapshot.storage.claim(target.namespace, target.name)
            return None if claim is None else manifest("v1", target.kind, claim)
        return None

    return find


def _only_written(before: Snapshot, written_pod: PodInQuestion) -> Find:
    """Return a search in the given files for objects that the cluster lacks, or has with another pod template."""
    written = _manifest_finder(written_pod)

    def find(change: Change) -> Mapping[str, object] | None:
        target = change.target
        is_recreated = change.delete or change.create is not None
        if is_recreated and (target.kind, target.namespace, target.name) in before.workloads:
            return None
        item = written(change)
        return None if item is None or _has_as_written(before, change, item) else item

    return find


def _manifest_finder(pod: PodInQuestion) -> Find:
    def find(change: Change) -> Mapping[str, object] | None:
        if pod.stored is not None:
            return None
        its = (pod.document.value if pod.document else None, pod.workload, pod.manifest)
        target = change.target
        others = (
            document.value
            for document in pod.documents
            if (map_at(document.value, "metadata").get("namespace") or "") == target.namespace
        )
        return next((it for it in (*its, *others) if it is not None and _is(it, target.kind, target.name)), None)

    return find


def _has_as_written(before: Snapshot, change: Change, written: Mapping[str, object]) -> bool:
    target = change.target
    key = target.key
    match target.kind:
        case "Pod":
            return key in before.pods.rows
        case "PersistentVolumeClaim":
            return key in before.storage.claims
        case "PersistentVolume":
            return target.name in before.storage.volumes
        case "StorageClass":
            return target.name in before.storage.classes
        case _:
            raw = before.workloads.get((target.kind, target.namespace, target.name))
            return raw is not None and has_same_template(msgspec.json.decode(raw, type=dict[str, object]), written)


def _is(manifest: Mapping[str, object], kind: str, name: str) -> bool:
    """Return whether the manifest is of this kind and name; with `generateName`, it has no name yet."""
    return manifest.get("kind") == kind and (map_at(manifest, "metadata").get("name") or "") == name
