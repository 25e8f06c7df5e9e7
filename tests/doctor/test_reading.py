"""`kschedx doctor` on broken files, standard input, and a live cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api_server import FakeApiServer, Reply, Request, failure, kubeconfig, served
from tests.command import CommandResult, kschedx
from tests.doctor.dumps import save, whole


def doctor(*arguments: str | Path, cwd: Path, stdin: str = "") -> CommandResult:
    return kschedx("doctor", *arguments, cwd=cwd, stdin=stdin)


def problems(outcome: CommandResult) -> list[str]:
    """Return file and line, or file and object, of each problem."""
    (result,) = [finding for finding in json.loads(outcome.out)["findings"] if finding["id"] == "unreadable"]
    return [f"{finding['place']['source']}:{finding['place']['line']}" for finding in result["problems"]]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Write a complete cluster into a folder with broken files."""
    cluster = whole()
    save(tmp_path / "dump" / "b.json", cluster.of("Node", "CSINode", "Namespace"))
    save(tmp_path / "dump" / "d.json", [item for item in cluster.values() if item["kind"] not in ("Node", "CSINode")])
    return tmp_path


def test_other_files_are_read_despite_a_broken_one(dump: Path) -> None:
    (dump / "dump" / "a.yaml").write_text("kind: Node\nmetadata: [\n", encoding="utf-8")
    (dump / "dump" / "c.json").write_text('{"kind": "Node",\n "metadata": }', encoding="utf-8")
    result = doctor("-s", "dump", "-o", "json", cwd=dump)
    assert result.code == 1
    assert problems(result) == ["dump/a.yaml:2", "dump/c.json:2"]
    assert json.loads(result.out)["inventory"]["kinds"]["Node"] == 3


def test_other_objects_are_read_despite_a_broken_one(dump: Path) -> None:
    cluster = whole()
    cluster.change("Pod shop/db-0", "spec.containers.0.resources.requests.cpu", "1 core")
    cluster.change("Pod shop/web-5d7b9-0", "spec.nodeName", 7)
    cluster.change("Node node-1", "status.allocatable.cpu", "four")
    save(dump / "dump" / "d.json", [item for item in cluster.values() if item["kind"] not in ("Namespace", "CSINode")])
    save(dump / "dump" / "b.json", cluster.of("Namespace", "CSINode"))
    outcome = doctor("-s", "dump", "-o", "json", cwd=dump)
    (result,) = [item for item in json.loads(outcome.out)["findings"] if item["id"] == "unreadable"]
    assert [item["place"]["object"] for item in result["problems"]] == [
        "Node node-1",
        "Pod shop/web-5d7b9-0",
        "Pod shop/db-0",
    ]
    assert json.loads(outcome.out)["inventory"]["kinds"]["Pod"] == 6


def test_a_truncated_file(tmp_path: Path) -> None:
    text = save(tmp_path / "long.json", [*whole().values()] * 400).read_text(encoding="utf-8")
    (tmp_path / "long.json").write_text(text[: len(text) - 1000], encoding="utf-8")
    result = doctor("-s", "long.json", "-o", "json", cwd=tmp_path)
    assert len(problems(result)) == 1
    assert json.loads(result.out)["inventory"]["kinds"]["Pod"] == 6


def test_many_problems_are_counted(tmp_path: Path) -> None:
    cluster = whole()
    cluster.change("Pod shop/db-0", "spec.containers.0.resources.requests.cpu", "1 core")
    save(tmp_path / "cluster.json", [*cluster.values(), *[cluster["Pod shop/db-0"]] * 100])
    result = doctor("-s", "cluster.json", cwd=tmp_path)
    assert "101 objects cannot be read" in result.out


def test_many_files_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    save(tmp_path / "a.json", whole().values())
    for number in range(30):
        (tmp_path / f"b{number}.json").write_text("{", encoding="utf-8")
    result = doctor("-s", ".", "-o", "wide", cwd=tmp_path)
    assert "30 objects cannot be read" in result.out
    assert "10 more" in result.out


def test_a_priority_class_that_a_manifest_names(tmp_path: Path) -> None:
    cluster = whole()
    pod = cluster["Pod shop/db-0"]["spec"]
    assert isinstance(pod, dict)
    del pod["priority"]
    cluster.change("Pod shop/db-0", "spec.priorityClassName", "gold")
    save(tmp_path / "cluster.json", cluster.values())
    result = doctor("-s", "cluster.json", cwd=tmp_path)
    assert "missing but named by pods: gold (likely)" in result.out


