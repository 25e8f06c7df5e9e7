"""The pods that workloads create from their templates, including DaemonSets and custom resources."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube.custom_resources import TemplatePodCount, custom_kind, exclusive_topology, operator_may_add, stop_of
from kschedx.kube.decoding import list_at, map_at, maps_at
from kschedx.kube.documents import Json, with_spec
from kschedx.kube.kinds import KINDS, kind_of
from kschedx.kube.quantity import parse_quantity
from kschedx.kube.scalars import parse_int64
from kschedx.kube.selectors import (
    NODE_NAME_FIELD,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    required_node_affinity,
    terms_of,
)
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, NO_EXECUTE, find_untolerated
from kschedx.kube.types import Affinity, Node, NodeAffinity, Pod, PodSpec

# The pod of a workload's template, as its controller creates it: names, labels, owner, a StatefulSet's claims, and a
# DaemonSet's tolerations (pkg/controller/{deployment,statefulset,daemon,job} and
# pkg/controller/daemon/util/daemonset_util.go).


MAKING_PODS = tuple(kind.key for kind in KINDS.values() if kind.template)

LOOKS_LIKE_A_PATCH = "it looks like a kustomize patch: kubectl kustomize FOLDER | kschedx why -"
TEMPLATE_HASH = "pod-template-hash"  # the label that distinguishes the pods of a Deployment's templates
_LABELS_OF_JOB = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
"""Labels that the API server adds to a Job's template."""
_GENERATED_LABELS = frozenset({TEMPLATE_HASH, *_LABELS_OF_JOB})
SYNC_MARKS = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
}
"""Labels and annotations on objects that a tool applies, to the tool."""
_EXACT_MAPS = (
    "affinity", "nodeAffinity", "podAffinity", "podAntiAffinity", "nodeSelector", "matchLabels", "limits", "requests",
)  # fmt: skip
"""Maps of a template whose absent keys were removed on purpose."""
_NEVER_DEFAULTED = (
    "affinity",
    "nodeName",
    "nodeSelector",
    "priorityClassName",
    "resourceClaims",
    "runtimeClassName",
    "schedulingGates",
    "tolerations",
    "topologySpreadConstraints",
)
"""Fields of a pod's spec that scheduling reads and that no API server adds: both templates have them, or neither."""
_KEPT_WHOLE = ("affinity", "nodeSelector", "topologySpreadConstraints")
"""Fields that a reduced template still has completely."""
ALWAYS_STORED = "dnsPolicy"
"""A field that an API server always sets: a template without it is reduced to what scheduling reads."""

RETENTION_POLICY = "persistentVolumeClaimRetentionPolicy"
SIMULATED_RESTART = "simulated"  # its value if the restart is simulated
REVISION_HASH = "controller-revision-hash"
LONGEST_STATEFUL_SET_NAME = 52
"""The value of that label is the StatefulSet's name, a dash, and a hash of up to 10 characters: at most 63."""
"""The label that distinguishes the pods of a StatefulSet's or DaemonSet's templates."""
TEMPLATE_GENERATION = "pod-template-generation"
"""The label of a DaemonSet's pod with the number of its template; below it, the DaemonSet's annotation."""
GENERATION_OF_TEMPLATE = "deprecated.daemonset.template.generation"
REVISION = "deployment.kubernetes.io/revision"
"""A ReplicaSet's annotation: the revision of its template in the Deployment."""

SHORT_NAMES: Mapping[str, str] = {
    name: kind.key
    for kind in KINDS.values()
    if kind.template or kind.key == "Pod"
    for name in (*kind.short_names, kind.name.lower(), kind.plural)
}
"""kubectl's names of the kinds that a question accepts, in lower case and without groups; the shortest first."""

_DAEMON_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


_NEW_HASH = "new"  # a `pod-template-hash` that no real pod has, because hashes contain no vowels


class CreatedPod(Struct, frozen=True, kw_only=True):
    """What the controllers create for a workload."""

    pod: Json
    others: tuple[Json, ...] = ()
    """Objects that are created before the pod, unless they exist: its claims, and a new ReplicaSet."""


def pod_from_workload(workload: Mapping[str, object]) -> Json:
    """Return the manifest of a workload's next pod."""
    return created_pod(workload).pod


