"""Arguments of the library: accepted types, and the errors about all others."""

from __future__ import annotations

from collections import UserDict, UserList
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import kschedx
from kschedx.errors import InputError, KschedxError
from tests.autoscaler import single_group
from tests.builders import Manifest, node, pod
from tests.cli.manifests import small_pod
from tests.command import ROOT

NODE: Any = node("node-1")
POD: Any = pod("web", namespace="shop")
SNAPSHOT = kschedx.Snapshot.from_objects([NODE, POD])


def nested(depth: int) -> Manifest:
    result: Any = {}
    for _ in range(depth):
        result = {"a": result}
    return dict(result)


def endless() -> Any:
    result: dict[str, object] = dict(POD)
    result["spec"] = result
    return result


POLICY = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": []}
LONG = 10**5000
GARBAGE: list[Any] = [None, 5, 3.5, True, b"bytes", object(), [], [None], ["x"], [[]], range(3), {1: 2}, {("a",): 1}]
BAD_MANIFESTS: list[Any] = [
    endless(),
    {**POD, "metadata": nested(3000)},
    {**POD, "metadata": {"name": "\ud800"}},
    {**POD, "metadata": {"name": LONG}},
    {**POD, "metadata": {"name": object()}},
    {**POD, "metadata": {("a",): 1}},
    {**POD, "spec": {"priority": 2**70}},
    {**POD, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": LONG}}}]}},
]


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(KschedxError) as caught:
        ask()
    line = str(caught.value)
    assert len(line.splitlines()) == 1
    line.encode()
    return line


@pytest.mark.parametrize(
    "given", ["text", NODE, UserDict(NODE), *GARBAGE[:6], *GARBAGE[7:]], ids=lambda item: type(item)
)
def test_objects_are_a_list_of_mappings(given: Any) -> None:
    refused(lambda: kschedx.Snapshot.from_objects(given))


@pytest.mark.parametrize("manifest", BAD_MANIFESTS, ids=range(len(BAD_MANIFESTS)))
def test_a_manifest_that_is_no_mapping(manifest: Any) -> None:
    refused(lambda: kschedx.Snapshot.from_objects([NODE, manifest]))
    refused(lambda: kschedx.explain(SNAPSHOT, manifest))


def test_all_mappings_and_sequences_are_accepted() -> None:
    def objects() -> Iterator[Any]:
        yield UserDict(NODE)
        yield {**POD, "metadata": UserDict(POD["metadata"]), "spec": {"containers": UserList([{"name": "c"}])}}

    snapshot = kschedx.Snapshot.from_objects(objects())
    assert kschedx.explain(snapshot, "shop/web").best_nodes == ("node-1",)
    manifest: Any = UserDict(small_pod("new", namespace="shop"))
    assert kschedx.explain(snapshot, manifest, config=None, feature_gates=UserDict({})).best_nodes == ("node-1",)


@pytest.mark.parametrize("given", ["", "/nope", "\0", "a" * 5000, "\ud800", *GARBAGE], ids=lambda item: str(type(item)))
def test_load_requires_a_path(given: Any) -> None:
    refused(lambda: kschedx.load(given))


def test_a_path_may_be_a_path_object(tmp_path: Path) -> None:
    path: Any = tmp_path / "nope.yaml"
    assert refused(lambda: kschedx.load(path)) == f"{path}: no such file or folder"


@pytest.mark.parametrize("given", ["nope", "", "\ud800", *GARBAGE], ids=lambda item: str(type(item)))
def test_a_pod_is_a_name_or_a_manifest(given: Any) -> None:
    refused(lambda: kschedx.explain(SNAPSHOT, given))


@pytest.mark.parametrize("given", [None, 5, [NODE], {}, "cluster.yaml"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda snapshot: kschedx.explain(snapshot, POD),
        lambda snapshot: kschedx.fit(snapshot, POD),
        kschedx.simulate,
        lambda snapshot: kschedx.autoscale(snapshot, group_label="a"),
    ],
    ids=["explain", "fit", "simulate", "autoscale"],
)
def test_a_snapshot_argument_must_be_a_snapshot(ask: Callable[[Any], object], given: Any) -> None:
    assert "expected a snapshot, found " in refused(lambda: ask(given))


def of(name: str, *given: Any) -> list[tuple[str, Any]]:
    return [(name, item) for item in given]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *of("kube_version", 1.36, 136, True, [], b"1.36", "x", "", "\ud800"),
        *of("config", 5, "nope", [], b"x", nested(3000), {"profiles": LONG}, {1: 2}, {"kind": "x"}),
        *of("feature_gates", 5, "A=true", ["A"], {5: True}, {"A": "yes"}, {"A": 1}, {"A": None}),
        *of("admission_plugins", 5, "PodNodeSelector", [5], [None], ["Nope"]),
        *of("extenders", 5, "nope", []),
    ],
)
def test_options_of_explain(name: str, given: Any) -> None:
    line = refused(lambda: kschedx.explain(SNAPSHOT, POD, **{name: given}))
    assert len(line) < 2000


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *of("kube_version", 1.36, [], {}, "x"),
        *of("config", 5, "nope", {"profiles": LONG}, nested(3000)),
        *of("feature_gates", 5, {"A": "yes"}),
        *of("replicas", "3", 1.5, True, -1, 2**70),
    ],
)
def test_options_of_fit(name: str, given: Any) -> None:
    refused(lambda: kschedx.fit(SNAPSHOT, POD, **{name: given}))


