"""Deletion of other pods: which are awaited, whose controllers are stopped, and which are never proposed."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.inquiry.explanation import Explanation
from tests.builders import Manifest, at, disruption_budget, node, pod

SMALL = {"cpu": "2", "memory": "4Gi", "pods": "10"}
DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def wanting(name: str, cpu: str, *, on: str | None = None) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])


def owned(manifest: Manifest, kind: str, name: str, api_version: str = "apps/v1") -> Manifest:
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"u-{name}", "controller": True}
    return {**manifest, "metadata": {**at(manifest, "metadata"), "ownerReferences": [owner]}}


def going(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**at(manifest, "metadata"), "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def explained(*objects: Manifest) -> Explanation:
    return kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")


def titles_of(*objects: Manifest) -> list[str]:
    return [fix.title for fix in explained(*objects).fixes if fix.certainty == "verified"]


def exclusive() -> list[Manifest]:
    """Return a claim with ReadWriteOncePod."""
    spec = {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "u-data", "annotations": bound},
        "spec": {**spec, "volumeName": "pv"},
    }
    volume: Manifest = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "data", "uid": "u-data"},
            "nfs": {"server": "s", "path": "/"},
        },
    }
    return [node("n"), claim, volume, pod("me", volumes=DATA)]


def template(kind: str, name: str, api_version: str = "apps/v1") -> Manifest:
    spec = {"template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec if kind == "Job" else {"replicas": 1, **spec},
    }


def test_a_terminating_pod_is_awaited() -> None:
    old = going(wanting("old", "2", on="n"))
    explanation = explained(node("n", allocatable=SMALL), old, wanting("me", "2"))
    first = explanation.fixes[0]
    assert first.title == "wait until default/old on n has terminated"
    assert [(change.delete, change.by) for change in first.changes] == [(True, "kubelet")]
    assert not first.apply


def test_a_terminating_pod_is_awaited_before_more_pods_are_preempted() -> None:
    old = [wanting("a", "2", on="a"), going(wanting("b", "2", on="b"))]
    me = wanting("me", "2")
    at(me, "spec")["priority"] = 10
    titles = titles_of(*(node(name, allocatable=SMALL) for name in "ab"), *old, me)
    assert titles[0] == "wait until default/b on b has terminated"
    assert titles[1].startswith("wait for preemption to evict default/a (priority 0) from a")


APART = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}},
    ],
    ids=["a host port", "anti-affinity"],
)
def test_a_terminating_pod_is_awaited_on_any_node(spec: Manifest) -> None:
    hosts = [node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    old = [pod("a", on="a", spec=spec), going(pod("b", on="b", spec=spec))]
    assert titles_of(*hosts, *old, pod("me", spec=spec))[0] == "wait until default/b has terminated"


def test_a_pod_with_a_finalizer_is_not_awaited() -> None:
    old = going(wanting("old", "2", on="n"))
    for finalizer, first in (("example.com/x", "repair the controller of finalizer example.com/x, which holds"),
                             ("batch.kubernetes.io/job-tracking", "wait until default/old")):  # fmt: skip
        held = {**old, "metadata": {**at(old, "metadata"), "finalizers": [finalizer]}}
        assert titles_of(node("n", allocatable=SMALL), held, wanting("me", "2"))[0].startswith(first)


def test_a_terminating_holder_is_awaited() -> None:
    holder = going(pod("holder", on="n", volumes=DATA))
    assert titles_of(*exclusive(), holder) == ["wait until default/holder has terminated"]


@pytest.mark.parametrize(
    ("kind", "api_version", "title", "command"),
    [
        (
            "StatefulSet",
            "apps/v1",
            "scale StatefulSet default/web to 0, which removes default/holder",
            "kubectl scale statefulset.apps web -n default --replicas=0",
        ),
        (
            "Job",
            "batch/v1",
            "wait until Job default/web ends, or delete it with its pod default/holder",
            "kubectl delete job.batch web -n default",
        ),
    ],
)
def test_the_controller_of_the_holder_is_stopped(kind: str, api_version: str, title: str, command: str) -> None:
    holder = owned(pod("holder", on="n", volumes=DATA), kind, "web", api_version)
    (fix,) = explained(*exclusive(), template(kind, "web", api_version), holder).fixes
    assert (fix.title, fix.commands) == (title, (command,))
    assert [(change.target.kind, change.by) for change in fix.changes] == [
        (kind, ""),
        ("Pod", "kube-controller-manager"),
    ]


@pytest.mark.parametrize(
    ("policy", "costs"),
    [("Delete", ("the claims of these pods and their data are deleted (whenScaled: Delete)",)), ("Retain", ())],
)
def test_scaling_a_stateful_set_may_delete_its_claims(policy: str, costs: tuple[str, ...]) -> None:
    holder, maker = owned(pod("holder", on="n", volumes=DATA), "StatefulSet", "web"), template("StatefulSet", "web")
    at(maker, "spec")["persistentVolumeClaimRetentionPolicy"] = {"whenScaled": policy}
    at(maker, "spec")["volumeClaimTemplates"] = [{"metadata": {"name": "logs"}}]
    (fix,) = explained(*exclusive(), maker, holder).fixes
    assert fix.title.startswith("scale StatefulSet default/web to 0")
    assert fix.costs == costs


def test_a_holder_without_a_controller() -> None:
    assert titles_of(*exclusive(), pod("holder", on="n", volumes=DATA)) == ["delete default/holder"]
    assert titles_of(*exclusive(), pod("holder", on="n", priority=9, volumes=DATA)) == [
        "delete default/holder (priority 9)"
    ]
    critical = pod("holder", on="n", priority=2_000_000_000, volumes=DATA)
    explanation = explained(*exclusive(), critical)
    assert not explanation.fixes
    assert explanation.no_fix == "one pod at a time may use the claim default/data, and default/holder uses it"


@pytest.mark.parametrize("priority", [0, 9])
def test_a_pod_of_a_daemon_set_is_recreated_with_its_claim(priority: int) -> None:
    holder = owned(pod("holder", on="n", priority=priority, volumes=DATA), "DaemonSet", "agent")
    assert not titles_of(*exclusive(), holder)


def test_an_identical_pod_is_recreated_with_the_same_needs() -> None:
    """Replicas with anti-affinity to each other need another node."""
    rule = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    ours = [pod(name, on=where, labels={"app": "web"}, affinity=apart) for name, where in (("twin", "n"), ("me", None))]
    replicas = [owned(our, "StatefulSet", "web") for our in ours]
    there = node("n", labels={"kubernetes.io/hostname": "n", "zone": "a"})
    assert titles_of(there, *replicas) == ["add a node like n"]


def test_anti_affinity_over_zones_needs_another_zone() -> None:
    rule = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    ours = [pod(name, on=where, labels={"app": "web"}, affinity=apart) for name, where in (("twin", "n"), ("me", None))]
    replicas = [owned(our, "StatefulSet", "web") for our in ours]
    assert titles_of(node("n", labels={"zone": "a"}), *replicas) == ["add a node with a new value of label zone"]


def test_a_copy_of_a_cordoned_or_leaving_node() -> None:
    gone = node("n", taints=["ToBeDeletedByClusterAutoscaler=1:NoSchedule"], allocatable=SMALL)
    assert titles_of(gone, wanting("me", "1")) == ["add a node like n"]


def of_priority(manifest: Manifest, priority: int, policy: str = "PreemptLowerPriority") -> Manifest:
    return {**manifest, "spec": {**at(manifest, "spec"), "priority": priority, "preemptionPolicy": policy}}


def test_the_victim_has_the_lowest_priority_not_the_best_fit() -> None:
    running = {"wasteful": ("1", -1), "exact": ("500m", 0), "filler": ("500m", 99)}
    pods = [of_priority(wanting(name, cpu, on="n"), priority) for name, (cpu, priority) in running.items()]
    titles = titles_of(node("n", allocatable=SMALL), *pods, of_priority(wanting("me", "500m"), 9, "Never"))
    deleted = [title for title in titles if title.startswith("delete")]
    assert deleted == ["delete default/wasteful (priority -1) on n"], "exact would fit as well, and is more important"


@pytest.mark.parametrize(("kind", "waits"), [("Job", "wait until Job train ends, or "), ("ReplicaSet", "")])
def test_the_end_of_a_job_may_be_awaited(kind: str, waits: str) -> None:
    holder = of_priority(owned(wanting("old", "2", on="n"), kind, "train"), -1)
    titles = titles_of(node("n", allocatable=SMALL), holder, of_priority(wanting("me", "2"), 9, "Never"))
    assert f"{waits}delete default/old (priority -1) on n" in titles


def test_no_pod_is_deleted_by_hand_if_preemption_will() -> None:
    low = of_priority(wanting("low", "2", on="n"), -1)
    titles = titles_of(node("n", allocatable=SMALL), low, wanting("me", "1"))
    assert titles[0].startswith("wait for preemption")
    assert not [title for title in titles if title.startswith("delete")]


def test_a_deletion_names_the_new_node_and_the_budget() -> None:
    rule = {"selector": {"matchLabels": {"app": "web"}}}
    web = owned(wanting("web-1", "1", on="a"), "ReplicaSet", "web")
    at(web, "metadata")["labels"] = {"app": "web"}
    spec = {key: value for key, value in at(web, "spec").items() if key != "nodeName"}
    replicas: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "u-web"},
        "spec": {"replicas": 1, **rule, "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}},
    }
    budget = disruption_budget("web", labels={"app": "web"}, minAvailable=1)
    nodes = [node("a", allocatable=SMALL), node("b", allocatable={**SMALL, "cpu": "1"})]
    explanation = explained(*nodes, replicas, budget, web, wanting("me", "2")).fixes
    [fix] = [item for item in explanation if item.title.startswith("delete default/web-1")]
    assert fix.costs == ("ReplicaSet web recreates its pod on b", "PodDisruptionBudget web allows no disruption")


@pytest.mark.parametrize(
    ("priority", "policy", "certainties"),
    [(9, "PreemptLowerPriority", ["verified", "partial"]), (0, "PreemptLowerPriority", ["verified", "verified"])],
    ids=["before it", "after it"],
)
def test_room_for_a_pod_of_higher_priority_is_no_fix(priority: int, policy: str, certainties: list[str]) -> None:
    cordoned = {**node("big", allocatable={**SMALL, "cpu": "2"}), "spec": {"unschedulable": True}}
    small = node("small", allocatable={**SMALL, "cpu": "1"})
    other = of_priority(wanting("other", "2"), priority, policy)
    fixes = explained(small, cordoned, other, wanting("me", "2")).fixes
    uncordon = [fix for fix in fixes if fix.title.startswith("uncordon big")]
    assert [fix.certainty for fix in uncordon] == [certainties[-1]]
    if priority:
        assert uncordon[0].title == "uncordon big (then default/other, with a higher priority, takes the room)"


def test_new_nodes_include_pods_of_higher_priority() -> None:
    full, taken = node("full", allocatable={**SMALL, "cpu": "2"}), of_priority(wanting("taken", "2"), 10)
    at(taken, "spec")["nodeName"] = "full"
    others = [of_priority(wanting(name, "2"), 9) for name in ("one", "two")]
    fix, *_ = explained(full, taken, *others, wanting("me", "2")).fixes
    assert fix.title == "add 3 nodes like full"
    assert fix.costs == ("default/one and default/two, with a higher priority, need room too",)


@pytest.mark.parametrize(
    ("since", "costs"),
    [
        ("2026-01-01T00:00:00Z", ("unless default/other, pending for longer, takes the room",)),
        ("2026-01-03T00:00:00Z", ()),
    ],
    ids=["before it", "after it"],
)
def test_a_fix_names_pods_that_come_first_in_the_queue(since: str, costs: tuple[str, ...]) -> None:
    small = node("small", allocatable={**SMALL, "cpu": "1"})
    cordoned = {**node("big", allocatable={**SMALL, "cpu": "2"}), "spec": {"unschedulable": True}}
    me, other = wanting("me", "2"), wanting("other", "2")
    at(me, "metadata")["creationTimestamp"], at(other, "metadata")["creationTimestamp"] = "2026-01-02T00:00:00Z", since
    fixes = explained(small, cordoned, other, me).fixes
    [uncordon] = [fix for fix in fixes if fix.title.startswith("uncordon big")]
    assert (uncordon.certainty, uncordon.costs) == ("verified", costs)


@pytest.mark.parametrize(
    ("cpu", "costs"),
    [("3", ("unless default/other, pending for longer, takes the room",)), ("4", ())],
    ids=["it fits then", "it never fits"],
)
def test_the_pods_of_a_recreated_job_come_last_in_the_queue(cpu: str, costs: tuple[str, ...]) -> None:
    """Its running pod is deleted as well, so that a pod which is pending since gets its room."""
    runs, me, other = wanting("runs", "2", on="n"), wanting("me", "2"), wanting("other", cpu)
    for number, item in enumerate((runs, me, other)):
        at(item, "metadata")["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
    job = template("Job", "load", "batch/v1")
    at(job, "spec")["parallelism"] = 2
    at(job, "spec.template.spec.containers")[0]["resources"] = {"requests": {"cpu": "2"}}
    small = node("n", allocatable={**SMALL, "cpu": "3"})
    of_job = (owned(item, "Job", "load", "batch/v1") for item in (runs, me))
    [lower] = [fix for fix in explained(small, *of_job, other, job).fixes if fix.title.startswith("lower requests.cpu")]
    assert (lower.certainty, lower.costs) == ("verified", costs)


@pytest.mark.parametrize(
    ("later", "priority", "room", "costs"),
    [
        (("b",), 0, "1500m", ("default/b, which fits now, stays pending then",)),
        (("b",), -5, "1500m", ("default/b, which fits now, stays pending then",)),
        (("b",), 0, "2500m", ()),
        (("b", "c"), 0, "1500m", ("default/b, which fits now, stays pending then",)),
        (("b", "c"), 0, "2500m", ("default/c, which fits now, stays pending then",)),
    ],
    ids=["the only room", "a lower priority", "room for both", "a third fits neither way", "room for two"],
)
def test_a_fix_names_pods_later_in_the_queue_whose_room_it_takes(
    later: tuple[str, ...], priority: int, room: str, costs: tuple[str, ...]
) -> None:
    nodes = [node("small", allocatable={**SMALL, "cpu": room})]
    me = wanting("me", "1500m")
    at(me, "spec")["nodeSelector"] = {"disk": "ssd"}
    others = [of_priority(wanting(name, "1"), priority) for name in later]
    for number, item in enumerate((me, *others)):
        at(item, "metadata")["creationTimestamp"] = f"2026-01-01T00:00:0{number}Z"
    [dropped] = [fix for fix in explained(*nodes, *others, me).fixes if fix.title.startswith("stop requiring")]
    assert (dropped.certainty, dropped.costs) == ("verified", costs)


@pytest.mark.parametrize(("kind", "version", "scales"), [("ReplicaSet", "apps/v1", True), ("Job", "batch/v1", False)])
def test_replicas_of_one_template_cannot_share_a_claim_for_one_pod(kind: str, version: str, scales: bool) -> None:
    twins = (pod("holder", on="n", volumes=DATA), pod("me", volumes=DATA))
    *others, _ = exclusive()
    maker = template(kind, "web", version)
    titles = [fix.title for fix in explained(*others, *(owned(twin, kind, "web") for twin in twins), maker).fixes]
    scaled = f"scale {kind} web to 1 replica: one pod at a time may use claim default/data"
    assert (titles[0] == scaled) is scales
    assert titles[-1].startswith("give each replica a claim of its own with a StatefulSet")


def test_a_pod_of_a_daemon_set_preempts_on_full_nodes() -> None:
    """A changed template applies to the pods of all nodes, each of which preempts a pod."""
    nodes = [node(name, allocatable=SMALL, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    web = [owned(wanting(f"web-{name}", "2", on=name), "ReplicaSet", "web") for name in "ab"]

    def agent(name: str, on: str) -> Manifest:
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        mine = owned(wanting(name, "2"), "DaemonSet", "agent")
        metadata = {**at(mine, "metadata"), "labels": {"app": "agent"}}
        return {**mine, "metadata": metadata, "spec": {**at(mine, "spec"), "affinity": affinity}}

    labels = {"labels": {"app": "agent"}}
    (container,) = at(wanting("x", "2"), "spec")["containers"]
    created = {"metadata": labels, "spec": {"containers": [{**container, "image": "i"}]}}
    spec = {"selector": {"matchLabels": labels["labels"]}, "template": created}
    agents = {**template("DaemonSet", "agent"), "spec": spec}
    first = explained(*nodes, *web, agents, agent("me", "a"), agent("other", "b")).fixes[0]
    assert first.title.startswith("set priorityClassName: system-node-critical, wait for preemption to evict")
    assert first.certainty == "verified"
    assert "its other pods evict 1 pod on their nodes" in first.costs
