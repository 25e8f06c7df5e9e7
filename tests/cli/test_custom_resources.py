"""Custom resources of a dump are answered for all their pods, existing or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, at, node, pod
from tests.cli.manifests import changed
from tests.command import CommandResult, kschedx

POD_SPEC: Manifest = {"containers": [{"name": "w", "image": "x", "resources": {"requests": {"cpu": "3"}}}]}
TEMPLATE: Manifest = {"spec": POD_SPEC}
JOB_SET: Manifest = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "llm", "namespace": "ml"},
    "spec": {
        "replicatedJobs": [
            {"name": "head", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": TEMPLATE}}},
            {"name": "worker", "replicas": 1, "template": {"spec": {"parallelism": 3, "template": TEMPLATE}}},
        ]
    },
}
KNATIVE: Manifest = {
    "apiVersion": "serving.knative.dev/v1",
    "kind": "Service",
    "metadata": {"name": "llm", "namespace": "ml"},
    "spec": {"template": TEMPLATE},
}
VOLCANO: Manifest = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "llm", "namespace": "ml"},
    "spec": {"tasks": [{"name": "w", "replicas": 2, "template": TEMPLATE}]},
}


def condition(kind: str, status: str, message: str) -> Manifest:
    return {"conditions": [{"type": kind, "status": status, "reason": "Told", "message": message}]}


def run_why(folder: Path, *command: str, objects: list[Manifest]) -> CommandResult:
    nodes = [node(name, allocatable={"cpu": "4", "memory": "8Gi", "pods": "20"}) for name in ("a", "b")]
    (folder / "dump.json").write_text(json.dumps({"kind": "List", "items": [*nodes, *objects]}))
    return kschedx(*command, "-n", "ml", "-s", "dump.json", cwd=folder, columns=200)


def test_a_pod_that_another_pod_of_the_resource_owns_counts(tmp_path: Path) -> None:
    """A leader of a LeaderWorkerSet owns the StatefulSet of its workers, a driver of Spark its executors."""

    def owner(kind: str, name: str) -> Manifest:
        return {"ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": True}]}

    driver = pod("driver", namespace="ml", on="a", metadata=owner("SparkApplication", "etl"))
    executor = pod("exec-1", namespace="ml", metadata=owner("Pod", "driver"), spec={**POD_SPEC, "nodeName": ""})
    result = run_why(tmp_path, "why", "sparkapplication/etl", objects=[driver, executor])
    assert "ml/exec-1" in result.out.splitlines()[0]


def test_pods_with_the_label_of_the_resource_count(tmp_path: Path) -> None:
    """Between a Service of Knative and its pods, a Configuration and a Revision are often not in the dump."""

    def owned(kind: str, name: str, version: str = "apps/v1", **labels: str) -> Manifest:
        owner = {"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": True}
        return {"ownerReferences": [owner], "labels": {"serving.knative.dev/service": "llm", **labels}}

    template = {**TEMPLATE, "metadata": {"labels": {"app": "llm"}}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "llm"}}, "template": template}
    large = {"containers": [{"name": "w", "image": "x", "resources": {"requests": {"cpu": "5"}}}]}
    revision = owned("Revision", "llm-00001", "serving.knative.dev/v1")
    deployment = {"name": "llm-00001", "namespace": "ml", **revision}
    objects: list[Manifest] = [
        KNATIVE,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": deployment, "spec": spec},
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "llm-00001-a", "namespace": "ml", **owned("Deployment", "llm-00001")},
            "spec": spec,
        },
        pod("llm-0", namespace="ml", metadata=owned("ReplicaSet", "llm-00001-a", app="llm"), spec=large),
    ]
    result = run_why(tmp_path, "why", "ksvc/llm", objects=objects)
    assert result.out.startswith("✗ ml/llm-0 is unschedulable")
    assert "change it in Service llm, which may revert Deployment llm-00001" in result.out


def test_a_scaled_job_is_answered_for_its_template(tmp_path: Path) -> None:
    scaled: Manifest = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledJob",
        "metadata": {"name": "work", "namespace": "ml"},
        "spec": {"jobTargetRef": {"template": {"spec": {**POD_SPEC, "nodeSelector": {"pool": "jobs"}}}}},
    }
    result = run_why(tmp_path, "why", "scaledjob/work", objects=[scaled])
    assert result.out.startswith("✗ ml/work-new is unschedulable: 0 of 2 nodes fit")
    made = pod("work-x", namespace="ml", metadata={"labels": {"scaledjob.keda.sh/name": "work"}}, spec=POD_SPEC)
    assert run_why(tmp_path, "why", "scaledjob/work", objects=[scaled, made]).out.startswith("✓ ml/work-x")


@pytest.mark.parametrize("is_of_job", [True, False])
def test_an_exclusive_topology_leaves_open_whether_all_pods_fit(tmp_path: Path, is_of_job: bool) -> None:
    exclusive = {"annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}}
    job = {**(({"metadata": exclusive}) if is_of_job else {}), "spec": {"parallelism": 1, "template": TEMPLATE}}
    jobs = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": job}]}
    named = {**at(JOB_SET, "metadata"), **({} if is_of_job else exclusive)}
    result = run_why(tmp_path, "why", "jobset/llm", objects=[{**JOB_SET, "metadata": named, "spec": jobs}])
    assert (result.code, "each Job needs a rack of its own (exclusive topology)" in result.out) == (3, True)


@pytest.mark.parametrize("target", [["jobset/llm"], ["jobset", "llm"], ["jobsets.jobset.x-k8s.io/llm"], ["js/llm"]])
def test_every_pod_of_a_custom_resource_counts(tmp_path: Path, target: list[str]) -> None:
    result = run_why(tmp_path, "why", *target, objects=[JOB_SET])
    assert (result.code, result.out.splitlines()[0]) == (1, "✗ 4 pods: 2 can be scheduled, 2 unschedulable")
    assert "more      kschedx why jobset/llm -n ml -s dump.json" in result.out


@pytest.mark.parametrize(
    ("metadata", "least", "headline"),
    [
        ({}, 3, "autoscalingrunnerset/ci: 2 of 3 pods can be scheduled, 1 stays pending"),
        ({}, 0, "only the controller of AutoscalingRunnerSet knows how many pods it creates"),
        ({"uid": "u"}, 3, "only the controller of AutoscalingRunnerSet knows how many pods it creates"),
    ],
)
def test_the_runners_that_always_exist_count(tmp_path: Path, metadata: Manifest, least: int, headline: str) -> None:
    """Those of a stored set belong to EphemeralRunners, which no dump has."""
    runner_set: Manifest = {
        "apiVersion": "actions.github.com/v1alpha1",
        "kind": "AutoscalingRunnerSet",
        "metadata": {"name": "ci", "namespace": "ml", **metadata},
        "spec": {"minRunners": least, "template": TEMPLATE},
    }
    (tmp_path / "set.json").write_text(json.dumps(runner_set))
    assert headline in run_why(tmp_path, "why", "set.json", objects=[]).out.splitlines()[0]


@pytest.mark.parametrize(("replicas", "code"), [(2, 3), (3, 1), (0, 0)])
def test_an_unknown_resource_has_the_replicas_beside_its_template(tmp_path: Path, replicas: int, code: int) -> None:
    manifest = {"apiVersion": "acme.io/v1", "kind": "WebApp", "metadata": {"name": "llm", "namespace": "ml"}}
    (tmp_path / "app.json").write_text(json.dumps({**manifest, "spec": {"replicas": replicas, "template": TEMPLATE}}))
    result = run_why(tmp_path, "why", "app.json", objects=[])
    first = {
        2: "? ml/webapp/llm: both pods can be scheduled; only the controller of WebApp knows how many pods it creates",
        3: "✗ ml/webapp/llm: 2 of 3 pods can be scheduled, 1 stays pending",
        0: "‖ ml/webapp/llm is scaled to zero: spec.replicas is 0; otherwise its pod would be assigned to one of 2",
    }
    assert (result.code, result.out.splitlines()[0].startswith(first[replicas])) == (code, True)


@pytest.mark.parametrize(
    ("target", "manifest", "code", "headline"),
    [
        (
            "ksvc/llm",
            {**KNATIVE, "status": condition("Ready", "False", "exceeded quota: dev")},
            1,
            "✗ ml/service.serving.knative.dev/llm gets no new pods: its controller reports a problem",
        ),
        (
            "vcjob/llm",
            {**VOLCANO, "status": {"phase": "Failed", "message": 'pods "llm-0" is forbidden: exceeded quota: dev'}},
            1,
            "✗ ml/job.batch.volcano.sh/llm gets no pods: ResourceQuota refuses them",
        ),
        (
            "jobset/llm",
            {**JOB_SET, "status": condition("Completed", "True", "all jobs have succeeded")},
            0,
            "✓ ml/jobset/llm has finished: Completed",
        ),
        (
            "vcjob/llm",
            {**VOLCANO, "status": {"state": {"phase": "Aborted"}}},
            1,
            "✗ ml/job.batch.volcano.sh/llm has failed: Aborted",
        ),
        ("jobset/llm", {**JOB_SET, "spec": {**at(JOB_SET, "spec"), "suspend": True}}, 1, "✗ 4 pods are suspended"),
    ],
)
def test_a_condition_of_the_controller_comes_first(
    tmp_path: Path, target: str, manifest: Manifest, code: int, headline: str
) -> None:
    result = run_why(tmp_path, "why", target, objects=[manifest])
    assert (result.code, result.out.partition("; otherwise")[0].splitlines()[0]) == (code, headline)


def test_a_controller_that_reports_an_unschedulable_pod_leaves_the_pod_as_the_answer(tmp_path: Path) -> None:
    message = 'Revision "llm-1" failed with message: 0/2 nodes are available: 2 Insufficient cpu.'
    large = changed(KNATIVE, "spec.template.spec.containers.0.resources", {"requests": {"cpu": "7"}})
    failed = {**large, "status": condition("Ready", "False", message)}
    result = run_why(tmp_path, "why", "ksvc/llm", objects=[failed])
    assert (result.code, result.out.splitlines()[0]) == (1, "✗ ml/llm-new is unschedulable: 0 of 2 nodes fit")
    assert "of container w from 7" in result.out
    fits = run_why(tmp_path, "why", "ksvc/llm", objects=[{**KNATIVE, "status": condition("Ready", "False", message)}])
    assert "gets no new pods: its controller reports a problem" in fits.out


def _group_of_volcano(phase: str) -> Manifest:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "llm", "uid": "u", "controller": True}
    metadata = {"name": "llm-1", "namespace": "ml", "ownerReferences": [owner]}
    api = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api, "kind": "PodGroup", "metadata": metadata, "spec": {}, "status": {"phase": phase}}


OF_QUEUE = changed(changed(JOB_SET, "spec.suspend", True), "metadata.labels", {"kueue.x-k8s.io/queue-name": "q"})
OF_NO_QUEUE: Manifest = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "Workload",
    "metadata": {"name": "bare", "namespace": "ml"},
    "spec": {"queueName": "none", "podSets": [{"name": "Main", "count": 2, "template": TEMPLATE}]},
}


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([VOLCANO, _group_of_volcano("Pending")], "ml/llm (Job.batch.volcano.sh) × 2"),
        ([VOLCANO, _group_of_volcano("Completed")], ""),
        ([VOLCANO], ""),
        ([OF_QUEUE], "ml/llm (JobSet) × 4"),
        ([changed(JOB_SET, "spec.suspend", True)], ""),
        ([OF_NO_QUEUE], "ml/bare (Workload) × 2"),
        ([{**KNATIVE, "status": condition("Ready", "False", "exceeded quota: dev")}], "ml/llm (Service.serving"),
        ([{**KNATIVE, "status": condition("Ready", "True", "")}], ""),
    ],
)
def test_a_list_has_the_custom_resources_that_are_kept_from_having_pods(
    tmp_path: Path, objects: list[Manifest], text: str
) -> None:
    running = pod("other", namespace="ml", on="a", spec={**POD_SPEC, "nodeName": "a"})
    result = run_why(tmp_path, "why", "--all-pending", objects=[*objects, running])
    assert (result.code != 0, text in result.out) == (bool(text), True)


def test_a_list_names_an_invalid_template_instead_of_ending(tmp_path: Path) -> None:
    wrong = changed(OF_NO_QUEUE, "spec.podSets.0.template.spec.containers.0.resources.limits", {"cpu": "1"})
    running = pod("other", namespace="ml", on="a", spec={**POD_SPEC, "nodeName": "a"})
    result = run_why(tmp_path, "why", "--all-pending", objects=[wrong, running])
    assert (result.code, "must be less than or equal to cpu limit of 1" in result.out) == (1, True)


def test_a_list_has_the_fix_of_pods_of_another_scheduler(tmp_path: Path) -> None:
    waiting = [pod(name, namespace="ml", spec={**POD_SPEC, "schedulerName": "volcano"}) for name in ("a", "b")]
    system = pod("dns", namespace="kube-system", on="a", spec={**POD_SPEC, "nodeName": "a"})
    result = run_why(tmp_path, "why", "--all-pending", objects=[*waiting, system])
    assert result.code == 3
    assert "fix       install Volcano, or recreate the pod with schedulerName default-scheduler\n" in result.out


def test_kinds_of_the_same_name_differ_by_group(tmp_path: Path) -> None:
    result = run_why(tmp_path, "why", "job.batch.volcano.sh/llm", objects=[VOLCANO])
    assert (result.code, "scheduled by Volcano" in result.out.splitlines()[0]) == (3, True)


def test_pods_that_exist_are_the_answer(tmp_path: Path) -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "llm", "uid": "j", "controller": True}
    member = pod("llm-worker-0", namespace="ml", metadata={"ownerReferences": [owner]}, spec=POD_SPEC)
    result = run_why(tmp_path, "why", "jobset/llm", objects=[JOB_SET, member])
    assert (result.code, result.out.startswith("✓ ml/llm-worker-0 would be assigned")) == (0, True)


def test_pods_are_counted_for_the_custom_resource_that_owns_their_replica_sets(tmp_path: Path) -> None:
    def owned(kind: str, group: str, name: str) -> Manifest:
        owner = {"apiVersion": f"{group}/v1", "kind": kind, "name": name, "uid": name, "controller": True}
        return {"ownerReferences": [owner]}

    sets: list[Manifest] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"web-{item}", "namespace": "ml", **owned("Rollout", "argoproj.io", "web")},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"of": item}}, "template": TEMPLATE},
        }
        for item in ("old", "new")
    ]
    pods = [
        pod(f"web-{item}-x", on=on, namespace="ml", metadata=owned("ReplicaSet", "apps", f"web-{item}"), spec=POD_SPEC)
        for item, on in (("old", "a"), ("new", None))
    ]
    blocker = pod("other", on="b", namespace="ml", spec=POD_SPEC)
    result = run_why(tmp_path, "simulate", objects=[*sets, *pods, blocker])
    assert (result.code, "✗ ml/rollout/web  1 of 2 assigned · 1 pending" in result.out) == (1, True)


def test_a_pod_group_stands_for_its_members(tmp_path: Path) -> None:
    group: Manifest = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "ml"},
        "spec": {"minMember": 2},
    }
    marks: Manifest = {"annotations": {"scheduling.k8s.io/group-name": "gang"}}
    members = [pod(name, namespace="ml", metadata=marks, schedulerName="volcano") for name in ("a", "b")]
    for target in ("podgroup/gang", "pg/gang", "podgroups.scheduling.volcano.sh/gang"):
        result = run_why(tmp_path, "why", target, objects=[group, *members])
        assert (result.code, "ml/gang" in result.out) == (3, True), target
    assert run_why(tmp_path, "why", "podgroup/gone", objects=[group, *members]).code == 2


def test_a_pod_group_without_pods_stands_for_its_job(tmp_path: Path) -> None:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "llm", "uid": "1", "controller": True}
    group: Manifest = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "llm-1", "namespace": "ml", "ownerReferences": [owner]},
        "spec": {"minMember": 1},
        "status": {"phase": "Pending"},
    }
    result = run_why(tmp_path, "why", "podgroup/llm-1", objects=[group, VOLCANO])
    assert (result.code, "scheduled by Volcano" in result.out.splitlines()[0]) == (3, True)


def test_every_pending_pod_of_a_running_custom_resource_counts(tmp_path: Path) -> None:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "llm", "uid": "1", "controller": True}
    owned: Manifest = {"ownerReferences": [owner]}
    runs = pod("llm-head", namespace="ml", on="a", metadata=owned, spec=POD_SPEC)
    waiting = [pod(f"llm-w-{number}", namespace="ml", metadata=owned, spec=POD_SPEC) for number in range(3)]
    result = run_why(tmp_path, "why", "raycluster/llm", objects=[runs, *waiting])
    assert (result.code, result.out.splitlines()[0]) == (1, "✗ 3 pods: 1 can be scheduled, 2 unschedulable")


@pytest.mark.parametrize(
    ("target", "group", "kind", "replicas", "line"),
    [
        ("deploy/web", "apps", "Deployment", 2, "1 of 2 pods of ml/deploy/web has a node"),
        ("rollout/web", "argoproj.io", "Rollout", 2, "1 of 2 pods of ml/rollout/web has a node"),
        ("rollout/web", "argoproj.io", "Rollout", 1, ""),
        ("rs/web-1", "", "", 2, "1 of 2 pods of ml/rs/web-1 has a node"),
    ],
)
def test_a_single_pending_pod_is_shown_beside_the_number_of_others(
    tmp_path: Path, target: str, group: str, kind: str, replicas: int, line: str
) -> None:
    """A pod beyond the replicas belongs to an update and does not count."""

    def owner(kind: str, name: str, group: str) -> Manifest:
        return {"apiVersion": f"{group}/v1", "kind": kind, "name": name, "uid": name, "controller": True}

    labels = {"app": "web"}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {**TEMPLATE, "metadata": {"labels": labels}},
    }
    above = [owner(kind, "web", group)] if kind else []
    replica_set = {"namespace": "ml", "name": "web-1", "uid": "web-1", "labels": labels, "ownerReferences": above}
    objects: list[Manifest] = [
        *({**it, "metadata": {"namespace": "ml", "name": "web", "uid": "web"}, "spec": spec} for it in above),
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": replica_set, "spec": spec},
        pod("other", namespace="ml", on="b", spec=POD_SPEC),
    ]
    metadata = {"labels": labels, "ownerReferences": [owner("ReplicaSet", "web-1", "apps")]}
    pods = [pod(f"web-1-{on}", namespace="ml", on=on, metadata=metadata, spec=POD_SPEC) for on in ("a", None)]
    result = run_why(tmp_path, "why", target, objects=[*objects, *pods])
    assert result.out.startswith("✗ ml/web-1-None is unschedulable: 0 of 2 nodes fit\n")
    assert (result.code, line in result.out, "has a node" in result.out) == (1, True, bool(line))
    of_pod = run_why(tmp_path, "why", "pod/web-1-None", objects=[*objects, *pods])
    assert "has a node" not in of_pod.out
    waiting = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    unready = [{"type": "Ready", "status": "False"}]
    pods[0]["status"] = {"phase": "Running", "conditions": unready, "containerStatuses": [waiting]}
    failing = run_why(tmp_path, "why", "rs/web-1", objects=[*objects, *pods])
    assert ("a node, but is not ready (container main: CrashLoopBackOff)" in failing.out) is (replicas == 2)


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({}, "2 pods of the previous template are left (maxSurge 1, maxUnavailable 0)\n"),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": 1}}},
            "2 pods of the previous template are left (maxSurge 1, max",
        ),
        ({"paused": True}, "2 pods of the previous template are left (paused)\n"),
    ],
)
def test_a_single_pending_pod_of_a_rollout(tmp_path: Path, spec: Manifest, line: str) -> None:
    def owner(kind: str, name: str) -> Manifest:
        return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}

    def stored(kind: str, name: str, image: str, more: Manifest, owners: list[Manifest]) -> Manifest:
        container = {"name": "main", "image": image}
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {**POD_SPEC, "containers": [container]}}
        metadata = {"namespace": "ml", "name": name, "uid": name, "ownerReferences": owners}
        body = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template, **more}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": body}

    def of(replica_set: str, name: str, on: str | None) -> Manifest:
        metadata: Manifest = {"labels": {"app": "web"}, "ownerReferences": [owner("ReplicaSet", replica_set)]}
        return pod(name, namespace="ml", on=on, metadata=metadata, spec=POD_SPEC)

    objects = [
        stored("Deployment", "web", "v2", spec, []),
        *(stored("ReplicaSet", f"web-{image}", image, {}, [owner("Deployment", "web")]) for image in ("v1", "v2")),
        of("web-v1", "web-v1-a", "a"), of("web-v1", "web-v1-b", "b"), of("web-v2", "web-v2-c", None),
    ]  # fmt: skip
    result = run_why(tmp_path, "why", "deploy/web", objects=objects)
    assert (result.code, line in result.out) == (1, True), result.out


def test_the_answer_names_refused_pods_of_a_rollout(tmp_path: Path) -> None:
    def owner(kind: str, name: str, group: str) -> Manifest:
        return {"apiVersion": f"{group}/v1", "kind": kind, "name": name, "uid": name, "controller": True}

    message = 'pods "web-2-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    rollout = {"namespace": "ml", "name": "web", "uid": "web"}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    replica_sets: list[Manifest] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "namespace": "ml",
                "name": name,
                "uid": name,
                "ownerReferences": [owner("Rollout", "web", "argoproj.io")],
            },
            "spec": spec,
            "status": {"replicas": running, "conditions": [] if running else [failure]},
        }
        for name, running in (("web-1", 1), ("web-2", 0))
    ]
    owned: Manifest = {"ownerReferences": [owner("ReplicaSet", "web-1", "apps")]}
    old = pod("web-1-x", namespace="ml", on="a", metadata=owned)
    resource: Manifest = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": rollout, "spec": spec}
    result = run_why(tmp_path, "why", "rollout/web", objects=[resource, *replica_sets, old])
    assert result.out.startswith("✗ ml/rs/web-2 gets no pods: ResourceQuota refuses them\n")
    assert result.code == 1


@pytest.mark.parametrize("has_pods", [False, True])
def test_a_rollout_uses_the_template_of_the_deployment_to_which_it_refers(tmp_path: Path, *, has_pods: bool) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
    labels, named = {"app": "llm"}, {"namespace": "ml"}
    selector = {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": POD_SPEC}
    scaled = {"replicas": 0, "selector": selector, "template": template}
    rollout = {"replicas": 2, "selector": selector, "workloadRef": reference}
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "llm", "uid": "u", "controller": True}
    hashed = {**labels, "rollouts-pod-template-hash": "1"}
    maker = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "llm-1", "uid": "r", "controller": True}
    replica_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {**named, "name": "llm-1", "uid": "r", "labels": hashed, "ownerReferences": [owner]},
        "spec": {"replicas": 2, "selector": selector, "template": {**template, "metadata": {"labels": hashed}}},
    }
    containers = POD_SPEC["containers"]
    pods = [pod(f"llm-1-{number}", namespace="ml", labels=hashed, containers=containers) for number in "ab"]
    for replica in pods:
        at(replica, "metadata")["ownerReferences"] = [maker]
    objects: list[Manifest] = [
        node("n", allocatable={"cpu": "2", "memory": "8Gi", "pods": "10"}),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**named, "name": "llm"}, "spec": scaled},
        {**owner, "metadata": {**named, "name": "llm", "uid": "u"}, "spec": rollout},
        *([replica_set, *pods] if has_pods else []),
    ]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    run_why = ("why", "pod/llm-1-a" if has_pods else "rollout/llm", "-n", "ml", "-s", path)
    result = kschedx(*run_why, columns=200)
    assert (result.code, "lower requests.cpu of container w from 3 to 2" in result.out) == (1, True)
    patch = kschedx(*run_why, "--fix", "2", "-o", "patch").out
    assert patch.startswith("kubectl patch deployment.apps llm -n ml --type=json")
    manifest = tmp_path / "rollout.json"
    manifest.write_text(json.dumps({**owner, "metadata": {**named, "name": "llm"}, "spec": rollout}))
    in_file = kschedx("why", manifest, "-s", path, columns=200)
    assert (in_file.code, "does not say which pods" in in_file.out) == (1, False)
    simulated = kschedx("simulate", "-f", manifest, "-s", path, columns=200)
    assert (simulated.code, "2 pending: 1 node lacks 1 CPU" in simulated.out) == (1, True)
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects[1:3]}))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects[:1]}))
    for command in (("why",), ("simulate", "-f")):  # the Deployment of the same file is to stay at zero
        together = kschedx(*command, manifest, "-s", path, columns=200)
        assert (together.code, "scaled to zero" in together.out) == (1, False)


CLONES: Manifest = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "CloneSet",
    "metadata": {"name": "web", "namespace": "ml"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}


def clones(number: int) -> list[Manifest]:
    """A CloneSet with this many pods: the first on node a, the second on node b, the others pending."""
    owner = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "uid": "c", "controller": True}
    nodes = ("a", "b", None)[:number]
    rows = [pod(f"web-{row}", on=on, namespace="ml", spec=POD_SPEC) for row, on in enumerate(nodes)]
    for row in rows:
        at(row, "metadata")["ownerReferences"] = [owner]
    return [CLONES, *rows]


@pytest.mark.parametrize(
    ("replicas", "image", "code", "text"),
    [
        (2, "x", 0, "no pod is pending"),
        (3, "x", 1, "ml/cloneset/web  2 of 3 assigned · 1 pending"),
        (5, "x", 1, "ml/cloneset/web  2 of 5 assigned · 3 pending"),
        (2, "y", 3, "only its controller knows how it replaces the pods of the previous template"),
        (5, "y", 1, "ml/cloneset/web  2 of 5 assigned"),
    ],
)
def test_a_custom_resource_that_is_applied_keeps_its_pods(
    tmp_path: Path, replicas: int, image: str, code: int, text: str
) -> None:
    container = {"name": "w", "image": image, "resources": {"requests": {"cpu": "3"}}}
    template = {"spec": {"containers": [container]}}
    written = {**CLONES, "spec": {**at(CLONES, "spec"), "replicas": replicas, "template": template}}
    (tmp_path / "web.json").write_text(json.dumps(written))
    result = run_why(tmp_path, "simulate", "-f", "web.json", objects=clones(3))
    assert result.code == code
    assert text in result.out + result.err


def test_a_custom_resource_is_scaled_by_its_replicas(tmp_path: Path) -> None:
    result = run_why(tmp_path, "simulate", "--scale", "cloneset/web=5", objects=clones(2))
    assert (result.code, "ml/cloneset/web  2 of 5 assigned · 3 pending" in result.out) == (1, True)
    assert run_why(tmp_path, "simulate", "--scale", "clonesets.apps.kruise.io/web=2", objects=clones(3)).code == 0


@pytest.mark.parametrize(
    ("kind", "target"),
    [("Foo", "foo/bar"), ("Foo", "foos.example.com/bar"), ("Policy", "policies/bar"), ("Mesh", "meshes/bar")],
)
def test_a_custom_resource_without_known_pods(tmp_path: Path, kind: str, target: str) -> None:
    foo = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "bar", "namespace": "shop"}}
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), foo]}), encoding="utf-8")
    result = kschedx("why", target, "-n", "shop", "-s", "cluster.json", cwd=tmp_path)
    assert result.code == 2
    assert f'no pod has {kind} (example.com) "bar" as its owner' in result.err
    assert "ask about the pods that its controller creates" in result.err