@pytest.mark.parametrize("given", [None, 5, object(), "\ud800", endless()])
def test_fit_requires_a_pod(given: Any) -> None:
    refused(lambda: kschedx.fit(SNAPSHOT, given))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *of("group_label", None, 5, "\ud800"),
        *of("templates", 5, [], "x", {"g": LONG}),
        *of("flags", 5, {("a",): 2}, {"expander": None}, {"expander": {}}, {"max-nodes-total": [[1]]}, {"a": object()}),
        *of("now", 5, "x", "\ud800"),
    ],
)
def test_options_of_the_autoscaler(name: str, given: Any) -> None:
    growing = kschedx.load(str(ROOT / "fixtures" / "autoscaler-grows" / "cluster.yaml"))
    arguments: Any = {"group_label": "pool", name: given}
    refused(lambda: kschedx.autoscale(growing, **arguments))


@pytest.mark.parametrize(("name", "given"), [("changes", 5), ("changes", [5]), ("changes", [{}]), ("namespace", 5)])
def test_options_of_simulate(name: str, given: Any) -> None:
    arguments: Any = {name: given}
    refused(lambda: kschedx.simulate(SNAPSHOT, **arguments))


def test_an_error_names_its_place() -> None:
    objects: Any = [NODE, None]
    assert refused(lambda: kschedx.Snapshot.from_objects(objects)) == "objects[1]: expected a mapping, found None"
    gates: Any = {"DRAAdminAccess": "true"}
    line = refused(lambda: kschedx.explain(SNAPSHOT, POD, feature_gates=gates))
    assert line == "feature_gates: DRAAdminAccess: expected True or False, found a str"
    assert isinstance(InputError(""), KschedxError)
    assert str(InputError("a\nb", hint="c\u2028d")) == "a\\nb (c\\u2028d)"


# --- workloads


TEMPLATE: Any = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "c"}]}}
CLAIM: Any = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "resources": {"requests": {"storage": "1Gi"}},
}
CLASS: Any = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "example.com/disk",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def workload(kind: str, version: str = "apps/v1", **spec: Any) -> Any:
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": selector, "template": TEMPLATE, **spec},
    }