def created_pod(workload: Mapping[str, object], *, replica_set: Mapping[str, object] | None = None) -> CreatedPod:
    """Return the next pod of a workload, with the objects created for it. `replica_set` is the existing one with a
    Deployment's template, if any: it owns the pods, and they have its hash. Raises `InputError` if there is no
    template."""
    kind = str(workload.get("kind", ""))
    metadata = map_at(workload, "metadata")
    name = str(metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-."))
    template: Mapping[str, object] = workload
    path = KINDS[kind].template if kind in MAKING_PODS else ()
    if not path:
        raise InputError(f'"{kind}" creates no pods', hint=f"kinds that do: {', '.join(MAKING_PODS)}")
    for part in path:
        template = map_at(template, part)
    if not template:
        place = Place(object=f"{kind} {name}", field=".".join(path))
        raise InputError("there is no pod template", place=place, hint=LOOKS_LIKE_A_PATCH)

    pod_metadata: Json = copy.deepcopy(dict(map_at(template, "metadata")))
    labels = dict(map_at(template, "metadata", "labels"))
    spec: Json = copy.deepcopy(dict(map_at(template, "spec")))
    owner: Mapping[str, object] = workload
    others: list[Json] = []
    pod_metadata["name"] = name if name.endswith("-new") else f"{name}-new"
    match kind:
        case "StatefulSet":
            pod_name = f"{name}-{map_at(workload, 'spec', 'ordinals').get('start') or 0}"
            labels |= {
                "statefulset.kubernetes.io/pod-name": pod_name,
                "apps.kubernetes.io/pod-index": pod_name.rpartition("-")[2],
            }
            others += claims_for(workload, pod_name)
            _add_claims(spec, others, workload)
            pod_metadata["name"] = pod_name
        case "Deployment":
            if replica_set is None:
                owner = _new_replica_set(workload, labels)
                others.append(dict(owner))
            else:
                owner = replica_set
                pod_metadata["name"] = f"{map_at(owner, 'metadata').get('name')}-new"
            labels = dict(map_at(owner, "spec", "template", "metadata", "labels")) | labels
        case "DaemonSet":
            _add_daemon_tolerations(spec)
        case _:
            pass
    pod_metadata["namespace"] = metadata.get("namespace") or "default"
    if labels:
        pod_metadata["labels"] = labels
    pod_metadata["ownerReferences"] = [_owner_reference(owner, owner.get("apiVersion", ""), owner.get("kind", ""))]
    pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": spec}
    return CreatedPod(pod=pod, others=tuple(others))


def _owner_reference(owner: Mapping[str, object], api_version: object, kind: object) -> Json:
    metadata = map_at(owner, "metadata")
    name, uid = metadata.get("name") or "", metadata.get("uid") or ""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}


def current_replica_set(deployment: Mapping[str, object], replica_sets: list[Json]) -> Json | None:
    """Return the newest ReplicaSet of a Deployment that has its template, or None. The newest is the first.

    A stored template matches if it contains everything in the manifest, because `kubectl apply` keeps fields that a
    manifest does not mention. Labels must be equal, except for the hash. Upstream: FindNewReplicaSet in
    pkg/controller/deployment/util.
    """
    template = map_at(deployment, "spec", "template")
    templates = ((manifest, map_at(manifest, "spec", "template")) for manifest in replica_sets)
    return next((manifest for manifest, own in templates if has_template(own, template)), None)


def newest_first(replica_sets: Iterable[Json]) -> list[Json]:
    """Sort the ReplicaSets of a Deployment by their revisions."""
    return sorted(replica_sets, key=lambda it: revision(map_at(it, "metadata", "annotations")), reverse=True)


def revision(annotations: Mapping[str, object]) -> int:
    """Return the revision of a ReplicaSet with these annotations; 0 without one."""
    return parse_int64(str(annotations.get(REVISION) or "")) or 0


def deployment_of(name: str, replica_sets: list[Json]) -> Json:
    """Reconstruct a Deployment from its ReplicaSets, newest first: the template of the newest, the replicas of all."""
    newest = replica_sets[0]
    template = map_at(newest, "spec", "template")
    labels = {key: value for key, value in map_at(template, "metadata", "labels").items() if key != TEMPLATE_HASH}
    replicas = [map_at(manifest, "spec").get("replicas", 1) for manifest in replica_sets]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": map_at(newest, "metadata").get("namespace") or "default"},
        "spec": {
            "replicas": sum(number for number in replicas if isinstance(number, int)),
            "template": {**template, "metadata": {**map_at(template, "metadata"), "labels": labels}},
        },
    }


