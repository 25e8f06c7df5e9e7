"""Clusters by chance with workloads in every stage of a rollout, and manifests and changes for them."""

from __future__ import annotations

from random import Random

from tests.builders import Manifest, at, node, pod

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
NAMESPACE = "shop"
HOST = "kubernetes.io/hostname"


def machines(dice: Random) -> list[Manifest]:
    count = dice.randint(1, 4)
    return [
        node(f"n{number}", labels={HOST: f"n{number}"}, allocatable={"cpu": "4", "memory": "8Gi", "pods": "6"})
        for number in range(count)
    ]


def template(dice: Random, name: str) -> Manifest:
    cpu = dice.choice(["500m", "1", "2", "3"])
    container: Manifest = {"name": "main", "image": f"{name}:1", "resources": {"requests": {"cpu": cpu}}}
    if dice.random() < 0.2:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec: Manifest = {"containers": [container]}
    if dice.random() < 0.25:
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": name}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def workload(dice: Random, kind: str, name: str, *, replicas: int | None = None) -> Manifest:
    """A manifest as somebody writes it."""
    spec: Manifest = {"template": template(dice, name)}
    if kind != "Job":
        spec["selector"] = {"matchLabels": {"app": name}}
    count = dice.randint(0, 5) if replicas is None else replicas
    share = dice.choice([(1, 0), (0, 1), (1, 1), ("25%", "25%"), (2, 0)])
    match kind:
        case "Deployment":
            spec |= {"replicas": count, "strategy": _strategy(dice, share)}
        case "StatefulSet":
            rolling = {"partition": dice.choice([0, 0, 0, 1, 2])}
            update = dice.choice([{"type": "RollingUpdate", "rollingUpdate": rolling}, {"type": "OnDelete"}])
            policy = dice.choice(["OrderedReady", "Parallel"])
            spec |= {"replicas": count, "serviceName": name, "podManagementPolicy": policy, "updateStrategy": update}
        case "DaemonSet":
            surge = dice.choice([0, 0, 1])
            rolling = {"maxSurge": surge, "maxUnavailable": 0 if surge else dice.choice([1, 2])}
            spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
        case "Job":
            spec |= {"parallelism": max(count, 1), "completions": max(count, 1)}
            of_pod = at(spec, "template")
            of_pod["spec"] = {**of_pod["spec"], "restartPolicy": "Never"}
        case _:
            spec["replicas"] = count
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _strategy(dice: Random, share: tuple[object, object]) -> Manifest:
    if dice.random() < 0.2:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": share[0], "maxUnavailable": share[1]}}


def deployment_in_progress(dice: Random, name: str, hosts: list[str]) -> list[Manifest]:
    """A Deployment whose rollout has come so far: old pods run, new ones wait, run, or are not ready."""
    replicas = dice.randint(1, 4)
    built = workload(dice, "Deployment", name, replicas=replicas)
    metadata, spec = built["metadata"], built["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    metadata["uid"] = name
    old, new = dice.randint(0, replicas), dice.randint(0, 2)
    objects = [built]
    for part, count in (("old", old), ("new", new)):
        its = dict(spec["template"]) if part == "new" else template(dice, name)
        labels = {"app": name, "pod-template-hash": part}
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": name, "controller": True}
        stored = {**its, "metadata": {"labels": labels}}
        own = {"name": f"{name}-{part}", "namespace": NAMESPACE, "uid": f"{name}-{part}", "ownerReferences": [owner]}
        objects.append(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": own,
                "spec": {"replicas": count, "template": stored},
            }
        )
        for number in range(count):
            of = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": own["name"], "uid": own["uid"]}
            host = dice.choice(hosts) if part == "old" or dice.random() < 0.3 else None
            is_ready = "True" if dice.random() < 0.8 else "False"
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": is_ready}]}
            objects.append(
                pod(
                    f"{name}-{part}-{number}",
                    namespace=NAMESPACE,
                    labels=labels,
                    on=host,
                    metadata={
                        "ownerReferences": [{**of, "controller": True}],
                        "creationTimestamp": f"2026-11-20T0{int(part == 'new')}:00:0{number}Z",
                    },
                    status=status if host else {"phase": "Pending"},
                    spec=dict(at(its, "spec")),
                )
            )
    return objects


def ordinals_in_progress(dice: Random, name: str, hosts: list[str]) -> list[Manifest]:
    """A StatefulSet whose update has come so far from the highest ordinal; a pod may be missing, or not ready."""
    replicas = dice.randint(1, 4)
    built = workload(dice, "StatefulSet", name, replicas=replicas)
    built["metadata"] = {**at(built, "metadata"), "uid": name}
    built["status"] = {"updateRevision": "new", "currentRevision": "old"}
    first_new = dice.randint(0, replicas)
    missing = dice.choice([None, None, dice.randint(0, replicas - 1)])
    return [
        built,
        *(
            _of_revision(dice, built, f"{name}-{number}", "new" if number >= first_new else "old", hosts)
            for number in range(replicas)
            if number != missing
        ),
    ]


def daemons_in_progress(dice: Random, name: str, hosts: list[str]) -> list[Manifest]:
    """A DaemonSet whose pods have two generations of its template; a node may lack its pod."""
    built = workload(dice, "DaemonSet", name)
    annotations = {"deprecated.daemonset.template.generation": "2"}
    built["metadata"] = {**at(built, "metadata"), "uid": name, "annotations": annotations}
    there = [host for host in hosts if dice.random() < 0.85]
    return [built, *(_of_revision(dice, built, f"{name}-{host}", dice.choice("12"), [host]) for host in there)]


def _of_revision(dice: Random, manifest: Manifest, name: str, revision: str, hosts: list[str]) -> Manifest:
    kind, owner = str(manifest["kind"]), str(at(manifest, "metadata.name"))
    host = dice.choice(hosts) if kind == "DaemonSet" or dice.random() < 0.8 else None
    is_ready = "True" if dice.random() < 0.8 else "False"
    running: Manifest = {"phase": "Running", "conditions": [{"type": "Ready", "status": is_ready}]}
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
    return pod(
        name,
        namespace=NAMESPACE,
        labels={"app": owner, "controller-revision-hash": revision, "pod-template-generation": revision},
        on=host,
        metadata={"ownerReferences": [reference]},
        status=running if host else {"phase": "Pending"},
        spec=dict(at(manifest, "spec.template.spec")),
    )


def quota(dice: Random) -> list[Manifest]:
    if dice.random() < 0.8:
        return []
    hard = {"pods": str(dice.randint(1, 6))}
    metadata = {"name": "q", "namespace": NAMESPACE}
    return [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}]
