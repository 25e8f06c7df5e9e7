"""Random workloads in every stage of a rollout, with nodes, manifests, and quotas."""

from __future__ import annotations

from random import Random

from tests.builders import Manifest, at, node, pod

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
NAMESPACE = "shop"
HOST = "kubernetes.io/hostname"


def random_nodes(dice: Random) -> list[Manifest]:
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
    """Return a manifest as a user writes it."""
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
            pod_template = at(spec, "template")
            pod_template["spec"] = {**pod_template["spec"], "restartPolicy": "Never"}
        case _:
            spec["replicas"] = count
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _strategy(dice: Random, share: tuple[object, object]) -> Manifest:
    if dice.random() < 0.2:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": share[0], "maxUnavailable": share[1]}}


def deployment_in_progress(dice: Random, name: str, hosts: list[str]) -> list[Manifest]:
    """Return a Deployment during a rollout: old pods run; new ones are pending, running, or not ready."""
    replicas = dice.randint(1, 4)
    manifest = workload(dice, "Deployment", name, replicas=replicas)
    metadata, spec = manifest["metadata"], manifest["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    metadata["uid"] = name
    old, new = dice.randint(0, replicas), dice.randint(0, 2)
    objects = [manifest]
    for part, count in (("old", old), ("new", new)):
        part_template = dict(spec["template"]) if part == "new" else template(dice, name)
        labels = {"app": name, "pod-template-hash": part}
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": name, "controller": True}
        stored = {**part_template, "metadata": {"labels": labels}}
        replica_set_metadata = {
            "name": f"{name}-{part}",
            "namespace": NAMESPACE,
            "uid": f"{name}-{part}",
            "ownerReferences": [owner],
        }
        objects.append(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": replica_set_metadata,
                "spec": {"replicas": count, "template": stored},
            }
        )
        for number in range(count):
            of = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": replica_set_metadata["name"],
                "uid": replica_set_metadata["uid"],
            }
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
                    spec=dict(at(part_template, "spec")),
                )
            )
    return objects


def ordinals_in_progress(dice: Random, name: str, hosts: list[str]) -> list[Manifest]:
    """Return a StatefulSet during an update from the highest ordinal; a pod may be missing or not ready."""
    replicas = dice.randint(1, 4)
    manifest = workload(dice, "StatefulSet", name, replicas=replicas)
    manifest["metadata"] = {**at(manifest, "metadata"), "uid": name}
    manifest["status"] = {"updateRevision": "new", "currentRevision": "old"}
    first_new = dice.randint(0, replicas)
    missing = dice.choice([None, None, dice.randint(0, replicas - 1)])
    return [
        manifest,
        *(
            _of_revision(dice, manifest, f"{name}-{number}", "new" if number >= first_new else "old", hosts)
            for number in range(replicas)
            if number != missing
        ),
    ]


def daemons_in_progress(dice: Random, name: str, hosts: list[str]) -> list[Manifest]:
    """Return a DaemonSet whose pods have two generations of its template; a node may lack its pod."""
    manifest = workload(dice, "DaemonSet", name)
    annotations = {"deprecated.daemonset.template.generation": "2"}
    manifest["metadata"] = {**at(manifest, "metadata"), "uid": name, "annotations": annotations}
    hosts_with_pod = [host for host in hosts if dice.random() < 0.85]
    return [
        manifest,
        *(_of_revision(dice, manifest, f"{name}-{host}", dice.choice("12"), [host]) for host in hosts_with_pod),
    ]


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
