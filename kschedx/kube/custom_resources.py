"""Custom resources that create pods: where their pod templates are, and how many pods each creates.

`KINDS` is the only table. A kind has templates (`counts`), or fields from which its operator builds pods (`build`). The
operator adds to such pods, so they need at least what is computed here. Sources: the CustomResourceDefinitions of each
project.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, cast

import msgspec
from msgspec import Struct

from kschedx.errors import InputError
from kschedx.kube.autoscalers import EXCLUSIVE_TOPOLOGY, GROUP_LABELS, JOB_SET_NAME, RAY_CLUSTER, TRAINING_JOB
from kschedx.kube.decoding import map_at, value_at
from kschedx.kube.names import is_overcommit_allowed
from kschedx.kube.quantity import resource_amount
from kschedx.kube.scalars import parse_int64
from kschedx.patterns import lazy_pattern

_Fields: TypeAlias = Mapping[str, object]
_Counts: TypeAlias = Callable[[_Fields], Iterator[tuple[str, int | None]]]
"""Paths of pod templates in an object, with the number of simultaneous pods; None if it cannot be computed."""


class _BuiltPods(Struct, frozen=True, kw_only=True):
    """Pods that an operator builds from fields; the template is partial."""

    part: str
    path: str
    count: int | None
    spec: _Fields
    labels: _Fields = {}
    undecided: str = ""  # why they may need more


class _CustomKind(Struct, frozen=True, kw_only=True):
    """A kind of custom resource that creates pods."""

    counts: _Counts | None = None
    build: Callable[[_Fields], Iterator[_BuiltPods]] | None = None  # beside `counts`, pods that are wholly known
    added: Callable[[_Fields, str], Iterator[_Fields]] | None = None
    """The containers that the controller adds to the pod of the template at a path."""
    label: str = ""
    """The label of its pods whose value is its name, where their owners may be objects that a snapshot lacks."""


class _Stop(Struct, frozen=True, kw_only=True):
    """A field that stops a custom resource, whose operator then creates no pods."""

    path: tuple[str, ...]
    values: tuple[object, ...] = ()  # any value if empty
    started: object = None  # the value that starts it; None removes the field
    status: str = ""  # the printableStatus that it needs as well

    @property
    def field(self) -> str:
        return ".".join(self.path) if self.path[0] == "spec" else f"annotation {self.path[-1]}"

    @property
    def start(self) -> Mapping[str, object]:
        """The merge patch that starts it."""
        patch: object = self.started
        for key in reversed(self.path):
            patch = {key: patch}
        return cast("_Fields", patch)

    def value_in(self, manifest: _Fields) -> object:
        """Return the value that stops it, or None."""
        value = map_at(manifest, *self.path[:-1]).get(self.path[-1])
        is_met = not self.status or _value_at(manifest, "status.printableStatus") == self.status
        return value if is_met and value in (self.values or (value,)) else None


def stop_of(manifest: _Fields) -> _Stop | None:
    """Return the field that stops the custom resource, or None."""
    kind, version = str(manifest.get("kind")), str(manifest.get("apiVersion") or "")
    stops = _STOPS.get((version.rpartition("/")[0], kind), ())
    return next((stop for stop in stops if stop.value_in(manifest) is not None), None)


class TemplatePodCount(Struct, frozen=True, kw_only=True):
    """How many simultaneous pods a custom resource creates from a template."""

    number: int | None  # None if only the controller knows it
    undecided: str = ""  # why the number is incomplete, so that pods that fit do not prove that all fit


def custom_kind(kind: str, group: str) -> _CustomKind | None:
    """Find the kind in the table, or return None."""
    return KINDS.get((group, kind))


# --- fields


def _value_at(value: object, path: str) -> object:
    """Return the value at a path of keys such as `spec.template`, or None."""
    return value_at(value, *path.split("."))


def _fields_at(value: object, path: str) -> _Fields:
    """Return the map at a path of keys, or an empty map."""
    return map_at(value, *path.split("."))


def _number(value: object, path: str, default: int) -> int:
    value_there = _value_at(value, path)
    if isinstance(value_there, int) and not isinstance(value_there, bool) and value_there >= 0:
        return value_there
    return default


def _items(value: object, path: str) -> Iterator[tuple[str, _Fields]]:
    """Yield the items of a list or map of objects, each with its path."""
    items = _value_at(value, path)
    if isinstance(items, Mapping):
        yield from ((f"{path}.{key}", item) for key, item in items.items() if isinstance(item, Mapping))
    elif isinstance(items, Sequence) and not isinstance(items, str):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(items) if isinstance(item, Mapping))


# --- kinds with pod templates


def _template_with_replicas(template: str = "spec.template", default: int = 1) -> _Counts:
    """A template, whose pods are `spec.replicas`."""

    def counts(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
        yield template, _number(manifest, "spec.replicas", default)

    return counts


def _runner_set(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    """The runners that always exist (actions/actions-runner-controller); those of a stored set belong to
    EphemeralRunners."""
    is_stored = _value_at(manifest, "metadata.uid") is not None
    yield "spec.template", None if is_stored else _number(manifest, "spec.minRunners", 0) or None


def _groups(path: str) -> _Counts:
    """A list or map of groups, each with a template and a number of pods."""

    def counts(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
        for where, group in _items(manifest, path):
            yield f"{where}.template", _number(group, "replicas", 1)

    return counts


def _pods_of_job(job: object) -> int:
    """Return how many pods of a Job run at a time."""
    parallelism = _number(job, "spec.parallelism", 1)
    return min(parallelism, _number(job, "spec.completions", parallelism))


def _job_set(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    for where, group in _items(manifest, "spec.replicatedJobs"):
        pods = _number(group, "replicas", 1) * _pods_of_job(group.get("template"))
        yield f"{where}.template.spec.template", pods


def _app_wrapper(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    """The pods of the wrapped objects: as `podSets` states, or as the kind of the object says
    (project-codeflare/appwrapper, pkg/utils/utils.go)."""
    for where, component in _items(manifest, "spec.components"):
        wrapped = _fields_at(component, "template")
        stated = [pod_set for _, pod_set in _items(component, "podSets")]
        if stated:
            yield from ((f"{where}.{each.get('path')}", _number(each, "replicas", 1)) for each in stated)
        else:
            yield from ((".".join(filter(None, (f"{where}.template", path))), count) for path, count in _own(wrapped))


def _app_wrapper_built(manifest: _Fields) -> Iterator[_BuiltPods]:
    """The pods of wrapped objects whose operators build them, unless `podSets` states all pods."""
    for where, component in _items(manifest, "spec.components"):
        wrapped = _fields_at(component, "template")
        kind, group = str(wrapped.get("kind")), str(wrapped.get("apiVersion")).rpartition("/")[0]
        custom = custom_kind(kind, group)
        if custom is None or custom.build is None or next(_items(component, "podSets"), None) is not None:
            continue
        name = str(_value_at(wrapped, "metadata.name") or kind.lower())
        undecided = "" if custom.counts else operator_may_add(kind)
        for pods in custom.build(wrapped):
            part = f"{name}-{pods.part}" if pods.part else name
            path = f"{where}.template.{pods.path}"
            yield msgspec.structs.replace(pods, part=part, path=path, undecided=pods.undecided or undecided)


def operator_may_add(kind: str) -> str:
    """Return why the pods of a kind that its operator builds are not wholly known."""
    return f"the operator of {kind} may add containers and requests"


def exclusive_topology(manifest: _Fields) -> str:
    """Return which rule the controller of a JobSet or LeaderWorkerSet adds to its pods, without which they may fit;
    empty if it adds none."""
    parts = (manifest, *(_fields_at(job, "template") for _, job in _items(manifest, "spec.replicatedJobs")))
    annotations = dict(item for part in parts for item in _fields_at(part, "metadata.annotations").items())
    for annotation, (_, _, part) in EXCLUSIVE_TOPOLOGY.items():
        if key := annotations.get(annotation):
            return f"each {part} needs a {key} of its own (exclusive topology), which is not evaluated"
    return ""


def _own(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    """Yield the pod templates of an object in another one."""
    kind, group = str(manifest.get("kind")), str(manifest.get("apiVersion")).rpartition("/")[0]
    custom = custom_kind(kind, group)
    if kind == "Pod":
        yield "", 1
    elif (kind, group) == ("Job", "batch"):
        yield "spec.template", _pods_of_job(manifest)
    elif group == "apps" and kind != "DaemonSet":
        yield "spec.template", _number(manifest, "spec.replicas", 1)
    elif custom is not None and custom.counts is not None:
        yield from custom.counts(manifest)


def _leader_worker_set(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    """Groups of `size` pods, one of them the leader."""
    below = "spec.leaderWorkerTemplate"
    replicas, size = _number(manifest, "spec.replicas", 1), _number(manifest, f"{below}.size", 1)
    has_leader = bool(_fields_at(manifest, f"{below}.leaderTemplate"))
    if has_leader:
        yield f"{below}.leaderTemplate", replicas
    yield f"{below}.workerTemplate", replicas * max(size - has_leader, 0)


def _ray(below: str) -> _Counts:
    """A head, and groups of workers of `numOfHosts` pods each."""

    def counts(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
        yield f"{below}.headGroupSpec.template", 1
        for where, group in _items(manifest, f"{below}.workerGroupSpecs"):
            wanted = _number(group, "replicas", _number(group, "minReplicas", 0))
            wanted = max(wanted, _number(group, "minReplicas", 0))
            if _value_at(group, "suspend") is True:
                wanted = 0
            yield f"{where}.template", wanted * _number(group, "numOfHosts", 1)
        if _fields_at(manifest, "spec.submitterPodTemplate"):
            yield "spec.submitterPodTemplate", 1

    return counts


def _ray_added(below: str) -> Callable[[_Fields, str], Iterator[_Fields]]:
    """Beside the head its autoscaler, and a RayJob's submitter (ray-operator/controllers/ray/common/pod.go, job.go)."""

    def added(manifest: _Fields, path: str) -> Iterator[_Fields]:
        if path != f"{below}.headGroupSpec.template":
            return
        if _value_at(manifest, f"{below}.enableInTreeAutoscaling") is True:
            own = _fields_at(manifest, f"{below}.autoscalerOptions.resources")
            yield _container("autoscaler", own or {"requests": {"cpu": "500m", "memory": "512Mi"}})
        if _value_at(manifest, "spec.submissionMode") == "SidecarMode":
            yield _container("ray-job-submitter", _SUBMITTER)

    return added


