"""`kschedx snapshot`: the file, its header, and answers equal to those of its cluster."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard

from kschedx.errors import InputError
from kschedx.kube.kinds import KINDS
from kschedx.kube.snapshot_header import SnapshotHeader, merge_headers, parse_annotations
from tests.api_server import FakeApiServer, failure, kubeconfig, served
from tests.builders import Manifest, node
from tests.cli.manifests import BIG_POD, NODE, POD, changed, small_pod, write
from tests.command import ROOT, CommandResult, kschedx
from tests.device_builders import device_class

NAMESPACE: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "on"}}}
SECRET: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"key": "c2VjcmV0"}}
CLUSTER: list[Manifest] = [NODE, POD, BIG_POD, NAMESPACE, small_pod("other-0", "10m", namespace="else")]


def taken(result: CommandResult) -> str:
    """Return the standard error of a command that wrote a file."""
    assert (result.code, result.out) == (0, ""), result.err
    return result.err


def why(*arguments: str | Path) -> dict[str, Any]:
    result = kschedx("why", *arguments, "-o", "json")
    assert result.code in (0, 1), result.err
    document: dict[str, Any] = json.loads(result.out)
    return document


# --- the file


@pytest.mark.parametrize("name", ["c.json", "c.yaml", "c.yml", "c.json.gz", "c.yaml.gz", "c.json.zst", "c.yaml.zst"])
def test_all_formats_hold_the_same_objects(name: str, tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER, SECRET)
    texts = taken(kschedx("snapshot", "-s", cluster, "-o", tmp_path / name))
    assert "1 node, 3 pods, 1 other object" in texts
    content = (tmp_path / name).read_bytes()
    if name.endswith(".gz"):
        content = gzip.decompress(content)
    elif name.endswith(".zst"):
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    result = yaml.safe_load(content) if ".y" in name else json.loads(content)
    assert json.loads(kschedx("snapshot", "-s", cluster, "-o", "-").out) == result
    assert [item["kind"] for item in result["items"]] == ["Namespace", "Node", "Pod", "Pod", "Pod"]
    assert (result["apiVersion"], result["kind"]) == ("v1", "List")


def test_kubectl_reads_the_yaml_unchanged(tmp_path: Path) -> None:
    odd = {
        "a": "on",
        "b": "1e3",
        "c": "0x1f",
        "d": "12:30",
        "e": "null",
        "f": "\x7f\u2028\x85 é",
        "g": "~",
        "h": "- #",
        "i": "",
    }
    cluster = write(tmp_path, NODE, changed(POD, "metadata", {"name": "web-0", "namespace": "shop", "labels": odd}))
    taken(kschedx("snapshot", "-s", cluster, "-o", tmp_path / "c.yaml"))
    again = json.loads(kschedx("snapshot", "-s", tmp_path / "c.yaml", "-o", "-").out)
    assert again["items"][-1]["metadata"]["labels"] == odd


def test_the_same_cluster_gives_the_same_file(tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    for name in ("a.json.gz", "b.json.gz", "a.yaml.zst", "b.yaml.zst"):
        taken(kschedx("snapshot", "-s", cluster, "-o", tmp_path / name))
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert (tmp_path / "a.yaml.zst").read_bytes() == (tmp_path / "b.yaml.zst").read_bytes()


def test_a_file_gives_the_same_answer_under_any_name(tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    (tmp_path / "elsewhere").mkdir()
    for name in ("a.json", "elsewhere/b.yaml.gz"):
        taken(kschedx("snapshot", "-s", cluster, "-o", tmp_path / name))
    first = why("shop/web-0", "-s", tmp_path / "a.json")
    assert why("shop/web-0", "-s", tmp_path / "elsewhere/b.yaml.gz") == first
    assert first["source"]["text"] == cluster.name
    assert why("shop/web-0", "-s", cluster) == {**first, "source": {**first["source"], "text": str(cluster)}}


def test_a_snapshot_of_a_snapshot_is_the_same(tmp_path: Path) -> None:
    taken(kschedx("snapshot", "-s", write(tmp_path, *CLUSTER), "-o", tmp_path / "a.json"))
    taken(kschedx("snapshot", "-s", tmp_path / "a.json", "-o", tmp_path / "b.json"))
    taken(kschedx("snapshot", "-s", tmp_path / "a.json", "-o", tmp_path / "a.json"))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_every_answer_names_the_only_namespace(tmp_path: Path) -> None:
    taken(kschedx("snapshot", "-s", write(tmp_path, *CLUSTER), "-n", "shop", "-o", tmp_path / "a.json"))
    document = why("shop/web-0", "-s", tmp_path / "a.json")
    assert document["source"]["namespaces"] == ["shop"]
    assert document["source"]["kinds"] == {"Namespace": 1, "Node": 1, "Pod": 2}
    (note,) = [note for note in document["notes"] if note["id"] == "other-namespaces"]
    assert "only namespace shop is in this snapshot" in note["text"]


# --- anonymized


def test_an_anonymized_cluster_gives_the_same_answer_under_other_names(tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER, name="acme-prod.json")
    hidden, names = tmp_path / "a.json", tmp_path / "names.json"
    texts = taken(kschedx("snapshot", "-s", cluster, "--anonymize", "--anonymize-map", names, "-o", hidden))
    assert texts.startswith(f"✓ {hidden}: 1 node, 3 pods, 1 other object")
    mapping = json.loads(names.read_text())
    assert names.stat().st_mode & 0o777 == 0o600
    assert not set(mapping) & set(re.findall(r"[\w-]+", hidden.read_text()))
    assert "acme" not in hidden.read_text()
    new = f"{mapping['shop']}/{mapping['big']}-0"
    before, after = why("shop/big-0", "-s", cluster), why(new, "-s", hidden)
    assert (after["outcome"], after["message"]) == (before["outcome"], before["message"])
    assert after["source"]["text"] == "an anonymized cluster"
    assert after["source"]["anonymized"] is True


def test_an_anonymized_namespace_has_its_new_name(tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    result = json.loads(kschedx("snapshot", "-s", cluster, "-n", "shop", "--anonymize", "-o", "-").out)
    (namespace,) = [item["metadata"]["name"] for item in result["items"] if item["kind"] == "Namespace"]
    assert result["metadata"]["annotations"]["kschedx.dev/namespaces"] == namespace != "shop"


def test_a_map_without_a_snapshot_is_an_error(tmp_path: Path) -> None:
    result = kschedx("snapshot", "-s", write(tmp_path, *CLUSTER), "--anonymize-map", "m.json", "-o", "-")
    assert (result.code, result.err) == (2, "error: --anonymize-map needs --anonymize\n")


@pytest.mark.parametrize("name", ["-", "a.json", "./a.json"])
def test_the_map_is_not_in_the_snapshot(name: str, tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    to = "-" if name == "-" else "a.json"
    result = kschedx("snapshot", "-s", cluster, "--anonymize", "-o", to, "--anonymize-map", name, cwd=tmp_path)
    assert (result.code, result.out) == (2, "")
    assert "-o and --anonymize-map name the same file" in result.err
    assert not (tmp_path / "a.json").exists()


CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /home/acme/kubeconfig}
profiles:
- schedulerName: acme-scheduler
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: acme.io/tier, operator: In, values: [acme-gold]}]}]
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: [{maxSkew: 1, topologyKey: acme.io/row, whenUnsatisfiable: ScheduleAnyway}]
  - name: NodeResourcesFit
    args:
      ignoredResources: [acme.io/license]
      scoringStrategy: {type: LeastAllocated, resources: [{name: acme.io/gpu, weight: 3}]}
  - name: Other
    args: {endpoint: "https://token@acme.example/", region: acme-west}
"""


