"""Values in annotations, names, and events that no controller writes: every question has an answer all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, autoscaler_status, config_map, node, pod
from tests.cli.manifests import NODE, changed, small_pod, write
from tests.command import kschedx
from tests.kueue.objects import cohort, flavor, local, queue, workload

LONG = "9" * 5_000
"""More digits than Python converts."""
GROUP = "pod-group-total-count"


def annotated(manifest: Manifest, **annotations: str) -> Manifest:
    return changed(manifest, "metadata.annotations", annotations)


def of_scheduler(name: str, **labels: str) -> Manifest:
    return changed(changed(small_pod("p"), "spec.schedulerName", name), "metadata.labels", labels)


def grouped(total: str) -> tuple[Manifest, ...]:
    labels = {"kueue.x-k8s.io/queue-name": "q", "kueue.x-k8s.io/pod-group-name": "g"}
    gated = changed(small_pod("p"), "spec.schedulingGates", [{"name": "kueue.x-k8s.io/admission"}])
    return NODE, changed(annotated(gated, **{f"kueue.x-k8s.io/{GROUP}": total}), "metadata.labels", labels)


def kai(limit: str) -> tuple[Manifest, ...]:
    resources = {"cpu": {"limit": limit, "quota": "1"}, "gpu": {"limit": limit, "quota": limit}}
    queue: Manifest = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}}
    asking = of_scheduler("kai-scheduler", **{"kai.scheduler/queue": "q"})
    return NODE, asking, {**queue, "spec": {"resources": resources}}


def yunikorn(text: str) -> tuple[Manifest, ...]:
    config = config_map("yunikorn-configs", {"queues.yaml": text}, namespace="yunikorn")
    return NODE, of_scheduler("yunikorn", queue="root.a", applicationId="x"), config


def hami(register: str) -> tuple[Manifest, ...]:
    return annotated(NODE, **{"hami.io/node-nvidia-register": register}), of_scheduler("hami-scheduler")


def koordinator(operator: str) -> tuple[Manifest, ...]:
    selector = {"matchExpressions": [{"key": "a", "operator": operator, "values": ["x"]}]}
    reservation: Manifest = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "r"},
        "spec": {"owners": [{"labelSelector": selector}]},
    }
    return NODE, of_scheduler("koord-scheduler"), reservation


def replica_set(**spec: object) -> Manifest:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": small_pod("w")["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template, **spec},
        "status": {"replicas": 0},
    }


def refused(message: str, kind: str = "ReplicaSet", version: str = "apps/v1") -> Manifest:
    about = {"apiVersion": version, "kind": kind, "name": "w", "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "w.1", "namespace": "default"},
        "involvedObject": about,
        "reason": "FailedCreate",
        "message": message,
    }


def stateful(ordinal: str) -> tuple[Manifest, ...]:
    meta = {"name": "db", "namespace": "default"}
    labels = {"app": "db", "controller-revision-hash": "db-1"}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": small_pod("db", "30")["spec"]}
    update = {"type": "RollingUpdate", "rollingUpdate": {"partition": 5}}
    spec = {"selector": {"matchLabels": {"app": "db"}}, "template": template, "updateStrategy": update}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    its = changed(small_pod(f"db-{ordinal}", "30"), "metadata.ownerReferences", [owner])
    status = {"updateRevision": "db-2"}
    own: Manifest = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec, "status": status}
    return NODE, own, changed(its, "metadata.labels", labels)


def knative(scale: str) -> tuple[Manifest, ...]:
    template = {"metadata": {"annotations": {"autoscaling.knative.dev/min-scale": scale}}, "spec": POD_SPEC}
    meta = {"name": "k", "namespace": "default"}
    return NODE, {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"template": template},
    }


POD_SPEC = small_pod("x")["spec"]
BOMB = "partitions:\n- queues:\n  - &a {name: root}\n" + "".join(
    f"  - &{name} {{name: root, queues: [{', '.join([f'*{before}'] * 12)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
ANSWERED = {
    "a group of more pods than memory holds": (grouped("1000000000"), "pod/p", "create 999,999,999 more pods"),
    "a group of a number beyond int64": (grouped("9" * 30), "pod/p", "once admitted"),
    "a group of a number that Python refuses": (grouped(LONG), "pod/p", "once admitted"),
    "a limit that is no number": (kai("NaN"), "pod/p", "queue"),
    "a limit without end": (kai("Infinity"), "pod/p", "queue"),
    "a limit of a billion digits": (kai("1e999999999"), "pod/p", "queue"),
    "queues with an impossible date": (yunikorn("partitions: 2026-13-45"), "pod/p", "root.a"),
    "queues with an impossible number": (yunikorn("partitions: [!!int x]"), "pod/p", "root.a"),
    "queues of very many aliases": (yunikorn(BOMB), "pod/p", "root.a"),
    "a device with a raised digit": (hami("GPU-1,10,²,100,A100,0,true:"), "pod/p", "HAMi"),
    "a reservation with an unknown operator": (koordinator("Near"), "pod/p", "Koordinator"),
    "a ratio of zero": (
        (NODE, replica_set(), refused('pods "w" is forbidden: cpu max limit to request ratio per Container is 0, x')),
        "rs/w",
        "within the LimitRange",
    ),
    "an ordinal with a raised digit": (stateful("²"), "db-²", "lacks 26 CPU"),
    "a scale of many digits": (knative(LONG), "ksvc/k", "1 pod of its template"),
    "a group whose StatefulSet has no spec": (
        (
            NODE,
            changed(small_pod("g-0-1", "9"), "metadata.labels", {
                "leaderworkerset.sigs.k8s.io/name": "g", "leaderworkerset.sigs.k8s.io/group-index": "0",
            }),
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "g-0", "namespace": "default"}},
        ),
        "g-0-1",
        "lacks 5 CPU",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "target", "said"), ANSWERED.values(), ids=ANSWERED)
@pytest.mark.parametrize("form", [(), ("-o", "json")], ids=["screen", "document"])
def test_odd_values_have_an_answer(
    objects: tuple[Manifest, ...], target: str, said: str, form: tuple[str, ...], tmp_path: Path
) -> None:
    result = kschedx("why", target, "-s", write(tmp_path, *objects), *form)
    assert result.code in (0, 1, 3), result.err
    assert "internal error" not in result.err
    assert form or said in " ".join(result.out.split())


@pytest.mark.parametrize("text", ["partitions: 2026-13-45", "partitions: [!!int x]", BOMB])
def test_an_invalid_document_in_a_config_map_is_left_out_of_an_anonymous_snapshot(text: str, tmp_path: Path) -> None:
    result = kschedx("snapshot", "--anonymize", "-o", "-", "-s", write(tmp_path, *yunikorn(text)))
    assert result.code == 0, result.err
    assert '"kind":"Node"' in result.out


@pytest.mark.parametrize("boost", ["²", "+-5", LONG])
def test_an_invalid_priority_boost_counts_as_none(boost: str, tmp_path: Path) -> None:
    gates = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nfeatureGates: {PriorityBoost: true}\n"
    settings = config_map("kueue-manager-config", {"controller_manager_config.yaml": gates}, namespace="kueue-system")
    boosted = annotated(workload("w"), **{"kueue.x-k8s.io/priority-boost": boost})
    namespace: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
    files = write(tmp_path, NODE, settings, namespace, flavor(), queue("q"), local("q"), boosted)
    result = kschedx("kueue", "-s", files)
    assert "ml/w (priority 0): Kueue admits it" in result.out, result.err


def test_a_tree_of_very_many_cohorts_is_undecided(tmp_path: Path) -> None:
    cohorts = [cohort(f"c{number}", parentName=f"c{number + 1}") for number in range(1_500)]
    files = write(tmp_path, NODE, flavor(), queue("q", cohortName="c0"), local("q"), workload("w"), *cohorts)
    result = kschedx("kueue", "-s", files)
    assert (result.code, result.err) == (3, "error: kschedx evaluates at most 200 levels of Kueue's cohorts\n")


def test_an_autoscaler_of_itself_has_no_pods(tmp_path: Path) -> None:
    meta = {"name": "h", "namespace": "default"}
    scaled = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "h"}
    spec = {"scaleTargetRef": scaled, "maxReplicas": 3}
    own: Manifest = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}
    result = kschedx("why", "hpa/h", "-s", write(tmp_path, NODE, own))
    assert result.code == 2
    assert "scales HorizontalPodAutoscaler h, which has no pods of its own" in result.err


def test_a_pod_security_version_of_many_digits_is_the_latest(tmp_path: Path) -> None:
    prefix = "pod-security.kubernetes.io/enforce"
    namespace = changed(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        "metadata.labels",
        {prefix: "restricted", f"{prefix}-version": f"v1.{LONG}"},
    )
    result = kschedx("why", write(tmp_path, small_pod("p"), name="pod.yaml"), "-s", write(tmp_path, NODE, namespace))
    assert result.code == 1
    assert 'violates PodSecurity "restricted:latest"' in " ".join(result.out.split())


INJECTED = "x; rm -rf ~"
CONSTRAINT = "security context constraint: would validate successfully against the `{0}`"


@pytest.mark.parametrize(
    ("objects", "target"),
    [
        ((NODE, replica_set(), refused(CONSTRAINT.format(INJECTED))), "rs/w"),
        ((NODE, replica_set(), refused(CONSTRAINT.format("{x}"))), "rs/w"),
        (
            (
                NODE,
                annotated(small_pod("p", "9"), **{"autoscaling.x-k8s.io/consume-provisioning-request": INJECTED}),
                autoscaler_status("autoscalerStatus: Running\nclusterWide: {}\nnodeGroups: []\n"),
            ),
            "pod/p",
        ),
    ],
    ids=["a constraint", "a constraint with braces", "a ProvisioningRequest"],
)  # fmt: skip
def test_a_name_that_is_none_is_in_no_command(objects: tuple[Manifest, ...], target: str, tmp_path: Path) -> None:
    result = kschedx("why", target, "-s", write(tmp_path, *objects))
    commands = [line.strip() for line in result.out.splitlines() if line.strip().startswith("$ ")]
    assert any(line.startswith("$ # no command") for line in commands), result.out + result.err
    assert not any("rm -rf" in line for line in commands if not line.startswith("$ # "))


def test_a_job_controller_tries_again_within_a_minute(tmp_path: Path) -> None:
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "5"}},
        "status": {"hard": {"pods": "5"}, "used": {"pods": "0"}},
    }
    job: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"template": {"spec": POD_SPEC}},
    }
    message = (
        'Error creating: pods "w" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5'
    )
    for own, event, most in (
        (job, refused(message, "Job", "batch/v1"), "1 minute"),
        (replica_set(), refused(message), "17 minutes"),
    ):
        result = kschedx("why", f"{str(own['kind']).lower()}/w", "-s", write(tmp_path, NODE, quota, own, event))
        assert f"wait up to {most} for its controller's next attempt" in result.out


def test_an_absent_value_is_a_place_for_a_change(tmp_path: Path) -> None:
    bare = changed(small_pod("p"), "spec.nodeSelector", None)
    files = (
        write(tmp_path, bare, name="pod.yaml"),
        "-s",
        write(tmp_path, node("a"), node("b", labels={"disk": "ssd"})),
    )
    result = kschedx("why", *files, "--try", "spec.nodeSelector.disk=ssd", "-o", "json")
    assert json.loads(result.out)["bestNodes"] == ["b"]
    patch = tmp_path / "patch.json"
    patch.write_text('[{"op": "add", "path": "/spec/containers/²", "value": {}}]', encoding="utf-8")
    assert (
        kschedx("why", *files, "--try", patch).err == f"error: --try {patch}: there is nothing at /spec/containers/²\n"
    )


def test_errors_show_no_values_of_environments(tmp_path: Path) -> None:
    written = changed(small_pod("p"), "metadata", {"name": "p"})
    secret = changed(written, "spec.containers.0.env", [{"name": "PIN", "value": 90210}])
    result = kschedx("why", write(tmp_path, secret, name="pod.yaml"), "-s", write(tmp_path, NODE))
    assert "env[0].value: expected a string, found a whole number (quote it to make it a string)" in result.err
    assert "90210" not in result.err
    probe = {"httpGet": {"port": 80, "httpHeaders": [{"name": "Authorization", "value": 90210}]}}
    secret = changed(written, "spec.containers.0.livenessProbe", probe)
    result = kschedx("why", write(tmp_path, secret, name="pod.yaml"), "-s", write(tmp_path, NODE))
    assert "httpHeaders[0].value: expected a string, found a whole number" in result.err


def test_a_refused_change_of_a_job_shows_no_template(tmp_path: Path) -> None:
    def job(image: str) -> Manifest:
        spec = {"containers": [{"name": "c", "image": image, "env": [{"name": "P", "value": "hunter2"}]}]}
        template = {"spec": {"restartPolicy": "Never", **spec}}
        meta = {"name": "w", "namespace": "default"}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}

    stored = changed(job("a"), "metadata.uid", "u")
    result = kschedx("why", write(tmp_path, job("b"), name="job.yaml"), "-s", write(tmp_path, NODE, stored))
    assert "spec.template: Invalid value: …: field is immutable" in " ".join(result.out.split())
    assert "hunter2" not in result.out


def outage(*, ready_moves: bool) -> tuple[Manifest, ...]:
    """Return a pod on `a` that preempts another on `b`; a pod of the victim's workload is on `c`."""
    small = {"cpu": "2", "memory": "8Gi", "pods": "110"}

    def replica(name: str, on: str, priority: int, *, is_ready: bool) -> Manifest:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name[:-2], "uid": name[:-2], "controller": True}
        its = changed(changed(small_pod(name, "2"), "spec.nodeName", on), "spec.priority", priority)
        ready = {"type": "Ready", "status": "True" if is_ready else "False"}
        its = changed(its, "status", {"phase": "Running", "conditions": [ready]})
        return changed(its, "metadata.ownerReferences", [owner])

    def workload(name: str, replicas: int, priority: int) -> Manifest:
        spec = {**small_pod("x", "2")["spec"], "priority": priority}  # type: ignore[dict-item] # nested maps have no types
        own = replica_set(replicas=replicas, template={"metadata": {"labels": {"app": "w"}}, "spec": spec})
        return changed(changed(own, "metadata.name", name), "metadata.uid", name)

    nodes = (node(name, allocatable=small) for name in "abc")
    return (
        *nodes,
        workload("hi", 1, 1000),
        workload("web", 2, 0),
        replica("hi-1", "a", 1000, is_ready=True),
        replica("web-1", "b", 0, is_ready=ready_moves),
        replica("web-2", "c", 5, is_ready=not ready_moves),
    )