_SUBMITTER: _Fields = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


def _ray_submitter(manifest: _Fields) -> Iterator[_BuiltPods]:
    """Of a RayJob that a Job of Kubernetes submits, the pod without a template of its own."""
    if _value_at(manifest, "spec.submissionMode") in (None, "", "K8sJobMode") and not _value_at(
        manifest, "spec.submitterPodTemplate"
    ):
        spec = {"restartPolicy": "Never", "containers": [_container("ray-job-submitter", _SUBMITTER)]}
        yield _BuiltPods(part="submitter", path="spec", count=1, spec=spec)


def _container(name: str, resources: _Fields) -> _Fields:
    return {"name": name, "image": f"image-of-{name}", "resources": resources}


def _knative_added(manifest: _Fields, _path: str) -> Iterator[_Fields]:
    """The queue-proxy, with the default of ConfigMap config-deployment."""
    annotations = _fields_at(manifest, "spec.template.metadata.annotations")
    amounts = {
        resource: annotations.get(f"queue.sidecar.serving.knative.dev/{resource}-resource-request")
        for resource in _MEASURED
    }
    yield _container("queue-proxy", {"requests": {"cpu": "25m"} | {key: item for key, item in amounts.items() if item}})


_MEASURED = ("cpu", "memory", "ephemeral-storage")