def test_a_configuration_is_anonymized_with_its_cluster(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG)
    labels = {"acme.io/tier": "acme-gold", "acme.io/row": "7"}
    nodes = [
        node("acme-1", labels=labels, allocatable={"cpu": "4", "pods": "10", "acme.io/gpu": "2"}),
        node("acme-2", labels=labels | {"acme.io/tier": "other"}),
    ]
    asking = changed(small_pod("web-0", namespace="shop"), "spec.schedulerName", "acme-scheduler")
    cluster = write(tmp_path, *nodes, asking, name="acme.json")
    hidden, names = tmp_path / "a.json.gz", tmp_path / "names.json"
    texts = taken(
        kschedx("snapshot", "-s", cluster, "--anonymize", "--anonymize-map", names, "-o", hidden, "--config", config)
    )
    beside = tmp_path / "a-scheduler.yaml"
    assert f"{beside}: the scheduler's configuration" in texts
    assert "does not fit" not in texts
    assert "acme" not in beside.read_text()
    mapping = json.loads(names.read_text())
    new = f"{mapping['shop']}/{mapping['web']}-0"
    before, after = why("shop/web-0", "-s", cluster, "--config", config), why(new, "-s", hidden, "--config", beside)
    assert (before["outcome"], len(before["bestNodes"])) == ("Scheduled", 1)
    assert after["outcome"] == before["outcome"]
    assert [each["total"] for each in after["score"]["nodes"].values()] == [
        each["total"] for each in before["score"]["nodes"].values()
    ]
    assert len(after["filter"]["nodes"]) == 2
    result = kschedx("snapshot", "-s", cluster, "--anonymize", "-o", "-", "--config", config)
    assert (result.code, result.out) == (2, "")