@pytest.mark.parametrize(("ready_moves", "state"), [(True, "down"), (False, "pending")])
def test_a_preempted_pod_that_was_not_ready_does_not_end_its_workload(
    ready_moves: bool, state: str, tmp_path: Path
) -> None:
    result = kschedx("survive", "a", "-s", write(tmp_path, *outage(ready_moves=ready_moves)), "-o", "json")
    [failure] = json.loads(result.out)["failures"]
    assert {loss["name"]: loss["state"] for loss in failure["workloads"]}["web"] == state


def test_an_outage_names_as_many_nodes_as_there_are(tmp_path: Path) -> None:
    cluster = write(tmp_path, node("a"), node("b"), pod("p", on="a"))
    assert "outage of the busiest 2 nodes (a, b)" in kschedx("survive", "--busiest", "30", "-s", cluster).out


def test_an_autoscaler_ignores_a_daemon_set_without_a_pod_template(tmp_path: Path) -> None:
    cluster = Path(__file__).parents[2] / "fixtures/autoscaler-grows/cluster.yaml"
    abridged: Manifest = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a", "namespace": "b"}}
    (tmp_path / "c.yaml").write_text(f"{cluster.read_text(encoding='utf-8')}\n---\n{json.dumps(abridged)}\n")
    result = kschedx("why", "pod/search-1", "-n", "shop", "-s", str(tmp_path / "c.yaml"))
    assert "cluster-autoscaler adds a node of group" in result.out, result.err


@pytest.mark.parametrize(("value", "pods"), [("3", 3), ("3.0", 3), ("2e0", 2)])
def test_a_whole_number_may_be_written_with_a_fraction(value: str, pods: int, tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": small_pod("p")["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    web: Manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    cluster = write(tmp_path, NODE, web)
    result = kschedx("simulate", "-s", cluster, "--set", f"deploy/web:spec.replicas={value}")
    assert f"{pods} of {pods}" in result.out
    result = kschedx("simulate", "-s", cluster, "--set", f"deploy/web:spec.replicas={'[' * 3_000}{']' * 3_000}")
    assert "spec.replicas: expected a whole number" in result.err