def has_same_template(stored: Mapping[str, object], written: Mapping[str, object]) -> bool:
    """Return whether a stored workload has the pod template that applying another manifest results in."""
    path = KINDS[str(written.get("kind"))].template
    return has_template(map_at(stored, *path), map_at(written, *path))


def changes_what_is_cut(stored: Mapping[str, object], changed: Mapping[str, object]) -> bool:
    """Return whether the pod templates differ only in fields that scheduling does not read, such as the environment."""
    path = KINDS[str(changed.get("kind"))].template
    return has_same_template(stored, changed) and not contains(map_at(stored, *path), map_at(changed, *path))


def has_template(stored: Mapping[str, object], template: Mapping[str, object]) -> bool:
    """Return whether a stored pod template equals the result of applying `template`."""
    is_cut = ALWAYS_STORED not in map_at(stored, "spec")
    before, after = map_at(stored, "spec"), map_at(template, "spec")
    return (
        _own_labels(stored) == _own_labels(template)
        and _has_annotations(stored, template, is_cut=is_cut)
        and _contains(before, after, is_cut=is_cut)
        and _host_ports(before) <= _host_ports(after)
    )


def _has_annotations(stored: Mapping[str, object], template: Mapping[str, object], *, is_cut: bool) -> bool:
    """Return whether a stored template has all annotations of another one. A reduced template keeps hardly any."""
    before, after = (map_at(each, "metadata", "annotations") for each in (stored, template))
    return all(before.get(key) == value for key, value in after.items() if not is_cut or value == SIMULATED_RESTART)


def _own_labels(template: Mapping[str, object]) -> dict[str, object]:
    """Return the labels without those of controllers and the API server."""
    labels = map_at(template, "metadata", "labels")
    return {key: value for key, value in labels.items() if key not in _GENERATED_LABELS}


def _host_ports(spec: Mapping[str, object]) -> set[object]:
    """Return the host ports of all containers; with hostNetwork, every port is one."""
    ports = [port for container in maps_at(spec, "containers") for port in maps_at(container, "ports")]
    is_on_node = spec.get("hostNetwork") is True
    return {port.get("hostPort") or (port.get("containerPort") if is_on_node else 0) or 0 for port in ports} - {0}


def contains(stored: object, written: object) -> bool:
    """Return whether applying `written` to `stored` changes nothing."""
    return _contains(stored, written, is_cut=False)


def _contains(stored: object, written: object, key: str = "", *, is_cut: bool) -> bool:
    """Return whether `stored` contains `written`, as far as it was kept; quantities may differ in format."""
    if isinstance(written, dict):
        there = stored if isinstance(stored, dict) else {}
        if key in _EXACT_MAPS and set(there) != set(written):
            return False
        if "containers" in written and any(
            bool(there.get(name)) != bool(written.get(name)) for name in _NEVER_DEFAULTED
        ):
            return False
        return all(
            _contains(there.get(name), value, name, is_cut=is_cut and name not in _KEPT_WHOLE)
            for name, value in written.items()
        )
    if isinstance(written, list):
        theirs = stored if isinstance(stored, list) else []
        if is_cut and not theirs:
            return True
        return len(theirs) == len(written) and all(
            _contains(item, other, is_cut=is_cut) for item, other in zip(theirs, written, strict=True)
        )
    if stored is None:
        return is_cut or written in (None, "", 0, False)
    if isinstance(stored, str | int | float) and isinstance(written, str | int | float) and stored != written:
        return _amount(stored) is not None and _amount(stored) == _amount(written)
    return stored == written


def _amount(value: str | float) -> object:
    try:
        return parse_quantity(str(value))
    except InputError:
        return None


def _new_replica_set(deployment: Mapping[str, object], labels: Mapping[str, object]) -> Json:
    """Return the ReplicaSet that the Deployment controller creates for a new template."""
    metadata = map_at(deployment, "metadata")
    hashed = {TEMPLATE_HASH: _NEW_HASH}
    selector = dict(map_at(deployment, "spec", "selector"))
    selector["matchLabels"] = {**map_at(selector, "matchLabels"), **hashed}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata.get('name') or ''}-{_NEW_HASH}",
            "namespace": metadata.get("namespace") or "default",
            "ownerReferences": [_owner_reference(deployment, "apps/v1", "Deployment")],
        },
        "spec": {"selector": selector, "template": {"metadata": {"labels": {**labels, **hashed}}}},
    }