def test_a_note_names_the_missing_configuration(tmp_path: Path) -> None:
    texts = taken(kschedx("snapshot", "-s", write(tmp_path, *CLUSTER), "--anonymize", "-o", tmp_path / "a.json"))
    assert "note: a scheduler's configuration that names labels" in texts


def test_a_selector_that_parses_text_prevents_anonymization(tmp_path: Path) -> None:
    selector = "device.attributes['gpu.acme.io'].model.startsWith('acme')"
    objects = [*CLUSTER, device_class("acme-gpu", selector)]
    to = tmp_path / "a.json"
    result = kschedx("snapshot", "-s", write(tmp_path, *objects), "--anonymize", "-o", to)
    assert (result.code, result.out) == (2, "")
    assert "DeviceClass acme-gpu: startsWith() reads parts of a string" in result.err
    assert not to.exists()
    taken(kschedx("snapshot", "-s", write(tmp_path, *objects), "--anonymize", "--keep-selectors", "-o", to))
    assert selector in to.read_text()


def test_an_address_is_replaced_as_a_whole(tmp_path: Path) -> None:
    objects = [
        node("ip-10-6-5-4.ec2.internal", labels={"acme.io/address": "10.6.5.4"}),
        node("10.6.5.40"),
        small_pod("web-0", namespace="shop"),
    ]
    to = tmp_path / "a.json"
    taken(kschedx("snapshot", "-s", write(tmp_path, *objects), "--anonymize", "-o", to))
    text = to.read_text()
    assert not re.search(r"6[.-]5[.-]4", text)
    assert "-198-18-0-1." in text
    assert "198.18.0.1" in text
    assert "198.18.0.2" in text


# --- what is refused


@pytest.mark.parametrize("name", ["cluster", "cluster.txt", "cluster.json.xz", "cluster.gz", ".zst"])
def test_a_file_name_without_a_format_is_an_error(name: str, tmp_path: Path) -> None:
    result = kschedx("snapshot", "-s", write(tmp_path, *CLUSTER), "-o", name, cwd=tmp_path)
    assert result.code == 2
    assert (
        result.err
        == f'error: -o: found "{name}", allowed are names in .json or .yaml, with .gz or .zst after it, and -\n'
    )


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    (tmp_path / "folder.json").mkdir()
    for name, reason in (("folder.json", "is a directory"), ("none/a.json", "no such file or directory")):
        result = kschedx("snapshot", "-s", cluster, "-o", name, cwd=tmp_path)
        assert (result.code, result.err) == (2, f"error: {name}: cannot be written: {reason}\n")


def test_an_existing_file_stays_until_the_new_one_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, old = write(tmp_path, *CLUSTER), tmp_path / "a.json"
    old.write_text("old")
    before = sorted(tmp_path.iterdir())

    def fails(*_: object) -> Iterator[bytes]:
        yield b"new"
        raise InputError("midway")

    monkeypatch.setattr("kschedx.cli.files.json_parts", fails)
    assert kschedx("snapshot", "-s", cluster, "-o", old).code == 2
    assert (old.read_text(), sorted(tmp_path.iterdir())) == ("old", before)


def test_a_missing_namespace_is_an_error(tmp_path: Path) -> None:
    result = kschedx("snapshot", "-s", write(tmp_path, *CLUSTER), "-n", "shpo", "-o", "-")
    assert (result.code, result.err) == (2, 'error: -n: there is no namespace "shpo" (did you mean "shop"?)\n')