def _knative(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    """The number of pods with which a revision starts."""
    annotations = _fields_at(manifest, "spec.template.metadata.annotations")

    def scale(name: str, default: int) -> int:
        for key in (f"autoscaling.knative.dev/{name}", f"autoscaling.knative.dev/{name.replace('-s', 'S')}"):
            if (number := parse_int64(str(annotations.get(key) or ""))) is not None and number >= 0:
                return number
        return default

    yield "spec.template", max(scale("min-scale", 0), scale("initial-scale", 1))


def _argo_rollout(manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    if not _fields_at(manifest, "spec.workloadRef"):
        yield "spec.template", _number(manifest, "spec.replicas", 1)


def _notebook(_manifest: _Fields) -> Iterator[tuple[str, int | None]]:
    yield "spec.template", 1


# --- kinds whose operator builds the pods


def _pod_spec(fields: _Fields, requests: _Fields, **more: object) -> _Fields:
    """Build a pod spec with these requests and the placement in `fields`."""
    limits = {name: amount for name, amount in requests.items() if not is_overcommit_allowed(name)}
    resources = {"requests": dict(requests), "limits": limits}
    spec: dict[str, object] = {
        "containers": [{"name": "main", "image": "image-of-its-operator", "resources": resources}]
    }
    placing = ("nodeSelector", "affinity", "tolerations", "priorityClassName", "schedulerName")
    spec |= {key: fields[key] for key in placing if fields.get(key)}
    return spec | {key: value for key, value in more.items() if value}


def _claimed_volumes(fields: _Fields) -> Iterator[_Fields]:
    for _, workspace in _items(fields, "spec.workspaces"):
        if claim := _fields_at(workspace, "persistentVolumeClaim"):
            yield {"name": workspace.get("name"), "persistentVolumeClaim": claim}


def _requests(resources: _Fields) -> _Fields:
    """Return a container's requests; limits replace missing ones."""
    return {**_fields_at(resources, "limits"), **_fields_at(resources, "requests")}


def _spark(manifest: _Fields) -> Iterator[_BuiltPods]:
    """spark.driver and spark.executor: memory with its overhead, cores or coreRequest."""
    is_jvm = str(_value_at(manifest, "spec.type") or "Java") in ("Java", "Scala")
    common = {"nodeSelector": _fields_at(manifest, "spec.nodeSelector")}
    for part, count in (("driver", 1), ("executor", _number(manifest, "spec.executor.instances", 1))):
        fields = _fields_at(manifest, f"spec.{part}")
        factor = _value_at(manifest, "spec.memoryOverheadFactor") or (0.1 if is_jvm else 0.4)
        memory = _jvm_bytes(fields.get("memory") or "1g")
        overhead = _jvm_bytes(fields.get("memoryOverhead")) if fields.get("memoryOverhead") else None
        if overhead is None and memory is not None:
            overhead = max(int(memory * float(cast("float | str", factor))), 384 << 20)
        cpu = fields.get("coreRequest") or fields.get("cores") or 1
        requests = {"cpu": str(cpu), **({} if memory is None else {"memory": str(memory + (overhead or 0))})}
        dynamic = _fields_at(manifest, "spec.dynamicAllocation").get("enabled") is True
        yield _BuiltPods(
            part=part,
            path=f"spec.{part}",
            count=None if dynamic and part == "executor" else count,
            spec=_pod_spec({**common, **fields}, requests),
            labels=_fields_at(fields, "labels"),
        )


def _jvm_bytes(text: object) -> int | None:
    """Parse `512m` and `4g` as mebibytes and gibibytes, as the JVM and Flink do."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", str(text).strip().lower())
    if match is None:
        return None
    power = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}[match.group(2)]
    return int(float(match.group(1)) * 1024**power)


def _flink(manifest: _Fields) -> Iterator[_BuiltPods]:
    """JobManagers, and enough TaskManagers for the job's parallelism."""
    slots = parse_int64(
        str(_fields_at(manifest, "spec.flinkConfiguration").get("taskmanager.numberOfTaskSlots") or "1")
    )
    parallelism = _value_at(manifest, "spec.job.parallelism")
    task_managers: int | None = None
    if isinstance(_value_at(manifest, "spec.taskManager.replicas"), int):
        task_managers = _number(manifest, "spec.taskManager.replicas", 1)
    elif isinstance(parallelism, int) and slots is not None and slots > 0:
        task_managers = -(-parallelism // slots)
    wanted = (("jobManager", _number(manifest, "spec.jobManager.replicas", 1)), ("taskManager", task_managers))
    for part, count in wanted:
        resource = _fields_at(manifest, f"spec.{part}.resource")
        memory = _jvm_bytes(resource.get("memory")) if resource.get("memory") else None
        requests = {"cpu": str(resource.get("cpu") or 1), **({} if memory is None else {"memory": str(memory)})}
        template = {
            **_fields_at(manifest, "spec.podTemplate.spec"),
            **_fields_at(manifest, f"spec.{part}.podTemplate.spec"),
        }
        yield _BuiltPods(part=part.lower(), path=f"spec.{part}", count=count, spec=_pod_spec(template, requests))


def _kubevirt(vm: str) -> Callable[[_Fields], Iterator[_BuiltPods]]:
    """The virt-launcher of a virtual machine whose spec is at `vm`, without the memory that it adds for itself."""

    def build(manifest: _Fields) -> Iterator[_BuiltPods]:
        fields, cpu = _fields_at(manifest, vm), _fields_at(manifest, f"{vm}.domain.cpu")
        resources = _requests(_fields_at(manifest, f"{vm}.domain.resources"))
        cores = math.prod(_number(cpu, key, 1) for key in ("sockets", "cores", "threads"))
        is_dedicated = cpu.get("dedicatedCpuPlacement") is True
        usual = {"cpu": str(cores) if is_dedicated else f"{100 * cores}m", "devices.kubevirt.io/kvm": "1"}
        if (memory := _value_at(manifest, f"{vm}.domain.memory.guest")) is not None:
            usual["memory"] = str(memory)
        placed = {**fields, "nodeSelector": {"kubevirt.io/schedulable": "true", **_fields_at(fields, "nodeSelector")}}
        count = _number(manifest, "spec.replicas", 1)
        yield _BuiltPods(part="", path=vm, count=count, spec=_pod_spec(placed, {**usual, **resources}))

    return build


def _strimzi(*parts: str) -> Callable[[_Fields], Iterator[_BuiltPods]]:
    """Components with `replicas`, `resources`, and `template.pod`."""

    def build(manifest: _Fields) -> Iterator[_BuiltPods]:
        for part in parts:
            fields = _fields_at(manifest, part)
            if not fields or ("replicas" not in fields and part == "spec.kafka"):
                continue  # brokers of a cluster with KafkaNodePools
            spec = _pod_spec(_fields_at(fields, "template.pod"), _requests(_fields_at(fields, "resources")))
            name = part.rpartition(".")[2] if "." in part else ""
            yield _BuiltPods(part=name, path=part, count=_number(fields, "replicas", 1), spec=spec)

    return build


def _cloud_native_pg(manifest: _Fields) -> Iterator[_BuiltPods]:
    affinity = _fields_at(manifest, "spec.affinity")
    placing = {key: affinity.get(key) for key in ("nodeSelector", "tolerations")}
    placing["priorityClassName"] = _value_at(manifest, "spec.priorityClassName")
    labels = {"cnpg.io/cluster": str(_value_at(manifest, "metadata.name") or "")}
    if affinity.get("enablePodAntiAffinity", True) and affinity.get("podAntiAffinityType") == "required":
        key = str(affinity.get("topologyKey") or "kubernetes.io/hostname")
        term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
        placing["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = _pod_spec(placing, _requests(_fields_at(manifest, "spec.resources")))
    count = _number(manifest, "spec.instances", 1)
    yield _BuiltPods(part="instance", path="spec", count=count, spec=spec, labels=labels)


def _zalando(manifest: _Fields) -> Iterator[_BuiltPods]:
    fields = _fields_at(manifest, "spec")
    placing = {
        **fields,
        "priorityClassName": fields.get("podPriorityClassName"),
        "affinity": {key: value for key, value in fields.items() if key == "nodeAffinity"},
    }
    spec = _pod_spec(placing, _requests(_fields_at(fields, "resources")))
    labels = {"cluster-name": str(_value_at(manifest, "metadata.name") or "")}
    yield _BuiltPods(part="", path="spec", count=_number(fields, "numberOfInstances", 1), spec=spec, labels=labels)


def _elastic(main: str, memory: str, label: str, groups: str = "") -> Callable[[_Fields], Iterator[_BuiltPods]]:
    """Components with `count` and `podTemplate`. The container `main` has this memory by default."""

    def build(manifest: _Fields) -> Iterator[_BuiltPods]:
        for path, fields in _items(manifest, groups) if groups else [("spec", _fields_at(manifest, "spec"))]:
            template = _fields_at(fields, "podTemplate.spec")
            written = template.get("containers")
            containers = [item for item in written if isinstance(item, Mapping)] if isinstance(written, list) else []
            own = next((container for container in containers if container.get("name") == main), {"name": main})
            resources = _fields_at(own, "resources")
            own = {**own, "resources": {**resources, "requests": {"memory": memory, **_requests(resources)}}}
            beside = (container for container in containers if container.get("name") != main)
            labels = {
                label: str(_value_at(manifest, "metadata.name") or ""),
                **_fields_at(fields, "podTemplate.metadata.labels"),
            }
            yield _BuiltPods(
                part=str(fields.get("name") or "") if groups else "",
                path=path,
                count=_number(fields, "count", 1),
                spec=_name_containers({**template, "containers": [own, *beside]}),
                labels=labels,
            )

    return build


def _prometheus(manifest: _Fields) -> Iterator[_BuiltPods]:
    """Prometheus and Alertmanager: `spec` has the placement, with the fields of a pod."""
    fields = _fields_at(manifest, "spec")
    count = _number(fields, "replicas", 1) * _number(fields, "shards", 1)
    yield _BuiltPods(
        part="", path="spec", count=count, spec=_pod_spec(fields, _requests(_fields_at(fields, "resources")))
    )


def _inference_service(manifest: _Fields) -> Iterator[_BuiltPods]:
    """Each component is a pod spec. For a model with a serving runtime, only the resources are known."""
    for part in ("predictor", "transformer", "explainer"):
        fields = _fields_at(manifest, f"spec.{part}")
        if not fields:
            continue
        served = [field for field in fields.values() if isinstance(field, Mapping) and "resources" in field]
        containers = fields.get("containers")
        requests = _requests(_fields_at(served[0], "resources")) if served and not containers else {}
        spec = _pod_spec(fields, requests, containers=containers)
        yield _BuiltPods(
            part=part, path=f"spec.{part}", count=max(_number(fields, "minReplicas", 1), 1), spec=_name_containers(spec)
        )


def _name_containers(spec: _Fields) -> _Fields:
    containers = cast("Sequence[_Fields]", spec["containers"])
    named = [{"name": f"container-{index}", "image": "image", **item} for index, item in enumerate(containers)]
    return {**spec, "containers": named}


def _workflow(manifest: _Fields) -> Iterator[_BuiltPods]:
    """The pods of the templates that the entrypoint runs, directly or as steps and tasks. With several, only the
    controller knows which run at the same time; those with the largest requests stand for all."""
    templates = {str(template.get("name")): (where, template) for where, template in _items(manifest, "spec.templates")}
    run = [str(_value_at(manifest, "spec.entrypoint"))]
    for name in run:
        _, template = templates.get(name, ("", {}))
        called = dict.fromkeys(_called(template))
        run += [other for other in called if other in templates and other not in run]
    pods = []
    for where, template in (templates[name] for name in run if name in templates):
        if containers := [*_workflow_containers(template)]:
            spec = _with_parameters(_workflow_pod(manifest, template, containers), manifest, template)
            is_only = len(run) == 1
            part = "" if is_only else str(template.get("name"))
            pods.append(_BuiltPods(part=part, path=where, count=1 if is_only else None, spec=_name_containers(spec)))
    yield from _largest([pod for pod in pods if not _has_placeholders(pod.spec)])


def _workflow_pod(manifest: _Fields, template: _Fields, containers: Sequence[_Fields]) -> _Fields:
    """Return the pod of a template, whose fields replace those of the Workflow; volumes add to them."""
    whole = _fields_at(manifest, "spec")
    fields = {**whole, **{key: value for key, value in template.items() if value}}
    volumes = [volume for owner in (whole, template) for _, volume in _items(owner, "volumes")]
    return _pod_spec(fields, {}, containers=containers, volumes=volumes, resourceClaims=fields.get("resourceClaims"))


def _with_parameters(spec: _Fields, manifest: _Fields, template: _Fields) -> _Fields:
    """Return the pod with the parameters of the Workflow, and with the defaults of the template's own. The inputs of
    the entrypoint are the Workflow's."""
    values: dict[str, object] = {}
    for _, parameter in _items(manifest, "spec.arguments.parameters"):
        values[f"workflow.parameters.{parameter.get('name')}"] = parameter.get("value")
    for _, parameter in _items(template, "inputs.parameters"):
        own = parameter.get("value", parameter.get("default"))
        of_workflow = values.get(f"workflow.parameters.{parameter.get('name')}", own)
        is_entry = template.get("name") == _value_at(manifest, "spec.entrypoint")
        values[f"inputs.parameters.{parameter.get('name')}"] = of_workflow if is_entry else own

    def value_of(found: re.Match[str]) -> str:
        value = values.get(found[1])
        if value is None or isinstance(value, Mapping | list):
            return found[0]
        return str(value).lower() if isinstance(value, bool) else str(value)

    return cast("_Fields", _map_texts(spec, lambda text: _PARAMETER.sub(value_of, text)))


_PARAMETER = lazy_pattern(r"\{\{\s*([\w.-]+)\s*\}\}")


def _map_texts(value: object, change: Callable[[str], str]) -> object:
    """Return the value with all texts in it changed, at any depth, but for keys."""
    if isinstance(value, Mapping):
        return {key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_texts(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def _has_placeholders(spec: _Fields) -> bool:
    """Return whether what decides the pod's placement is known only once its controller runs."""
    deciding = [{**spec, "containers": None}, *(it.get("resources") for _, it in _items(spec, "containers"))]
    return any(mark in str(deciding) for mark in ("{{", "$("))


def _called(template: _Fields) -> Iterator[str]:
    """Yield the templates that a template runs as steps, which are lists of lists, or as tasks."""
    steps = template.get("steps")
    groups = steps if isinstance(steps, list) else ()
    each = (step for group in groups for step in (group if isinstance(group, list) else (group,)))
    for step in (*each, *(task for _, task in _items(template, "dag.tasks"))):
        if isinstance(step, Mapping) and step.get("template"):
            yield str(step["template"])


def _workflow_containers(template: _Fields) -> Iterator[_Fields]:
    own = (template.get(key) for key in ("container", "script"))
    yield from ({"name": "main", **container} for container in own if isinstance(container, Mapping))
    yield from (container for _, container in _items(template, "containerSet.containers"))
    yield from (sidecar for _, sidecar in _items(template, "sidecars"))


def _task_run(manifest: _Fields) -> Iterator[_BuiltPods]:
    """One pod with a container for each step (tektoncd/pipeline, pkg/pod/pod.go)."""
    placed = _fields_at(manifest, "spec.podTemplate")
    task = _fields_at(manifest, "spec.taskSpec")
    if steps := [*_step_containers(task)]:
        if shared := _requests(_fields_at(manifest, "spec.computeResources")):  # divided among the steps
            first, *others = steps
            steps = [{**first, "resources": {"requests": shared}}, *({**it, "resources": {}} for it in others)]
        containers = [*steps, *_sidecar_containers(task)]
        spec = _pod_spec(placed, {}, containers=containers, volumes=[*_claimed_volumes(manifest)])
        if not _has_placeholders(spec):
            yield _BuiltPods(part="", path="spec.taskSpec", count=1, spec=_name_containers(spec))


def _pipeline_run(manifest: _Fields) -> Iterator[_BuiltPods]:
    """The pods of the tasks with a specification of their own, those with the largest requests for all."""
    placed = {**_fields_at(manifest, "spec.podTemplate"), **_fields_at(manifest, "spec.taskRunTemplate.podTemplate")}
    tasks = [*_items(manifest, "spec.pipelineSpec.tasks")]
    pods = []
    for where, task in tasks:
        its = _fields_at(task, "taskSpec")
        if containers := [*_step_containers(its), *_sidecar_containers(its)]:
            spec, part = _name_containers(_pod_spec(placed, {}, containers=containers)), str(task.get("name"))
            count = 1 if len(tasks) == 1 else None
            pods.append(_BuiltPods(part=part, path=f"{where}.taskSpec", count=count, spec=spec))
    yield from _largest([pod for pod in pods if not _has_placeholders(pod.spec)])


def _step_containers(task: _Fields) -> Iterator[_Fields]:
    """Yield a task's steps as containers, with the resources of `stepTemplate` for those without their own."""
    usual = _tekton_resources(_fields_at(task, "stepTemplate"))
    for _, step in _items(task, "steps"):
        yield {**step, "resources": _tekton_resources(step) or usual or {}}


def _sidecar_containers(task: _Fields) -> Iterator[_Fields]:
    for _, sidecar in _items(task, "sidecars"):
        yield {**sidecar, "resources": _tekton_resources(sidecar) or {}}


def _tekton_resources(fields: _Fields) -> object:
    """Return the resources of a step or sidecar; in v1beta1, their field is `resources`."""
    return fields.get("computeResources") or fields.get("resources")


def _largest(pods: Sequence[_BuiltPods]) -> Iterator[_BuiltPods]:
    """Yield the pods that no other one with the same placement covers: they need not run at the same time."""
    kept: list[tuple[int, _Fields, Counter[str]]] = []
    sizes = sorted(((_total(pod.spec), row) for row, pod in enumerate(pods)), key=lambda size: -size[0].total())
    for total, row in sizes:  # a pod is covered only by one whose sum is at least as large
        place = {key: field for key, field in pods[row].spec.items() if key != "containers"}
        if not any(place == other and total <= most for _, other, most in kept):
            kept.append((row, place, total))
    yield from (pods[row] for row, _, _ in sorted(kept, key=lambda item: item[0]))


def _total(spec: _Fields) -> Counter[str]:
    """Return the sum of the containers' requests, those that are no quantities as 0."""
    total: Counter[str] = Counter()
    for _, container in _items(spec, "containers"):
        for name, amount in _requests(_fields_at(container, "resources")).items():
            with suppress(InputError):
                total[name] += resource_amount(name, str(amount))
    return total


_KUBEFLOW = {"TFJob": "tf", "PyTorchJob": "pytorch", "XGBoostJob": "xgb", "PaddleJob": "paddle", "JAXJob": "jax"}

KINDS: Mapping[tuple[str, str], _CustomKind] = {  # the kind with another one's objects first
    ("jobset.x-k8s.io", "JobSet"): _CustomKind(counts=_job_set, label=JOB_SET_NAME),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _CustomKind(counts=_leader_worker_set, label=GROUP_LABELS[0]),
    ("ray.io", "RayCluster"): _CustomKind(counts=_ray("spec"), added=_ray_added("spec"), label=RAY_CLUSTER),
    ("ray.io", "RayJob"): _CustomKind(
        counts=_ray("spec.rayClusterSpec"), build=_ray_submitter, added=_ray_added("spec.rayClusterSpec")
    ),
    ("ray.io", "RayService"): _CustomKind(
        counts=_ray("spec.rayClusterConfig"), added=_ray_added("spec.rayClusterConfig")
    ),
    ("kubeflow.org", "MPIJob"): _CustomKind(counts=_groups("spec.mpiReplicaSpecs")),
    **{
        ("kubeflow.org", kind): _CustomKind(counts=_groups(f"spec.{prefix}ReplicaSpecs"), label=TRAINING_JOB)
        for kind, prefix in _KUBEFLOW.items()
    },
    ("kubeflow.org", "Notebook"): _CustomKind(counts=_notebook),
    ("trainer.kubeflow.org", "TrainJob"): _CustomKind(),
    ("keda.sh", "ScaledJob"): _CustomKind(label="scaledjob.keda.sh/name"),
    ("batch.volcano.sh", "Job"): _CustomKind(counts=_groups("spec.tasks")),
    ("argoproj.io", "Rollout"): _CustomKind(counts=_argo_rollout),
    ("argoproj.io", "Workflow"): _CustomKind(build=_workflow),
    ("tekton.dev", "TaskRun"): _CustomKind(build=_task_run, label="tekton.dev/taskRun"),
    ("tekton.dev", "PipelineRun"): _CustomKind(build=_pipeline_run, label="tekton.dev/pipelineRun"),
    ("workload.codeflare.dev", "AppWrapper"): _CustomKind(counts=_app_wrapper, build=_app_wrapper_built),
    ("serving.kserve.io", "InferenceService"): _CustomKind(
        build=_inference_service, label="serving.kserve.io/inferenceservice"
    ),
    ("serving.knative.dev", "Service"): _CustomKind(
        counts=_knative, added=_knative_added, label="serving.knative.dev/service"
    ),
    ("serving.knative.dev", "Configuration"): _CustomKind(
        counts=_knative, added=_knative_added, label="serving.knative.dev/configuration"
    ),
    ("sparkoperator.k8s.io", "SparkApplication"): _CustomKind(build=_spark, label="sparkoperator.k8s.io/app-name"),
    ("flink.apache.org", "FlinkDeployment"): _CustomKind(build=_flink),
    ("kubernetes.dask.org", "DaskCluster"): _CustomKind(label="dask.org/cluster-name"),
    ("kafka.strimzi.io", "Kafka"): _CustomKind(
        build=_strimzi("spec.kafka", "spec.zookeeper"), label="strimzi.io/cluster"
    ),
    ("kafka.strimzi.io", "KafkaNodePool"): _CustomKind(build=_strimzi("spec"), label="strimzi.io/pool-name"),
    ("kafka.strimzi.io", "KafkaConnect"): _CustomKind(build=_strimzi("spec"), label="strimzi.io/cluster"),
    ("kubevirt.io", "VirtualMachine"): _CustomKind(build=_kubevirt("spec.template.spec"), label="vm.kubevirt.io/name"),
    ("kubevirt.io", "VirtualMachineInstance"): _CustomKind(build=_kubevirt("spec")),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"): _CustomKind(build=_kubevirt("spec.template.spec")),
    ("postgresql.cnpg.io", "Cluster"): _CustomKind(build=_cloud_native_pg),
    ("acid.zalan.do", "postgresql"): _CustomKind(build=_zalando, label="cluster-name"),
    ("elasticsearch.k8s.elastic.co", "Elasticsearch"): _CustomKind(
        build=_elastic("elasticsearch", "2Gi", "elasticsearch.k8s.elastic.co/cluster-name", "spec.nodeSets")
    ),
    ("kibana.k8s.elastic.co", "Kibana"): _CustomKind(build=_elastic("kibana", "1Gi", "kibana.k8s.elastic.co/name")),
    ("monitoring.coreos.com", "Prometheus"): _CustomKind(build=_prometheus, label="prometheus"),
    ("monitoring.coreos.com", "Alertmanager"): _CustomKind(build=_prometheus, label="alertmanager"),
    ("apps.kruise.io", "CloneSet"): _CustomKind(counts=_template_with_replicas()),
    ("apps.kruise.io", "StatefulSet"): _CustomKind(counts=_template_with_replicas()),
    ("apps.openshift.io", "DeploymentConfig"): _CustomKind(counts=_template_with_replicas(), label="deploymentconfig"),
    ("actions.github.com", "AutoscalingRunnerSet"): _CustomKind(
        counts=_runner_set, label="actions.github.com/scale-set-name"
    ),
    ("agones.dev", "GameServerSet"): _CustomKind(
        counts=_template_with_replicas("spec.template.spec.template"), label="agones.dev/gameserverset"
    ),
    ("agones.dev", "Fleet"): _CustomKind(
        counts=_template_with_replicas("spec.template.spec.template", default=0), label="agones.dev/fleet"
    ),
}

_STOPS: Mapping[tuple[str, str], tuple[_Stop, ...]] = {
    ("kubevirt.io", "VirtualMachine"): (
        _Stop(path=("spec", "running"), values=(False,), started=True),
        _Stop(path=("spec", "runStrategy"), values=("Halted",), started="Always"),
        _Stop(path=("spec", "runStrategy"), values=("Manual", "RerunOnFailure"), started="Always", status="Stopped"),
    ),
    ("tekton.dev", "PipelineRun"): (_Stop(path=("spec", "status"), values=("PipelineRunPending",)),),
    ("kubeflow.org", "Notebook"): (_Stop(path=("metadata", "annotations", "kubeflow-resource-stopped")),),
    ("postgresql.cnpg.io", "Cluster"): (
        _Stop(path=("metadata", "annotations", "cnpg.io/hibernation"), values=("on",), started="off"),
    ),
    ("serving.kserve.io", "InferenceService"): (
        _Stop(path=("metadata", "annotations", "serving.kserve.io/stop"), values=("true",), started="false"),
    ),
}
"""Kinds to the fields that stop them."""