def test_standard_input(tmp_path: Path) -> None:
    text = save(tmp_path / "cluster.json", whole().values()).read_text(encoding="utf-8")
    result = doctor("-s", "-", cwd=tmp_path, stdin=text)
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-s", "clustr.json"), ("clustr.json", "no such file", '"cluster.json"')),
        (("-s", "cluster.json", "-s", "clustr.json"), ("clustr.json", "no such file")),
        (("-s", "empty"), ("empty", "without manifests")),
        (("-s", "broken.json"), ("broken.json", "not valid JSON")),
        (("-s", "-"), ("standard input", "holds no objects")),
        (("--snapshto", "cluster.json"), ("--snapshto", "--snapshot")),
        (("-s", "cluster.json", "-o", "jsn"), ("jsn", "json")),
        (("-s", "cluster.json", "--context", "prod"), ("--context", "live cluster")),
    ],
    ids=lambda value: " ".join(value),
)
def test_unreadable_input_is_an_error(arguments: tuple[str, ...], says: tuple[str, ...], tmp_path: Path) -> None:
    save(tmp_path / "cluster.json", whole().values())
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.json").write_text('{"kind": ', encoding="utf-8")
    result = doctor(*arguments, cwd=tmp_path)
    assert (result.code, result.out) == (2, "")
    assert all(part in result.err.splitlines()[0] for part in says)


def test_names_are_escaped(tmp_path: Path) -> None:
    cluster = whole()
    cluster.put("example.org/v1", "Wid\x1b[31mget", "shop/x")
    cluster.change("Pod shop/db-0", "spec.nodeName", "node-\x1b[2J[bold]9")
    save(tmp_path / "cluster.json", cluster.values())
    result = doctor("-s", "cluster.json", cwd=tmp_path)
    assert "\x1b" not in result.out
    assert "node-\\x1b[2J[bold]9" in result.out
    assert "Wid\\x1b[31mget" in result.out


# --- live


@pytest.fixture
def api() -> FakeApiServer:
    result = FakeApiServer(list(whole().values()))
    result.page_size = 4
    return result


@pytest.fixture
def url(api: FakeApiServer) -> Iterator[str]:
    with served(api) as result:
        yield result


def test_a_live_cluster_is_complete(url: str, tmp_path: Path) -> None:
    result = doctor("--kubeconfig", kubeconfig(tmp_path, url), "-o", "json", cwd=tmp_path)
    document = json.loads(result.out)
    assert (result.code, document["findings"], document["completion"]) == (0, [], None)
    assert document["inventory"]["serverVersion"].startswith("v1.36")


def test_forbidden_kinds_are_named(api: FakeApiServer, url: str, tmp_path: Path) -> None:
    def forbid(request: Request) -> Reply | None:
        return failure(403, "forbidden") if request.path.endswith("/services") else None

    api.faults.append(forbid)
    result = doctor("--kubeconfig", kubeconfig(tmp_path, url), cwd=tmp_path)
    assert result.code == 1
    assert "Service  listing is forbidden" in result.out
    assert "kubectl create clusterrole kschedx --verb=get,list --resource=services" in result.out


def test_objects_after_an_error_are_read(tmp_path: Path) -> None:
    """Errors of every kind in one file do not prevent findings about the whole cluster."""
    cluster = whole()
    cluster.change("Pod shop/db-0", "spec.containers.0.resources.requests.cpu", "1 core")
    cluster.change("Node node-1", "status.allocatable.memory", "much")
    cluster.change("Service default/kubernetes", "spec.selector", "all")
    odd = {**cluster["Pod shop/db-0"], "metadata": {"name": "odd", "namespace": "shop"}}
    odd["spec"] = {"containers": [{"name": "c", "image": "x"}], "priorityClassName": "nobody-made-it"}
    save(tmp_path / "cluster.json", [*cluster.values(), odd])
    result = doctor("-s", "cluster.json", "-o", "wide", cwd=tmp_path).out
    for message in ("1 core", "much", "spec.selector", "nobody-made-it"):
        assert message in result
    assert "3 objects cannot be read" in result


def test_documents_after_a_broken_one_are_read(tmp_path: Path) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n"
    broken = "kind: Pod\nmetadata: {name: b\n"
    (tmp_path / "all.yaml").write_text("---\n".join([node, broken, "replicas: 3\n", pod]), encoding="utf-8")
    result = doctor("-s", "all.yaml", "-o", "json", cwd=tmp_path)
    assert len(problems(result)) == 2
    assert json.loads(result.out)["inventory"]["kinds"] == {"Pod": 1, "Node": 1}