# --- a live cluster


@pytest.fixture
def api() -> FakeApiServer:
    result = FakeApiServer(CLUSTER)
    result.page_size = 2
    return result


@pytest.fixture
def config(api: FakeApiServer, tmp_path: Path) -> Iterator[Path]:
    with served(api) as url:
        yield kubeconfig(tmp_path, url)


def test_the_live_answer_and_the_files_are_the_same_document(config: Path, tmp_path: Path) -> None:
    for name in ("a.json", "a.yaml.gz"):
        taken(kschedx("snapshot", "--kubeconfig", config, "-o", tmp_path / name))
    for pod in ("shop/web-0", "shop/big-0"):
        live = why(pod, "--kubeconfig", config)
        assert why(pod, "-s", tmp_path / "a.json") == live
        assert why(pod, "-s", tmp_path / "a.yaml.gz") == live


def test_the_file_names_forbidden_kinds(api: FakeApiServer, config: Path, tmp_path: Path) -> None:
    api.fail("/services", failure(403, "no"), forever=True)
    api.fail("/podgroups", failure(404, "no"), forever=True)
    texts = taken(kschedx("snapshot", "--kubeconfig", config, "-o", tmp_path / "a.json"))
    assert "not included: services (forbidden)\n" in texts
    live = why("shop/big-0", "--kubeconfig", config)
    assert why("shop/big-0", "-s", tmp_path / "a.json") == live
    groups = {key: "absent" for key, kind in KINDS.items() if kind.plural == "podgroups"}
    assert live["source"]["missing"] == {**groups, "Service": "forbidden"}
    assert live["source"]["serverVersion"] == "v1.36.2"


@pytest.mark.parametrize("without", ["nodes", "pods"])
def test_a_snapshot_needs_nodes_and_pods(without: str, api: FakeApiServer, config: Path, tmp_path: Path) -> None:
    api.fail(f"/{without}", failure(403, "no"), forever=True)
    taken(kschedx("snapshot", "--kubeconfig", config, "-o", tmp_path / "a.json"))
    live = kschedx("why", "shop/web-0", "--kubeconfig", config)
    assert live.code == 3
    assert kschedx("why", "shop/web-0", "-s", tmp_path / "a.json") == live


def test_a_pod_on_a_node_that_was_just_deleted(api: FakeApiServer, config: Path, tmp_path: Path) -> None:
    api.replace([*CLUSTER, changed(small_pod("left", "10m"), "spec", {"nodeName": "gone", "containers": []})])
    taken(kschedx("snapshot", "--kubeconfig", config, "-o", tmp_path / "a.json"))
    assert why("shop/big-0", "-s", tmp_path / "a.json") == why("shop/big-0", "--kubeconfig", config)