@pytest.mark.parametrize(
    ("manifest", "name"),
    [
        (workload("Deployment", replicas=3), "web-new"),
        (workload("StatefulSet", volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": CLAIM}]), "web-0"),
        (workload("DaemonSet"), "web-new"),
        (workload("Rollout", "argoproj.io/v1alpha1"), "web-new"),
    ],
    ids=lambda item: item["kind"] if isinstance(item, dict) else item,
)
def test_a_workload_is_explained_by_its_next_pod(manifest: Any, name: str) -> None:
    snapshot = kschedx.Snapshot.from_objects([NODE, CLASS])
    explanation = kschedx.explain(snapshot, manifest)
    assert (explanation.cycle.pod.key, explanation.outcome) == (f"shop/{name}", "Scheduled")
    if manifest["kind"] != "DaemonSet":
        assert kschedx.fit(snapshot, manifest, replicas=2).is_enough


def test_a_daemon_set_is_not_counted() -> None:
    with pytest.raises(InputError, match="a DaemonSet has one pod on each eligible node, and no more"):
        kschedx.fit(kschedx.Snapshot.from_objects([NODE]), workload("DaemonSet"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "x"}}, "found a Service, which creates no pods"),
        ({"kind": "List", "apiVersion": "v1", "items": [POD]}, "found a List (pass one of its items)"),
        (workload("Two", "example.com/v1", other=TEMPLATE), "several pod templates: spec.template, spec.other"),
        ("deploy.yaml", 'expected namespace/name, found "deploy.yaml" (a manifest is given as a mapping)'),
        ("kind: Pod\n", "found several lines (a manifest is given as a mapping)"),
        ("deploy/web", 'no Deployment "web" in namespace "default"'),
        ("shop/deploy/web", 'no Deployment "web" in namespace "shop"'),
        ("pod/web", 'no pod "web" in namespace "default" (there is one in namespace shop'),
        (Path("deploy.yaml"), "(parse YAML first: yaml.safe_load returns mappings)"),
    ],
)
def test_an_object_without_pods_is_named_in_the_error(given: Any, message: str) -> None:
    assert message in refused(lambda: kschedx.explain(SNAPSHOT, given))
    assert message in refused(lambda: kschedx.fit(SNAPSHOT, given))


def test_a_workload_of_the_snapshot_is_named_as_on_the_command_line() -> None:
    snapshot = kschedx.Snapshot.from_objects([NODE, POD, workload("Deployment")])
    assert kschedx.explain(snapshot, "shop/deploy/web").outcome == "Scheduled"
    assert kschedx.fit(snapshot, "shop/deploy/web", replicas=1).is_enough
    assert kschedx.explain(snapshot, "shop/pod/web").cycle.pod.key == "shop/web"


@pytest.mark.parametrize("target", ["pod/web", "deploy/web"])
def test_an_object_of_a_namespace_that_is_being_deleted_may_be_gone(target: str) -> None:
    metadata = {"name": "shop", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    going = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    snapshot = kschedx.Snapshot.from_objects([NODE, going])
    assert "(the namespace is being deleted: ask about ns/shop)" in refused(
        lambda: kschedx.explain(snapshot, f"shop/{target}")
    )


def test_lists_of_a_kind_are_their_items() -> None:
    bare = {key: value for key, value in POD.items() if key not in ("kind", "apiVersion")}
    items: Any = [
        {"kind": "NodeList", "apiVersion": "v1", "items": [NODE]},
        {"kind": "PodList", "apiVersion": "v1", "items": [bare]},
    ]
    assert kschedx.explain(kschedx.Snapshot.from_objects(items), "shop/web").outcome == "Scheduled"


def test_an_argument_of_the_wrong_shape_names_the_right_one() -> None:
    given: Any = ["a.yaml"]
    assert "each path is an argument of its own" in refused(lambda: kschedx.load(given))
    assert "kschedx.Snapshot.from_objects accepts" in refused(lambda: kschedx.load("kind: Pod\nmetadata: {}\n"))
    assert "pass it in a list" in refused(lambda: kschedx.Snapshot.from_objects(POD))


def test_the_library_exports_exactly_its_functions() -> None:
    assert dir(kschedx) == sorted(kschedx.__all__)
    assert all(hasattr(kschedx, name) for name in kschedx.__all__)


def test_results_have_a_short_repr_and_print_their_screen() -> None:
    container = {"name": "app", "image": "app"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [container]}}
    snapshot = kschedx.Snapshot.from_objects([NODE])
    explanation = kschedx.explain(snapshot, pod)
    fit = kschedx.fit(snapshot, pod)
    compared = kschedx.diff_profiles(snapshot, kube_versions=("1.33", "1.36"))
    diagnosis = kschedx.doctor(str(ROOT / "fixtures/zone-full/cluster"))
    survival = kschedx.survive(snapshot, "node-1")
    other = (
        kschedx.kueue(snapshot),
        kschedx.deschedule(snapshot, POLICY),
        kschedx.tune_profiles(snapshot, candidates=2),
    )
    shown = (
        explanation,
        fit,
        kschedx.simulate(snapshot),
        kschedx.drain(snapshot),
        survival,
        compared,
        diagnosis,
        *other,
    )
    unschedulable = kschedx.explain(snapshot, pod | {"spec": {"containers": [container], "nodeSelector": {"a": "b"}}})
    for result in (snapshot, *shown, *unschedulable.fixes):
        assert len(repr(result)) < 200
        assert "\n" not in repr(result)
    for result in shown:
        assert str(result).partition("\n")[0][:2] in ("✓ ", "✗ ")
        assert result._repr_html_().startswith("<svg")
        records = result.records()
        assert len({tuple(record) for record in records}) <= 1
        assert all(isinstance(value, str | int | float | None) for record in records for value in record.values())
        for key in records[0] if records else ():  # polars infers a column's type from its first rows
            assert records[0][key] is not None or {record[key] for record in records} == {None}
    assert explanation.records()[0]["node"] == "node-1"
    assert explanation.cycle.pod.key in str(explanation).partition("\n")[0]