def claims_for(workload: Mapping[str, object], pod_name: str) -> list[Json]:
    """Return the claims that the StatefulSet controller creates from its templates (getPersistentVolumeClaims)."""
    templates = map_at(workload, "spec").get("volumeClaimTemplates")
    claims: list[Json] = []
    for template in templates if isinstance(templates, list) else ():
        if not isinstance(template, dict):
            continue
        metadata = map_at(template, "metadata")
        labels = {**map_at(metadata, "labels"), **map_at(workload, "spec", "selector", "matchLabels")}
        named = {
            "name": f"{metadata.get('name') or ''}-{pod_name}",
            "namespace": map_at(workload, "metadata").get("namespace") or "default",
            "labels": labels,
            "annotations": dict(map_at(metadata, "annotations")),
        }
        spec = copy.deepcopy(dict(map_at(template, "spec")))
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": named, "spec": spec})
    return claims


def _add_claims(spec: Json, claims: list[Json], workload: Mapping[str, object]) -> None:
    """Add a volume for each volumeClaimTemplate, replacing the template's own volume with that name."""
    templates = cast("list[Mapping[str, object]]", map_at(workload, "spec").get("volumeClaimTemplates") or [])
    names = [str(map_at(it, "metadata").get("name") or "") for it in templates if isinstance(it, dict)]
    existing = spec.get("volumes")
    volumes = (
        [v for v in existing if not (isinstance(v, dict) and v.get("name") in names)]
        if isinstance(existing, list)
        else []
    )
    volumes += [
        {"name": name, "persistentVolumeClaim": {"claimName": map_at(claim, "metadata").get("name")}}
        for name, claim in zip(names, claims, strict=True)
    ]
    if volumes:
        spec["volumes"] = volumes