def test_the_header(api: FakeApiServer, config: Path) -> None:
    api.fail("/services", failure(403, "no"), forever=True)
    head = json.loads(kschedx("snapshot", "--kubeconfig", config, "-o", "-").out)["metadata"]["annotations"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", head.pop("kschedx.dev/taken"))
    assert re.fullmatch(r"context \w+ \(http://127\.0\.0\.1:\d+\)", head.pop("kschedx.dev/source"))
    counts = {"Namespace": 1, "Node": 1, "Pod": 3}
    kinds = sorted(KINDS.keys() - {"Service"})
    assert head == {
        "kschedx.dev/snapshot": "v1",
        "kschedx.dev/server-version": "v1.36.2",
        "kschedx.dev/kinds": ",".join(f"{kind}={counts.get(kind, 0)}" for kind in kinds),
        "kschedx.dev/missing": "Service=forbidden",
    }


def test_a_snapshot_of_a_namespace_reads_nothing_else(api: FakeApiServer, config: Path, tmp_path: Path) -> None:
    taken(kschedx("snapshot", "--kubeconfig", config, "-n", "shop", "-o", tmp_path / "a.json"))
    answer = {request.path for request in api.requests}
    assert {"/api/v1/namespaces/shop/pods", "/api/v1/nodes", "/apis/apps/v1/namespaces/shop/replicasets"} <= answer
    assert not {"/api/v1/pods", "/apis/apps/v1/replicasets"} & answer
    (namespaces,) = [request for request in api.requests if request.path == "/api/v1/namespaces"]
    assert namespaces.query["fieldSelector"] == "metadata.name=shop"
    assert {request.method for request in api.requests} == {"GET"}


def test_a_list_that_expired_midway_is_written_once(api: FakeApiServer, config: Path) -> None:
    whole = json.loads(kschedx("snapshot", "--kubeconfig", config, "-o", "-").out)["items"]
    expired = iter([None, failure(410, "gone")])
    api.faults.append(lambda request: next(expired, None) if request.path == "/api/v1/pods" else None)
    assert json.loads(kschedx("snapshot", "--kubeconfig", config, "-o", "-").out)["items"] == whole


# --- headers


def test_a_header_is_read_as_written() -> None:
    header = SnapshotHeader(
        taken="2026-11-21T20:00:00Z",
        source="context a=b, prod (https://x)",
        server_version="v1.36.2",
        complete={"Node": 3, "Pod": 0},
        missing={"Service": "forbidden"},
        namespaces=("a", "b"),
        formats=("must-gather", "oc adm inspect"),
        lacks={"Pod": "pods of other namespaces, all of them", "Service": "every Service"},
        anonymized=True,
    )
    assert parse_annotations(header.annotations()) == header
    assert parse_annotations(SnapshotHeader().annotations()) == SnapshotHeader()
    assert parse_annotations({"other": "x"}) is None


@pytest.mark.parametrize("text", ["Node", "Node=", "=3", "Node=x,Pod=-1", "Node=٣", ",,,", "Node=3=4"])
def test_an_invalid_header_is_harmless(text: str) -> None:
    result = parse_annotations({"kschedx.dev/snapshot": "v1", "kschedx.dev/kinds": text, "kschedx.dev/lacks": text})
    assert result == SnapshotHeader()


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    cluster = tmp_path / "a.json"
    metadata = {"annotations": {"kschedx.dev/snapshot": "v2"}}
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": CLUSTER}))
    result = kschedx("why", "shop/web-0", "-s", cluster)
    assert result.code == 2
    assert 'a snapshot of the format "v2", this kschedx reads "v1" (a newer kschedx wrote it)' in result.err


def test_several_headers_together() -> None:
    each = SnapshotHeader(taken="2026-11-21T20:00:00Z", source="a", complete={"Pod": 1}, missing={"Node": "forbidden"})
    other = SnapshotHeader(
        taken="2026-11-20T20:00:00Z", source="b", complete={"Node": 2}, missing={"Service": "absent"}
    )
    assert merge_headers([each, other]) == SnapshotHeader(
        taken="2026-11-20T20:00:00Z", source="a, b", complete={"Node": 2, "Pod": 1}, missing={"Service": "absent"}
    )
    assert merge_headers([]) == SnapshotHeader()


NOISY = {"example.com/csi-node-id": "7"}
FULL = changed(small_pod("there", "4", namespace="shop"), "spec.nodeName", "node-01")


def test_an_added_node_lacks_nothing(tmp_path: Path) -> None:
    cluster = write(tmp_path, changed(NODE, "metadata.annotations", NOISY), FULL, POD)
    fixes = assert_equal_fixes(tmp_path, "pod/web-0", cluster)
    assert "add a node like node-01" in [fix["title"] for fix in fixes]


def test_a_created_claim_lacks_nothing(tmp_path: Path) -> None:
    folder = ROOT / "fixtures" / "volume-statefulset-no-claim"
    objects = list(yaml.safe_load_all((folder / "cluster.yaml").read_text(encoding="utf-8")))
    for each in objects:
        for template in each["spec"].get("volumeClaimTemplates", ()) if each["kind"] == "StatefulSet" else ():
            template["metadata"]["annotations"] = NOISY
    fixes = assert_equal_fixes(tmp_path, folder / "pod.yaml", write(tmp_path, *objects))
    assert fixes[0]["title"].startswith("create claim ")


def assert_equal_fixes(folder: Path, target: str | Path, cluster: Path) -> list[dict[str, Any]]:
    """Return the fixes of a dump; those of its snapshot must be equal."""
    space = ("-n", "shop") if isinstance(target, str) else ()
    taken(kschedx("snapshot", "-s", cluster, "-o", folder / "cut.json"))
    dumped, kept = (why(target, *space, "-s", path)["fixes"] for path in (cluster, folder / "cut.json"))
    assert dumped == kept
    result: list[dict[str, Any]] = dumped
    return result