def test_controllers_have_rows_for_frames() -> None:
    quota = kschedx.load(str(ROOT / "fixtures/kueue-over-quota/cluster.yaml"))
    growing = kschedx.Snapshot.from_objects(
        [single_group.status(single_group.group()), single_group.node(), single_group.pod("web", cpu="8")]
    )
    fighting = kschedx.load(str(ROOT / "fixtures/descheduler-fight/cluster.yaml"), whole=True)
    policy = yaml.safe_load((ROOT / "fixtures/descheduler-fight/policy.yaml").read_text())
    queues = kschedx.kueue(quota)
    admitted = queues.records()
    scaled = kschedx.autoscale(
        growing, group_label="group", flags={"cloud-provider": "aws"}, now=single_group.NOW
    ).records()
    descheduled = kschedx.deschedule(fighting, policy)
    evicted = descheduled.records()
    for records in (admitted, scaled, evicted):
        assert len({tuple(record) for record in records}) == 1
        assert all(isinstance(value, str) for record in records for value in record.values())
    assert "insufficient unused quota" in str(admitted)
    assert str(queues).startswith("‖ 2 ClusterQueues in 1 cohort, 2 Workloads pending")
    assert "Workload" in queues._repr_html_()
    assert str(evicted[0]["pod"]) in str(descheduled)
    assert str(evicted[0]["pod"]) in descheduled._repr_html_()
    assert scaled[0]["pod"] == "shop/web"
    assert evicted[0]["plugin"]


def test_profiles_are_compared() -> None:
    cluster = kschedx.load(str(ROOT / "fixtures/web-rollout/cluster"))
    result = kschedx.diff_profiles(cluster, kube_versions=("1.35", "1.36"))
    assert result.to_dict()["kind"] == "ProfileDifference"
    assert len(result.differences) == result.summary.compared - result.summary.same
    assert "allowed are" in refused(lambda: kschedx.diff_profiles(cluster, pods="all"))


def test_a_daemon_set_has_a_row_for_each_node() -> None:
    small_node = node("small", allocatable={"cpu": "1", "memory": "8Gi", "pods": "110"})
    agent = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "infra"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": small_pod("agent", "2")["spec"]},
        },
    }
    snapshot = kschedx.Snapshot.from_objects([node("roomy"), small_node, node("tainted", taints=["gpu=a:NoSchedule"])])
    assert kschedx.explain_daemon_set(snapshot, agent).records() == [
        {"node": "roomy", "state": "fits", "plugins": ""},
        {"node": "small", "state": "pending", "plugins": "NodeResourcesFit"},
        {"node": "tainted", "state": "not eligible", "plugins": "TaintToleration"},
    ]