def _add_daemon_tolerations(spec: Json) -> None:
    keys = list(_DAEMON_TOLERATIONS)
    if spec.get("hostNetwork"):
        keys.append(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    existing = spec.get("tolerations")
    tolerations = list(existing) if isinstance(existing, list) else []
    spec["tolerations"] = tolerations + [{"key": k, "operator": "Exists", "effect": e} for k, e in keys]


# Custom workloads: a Rollout, a Knative Service, a Volcano or Kubeflow job. Most custom resources that create pods have
# a standard pod template below their `spec`. What their controllers add to a pod is unknown, except for the few fields
# named here.

_MAX_DEPTH = 8  # the maximum depth of a template below `spec`
MOST_PODS = 1_000_000  # the number of pods that are placed for one workload or template

_KNATIVE = "serving.knative.dev"  # its controller names containers without a name
_OF_THE_POD = ("podTemplate", "jobTemplate", "jobTargetRef")
"""Keys of templates that do not name the pod's role, as `workerTemplate` does."""
_NO_IMAGE = "image-of-its-controller"
_SCHEDULERS: Mapping[str, str] = {"batch.volcano.sh": "volcano"}
"""API groups whose controllers set another scheduler on pods without one."""


_KUBERNETES = frozenset({
    "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
    "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "metrics", "networking",
    "node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
})  # fmt: skip
"""The prefixes of Kubernetes' own groups before `.k8s.io`."""


class ForeignPod(Struct, frozen=True, kw_only=True):
    manifest: Json
    path: str  # `spec.template`
    part: str  # the role of this template, if there are several: `worker`
    count: TemplatePodCount  # the number of simultaneous pods


def kind_and_group(manifest: Mapping[str, object]) -> tuple[str, str]:
    group, slash, _ = str(manifest.get("apiVersion") or "").rpartition("/")
    return str(manifest.get("kind") or ""), group if slash else ""


def qualified_kind(manifest: Mapping[str, object]) -> str:
    """The kind, with its group if it is a custom resource named like a kind of Kubernetes: `Job.batch.volcano.sh`."""
    kind, group = kind_and_group(manifest)
    return f"{kind}.{group}" if kind in KINDS and is_foreign(manifest) else kind


def is_foreign(manifest: Mapping[str, object]) -> bool:
    """Return whether the kind is not one of Kubernetes' own."""
    kind, group = kind_and_group(manifest)
    return kind_of(kind, group) is None and "." in group and group.removesuffix(".k8s.io") not in _KUBERNETES


def foreign_pods(manifest: Mapping[str, object]) -> list[ForeignPod]:
    """Return a pod for each template of a custom resource, or for each kind of pod that its operator builds. Empty if
    it has neither."""
    kind, group = kind_and_group(manifest)
    own = map_at(manifest, "metadata")
    templates, counts = _templates_and_counts(manifest, kind, group)
    if stop_of(manifest) is not None:
        counts = dict.fromkeys(counts, TemplatePodCount(number=0))
    known = custom_kind(kind, group)
    scheduler = map_at(manifest, "spec").get("schedulerName") or _SCHEDULERS.get(group)
    pods = []
    for template, path, part in templates:
        if (count := counts[path]).number == 0 and any(count.number != 0 for count in counts.values()):
            continue
        is_one_of_several = len(templates) > 1 or (known is not None and count.number is None)
        pod = _pod(template, own, kind, str(manifest.get("apiVersion")), part if is_one_of_several else "")
        pod_spec = cast("Json", pod["spec"])
        containers = cast("list[Json]", pod_spec["containers"])
        for index, container in enumerate(containers):
            if group == _KNATIVE:
                container.setdefault("name", f"user-container-{index}" if len(containers) > 1 else "user-container")
            container.setdefault("image", _NO_IMAGE)
        if known is not None and known.added is not None and path != "spec":
            containers.extend(map(dict, known.added(manifest, path)))
        _drop_mounts(pod_spec)
        if isinstance(scheduler, str):
            pod_spec.setdefault("schedulerName", scheduler)
        pods.append(ForeignPod(manifest=pod, path=path, part=part, count=count))
    return pods


def _templates_and_counts(
    manifest: Mapping[str, object], kind: str, group: str
) -> tuple[list[tuple[Mapping[str, object], str, str]], dict[str, TemplatePodCount]]:
    """Return templates with their paths and roles, and the number of pods of each path."""
    known = custom_kind(kind, group)
    built = [] if known is None or known.build is None else list(known.build(manifest))
    of_built: list[tuple[Mapping[str, object], str, str]] = [
        ({"metadata": {"labels": dict(pods.labels)}, "spec": pods.spec}, pods.path, pods.part) for pods in built
    ]
    if known is not None and known.build is not None and known.counts is None:
        more = operator_may_add(kind)
        return of_built, {pods.path: _pod_count(pods.count, more) for pods in built}
    templates = list(_templates(map_at(manifest, "spec"), "spec", "", _MAX_DEPTH))
    numbers = {} if known is None or known.counts is None else dict(known.counts(manifest))
    unknown = f"only the controller of {kind} knows how many pods it creates"
    counts = {
        path: _pod_count(_number_beside(manifest, path) if known is None else None, unknown) for _, path, _ in templates
    }
    counts |= {pods.path: _pod_count(pods.count, pods.undecided) for pods in built}
    rule = exclusive_topology(manifest)
    return [*templates, *of_built], counts | {
        path: _pod_count(number, rule) for path, number in numbers.items() if path in counts and number is not None
    }


def _number_beside(manifest: Mapping[str, object], path: str) -> int | None:
    """Return the `replicas` beside a template, which most controllers of unknown kinds create."""
    number = map_at(manifest, *path.split(".")[:-1]).get("replicas")
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None


def _pod_count(number: int | None, undecided: str = "") -> TemplatePodCount:
    """Return a number of pods, without the number if it is too large."""
    if number is None or number <= MOST_PODS:
        return TemplatePodCount(number=number, undecided=undecided)
    return TemplatePodCount(number=None, undecided=f"it has {number:,} pods, and kschedx places at most {MOST_PODS:,}")


def _drop_mounts(spec: Json) -> None:
    """Remove mounts of volumes that the controller adds: scheduling does not read mounts."""
    names = {volume.get("name") for volume in maps_at(spec, "volumes")}
    for key in ("containers", "initContainers"):
        for container in maps_at(spec, key):
            if isinstance(mounts := container.get("volumeMounts"), list):
                container["volumeMounts"] = [it for it in mounts if not isinstance(it, dict) or it.get("name") in names]


def _templates(value: object, path: str, part: str, depth: int) -> Iterator[tuple[Mapping[str, object], str, str]]:
    """Yield everything that looks like a pod template: `metadata` and a `spec` with containers."""
    if isinstance(value, list) and depth:
        for index, item in enumerate(value):
            name = item.get("name") or item.get("groupName") if isinstance(item, dict) else None
            yield from _templates(item, f"{path}[{index}]", str(name or part), depth - 1)
    if not isinstance(value, dict) or not depth:
        return
    spec = value.get("spec")
    if isinstance(spec, dict) and _has_containers(spec):
        yield value, path, part
        return
    for key, item in value.items():
        if key.endswith("Template") and key not in _OF_THE_POD:
            yield from _templates(item, f"{path}.{key}", key.removesuffix("Template").lower(), depth - 1)
            continue
        is_named = isinstance(item, dict) and key not in ("template", "spec", *_OF_THE_POD) and "emplate" not in key
        named = key.lower().removesuffix("groupspec") if is_named and not key.lower().endswith("specs") else part
        yield from _templates(item, f"{path}.{key}", named or part, depth - 1)


def _has_containers(spec: Mapping[str, object]) -> bool:
    containers = list_at(spec, "containers")
    return bool(containers) and all(isinstance(container, dict) for container in containers)


def _pod(
    template: Mapping[str, object], metadata: Mapping[str, object], kind: str, api_version: str, part: str
) -> Json:
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    own = map_at(template, "metadata")
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": str(metadata.get("uid") or "")}
    manifest: Json = {
        "name": "-".join(filter(None, (name.rstrip("-"), part.lower(), "new"))),
        "namespace": metadata.get("namespace") or "default",
        "ownerReferences": [{**owner, "controller": True}],
    }
    manifest |= {key: own[key] for key in ("labels", "annotations") if own.get(key)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": manifest, "spec": copy.deepcopy(template["spec"])}


# A DaemonSet's pods and their nodes, by the rules of its controller: pkg/controller/daemon/daemon_controller.go and
# util/daemonset_util.go.


def runs_on(spec: PodSpec, node: Node, *, comparison: bool) -> bool:
    """Return whether a pod is created for the node (NodeShouldRunDaemonPod): by its name, affinity, and taints, not by
    free resources. `comparison`: taints and tolerations support the operators of the gate
    TaintTolerationComparisonOperators."""
    return selects_node(spec, node) and not _is_kept_out(spec, node, DO_NOT_SCHEDULE, comparison=comparison)


def continues_on(spec: PodSpec, node: Node, *, comparison: bool) -> bool:
    """Return whether an existing pod stays, even if no new one would be created."""
    return selects_node(spec, node) and not _is_kept_out(spec, node, (NO_EXECUTE,), comparison=comparison)


def selects_node(spec: PodSpec, node: Node) -> bool:
    if spec.node_name not in ("", node.name):
        return False
    required = spec.required_node_affinity
    return required_node_affinity(spec.node_selector, required).matches(node.metadata.labels, node.name)


def _is_kept_out(spec: PodSpec, node: Node, effects: tuple[str, ...], *, comparison: bool) -> bool:
    return find_untolerated(node.spec.taints, spec.tolerations, effects=effects, comparison=comparison) is not None


def pin_to_node(pod: Pod, node: str) -> Pod:
    """ReplaceDaemonSetPodNodeNameNodeAffinity: replace every required term with the node's name."""
    term = NodeSelectorTerm(match_fields=(SelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node,)),))
    affinity = pod.spec.affinity or Affinity()
    own = affinity.node_affinity or NodeAffinity()
    required = NodeSelector(node_selector_terms=(term,))
    rules = replace(own, required_during_scheduling_ignored_during_execution=required)
    return with_spec(pod, affinity=replace(affinity, node_affinity=rules))


def pinned_to(spec: PodSpec) -> str:
    """Return the node that `pinned` sets (GetTargetNodeName), or an empty string."""
    for term in terms_of(spec.required_node_affinity):
        for field in term.match_fields:
            if field.key == NODE_NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""


def without_node_names(pod: Pod) -> Pod:
    """Remove node names from required node affinity, with the terms that are then empty."""
    kept = tuple(replace(term, match_fields=()) for term in terms_of(pod.spec.required_node_affinity))
    return with_required_terms(pod, None if any(term.is_empty for term in kept) else kept)


def with_required_terms(pod: Pod, terms: tuple[NodeSelectorTerm, ...] | None) -> Pod:
    """Return the pod with other terms of required node affinity, or without it, if it has any."""
    affinity = pod.spec.affinity or Affinity()
    rules = affinity.node_affinity
    required = rules.required_during_scheduling_ignored_during_execution if rules else None
    if rules is None or required is None:
        return pod
    after = None if terms is None else replace(required, node_selector_terms=terms)
    rules = replace(rules, required_during_scheduling_ignored_during_execution=after)
    is_empty = after is None and not rules.preferred_during_scheduling_ignored_during_execution
    affinity = replace(affinity, node_affinity=None if is_empty else rules)
    return with_spec(pod, affinity=None if affinity == Affinity() else affinity)
