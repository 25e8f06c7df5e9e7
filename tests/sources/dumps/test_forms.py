"""The same cluster in every form: the same pods and nodes, and what is said about the form."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kschedx.errors import InputError
from kschedx.loading import load
from kschedx.snapshot.snapshot import Snapshot
from kschedx.sources.dumps import Dump, LeftOut
from tests.sources.dumps import forms
from tests.sources.dumps.forms import COMPRESSIONS, Files

TREES: dict[str, tuple[Callable[[], Files], str]] = {
    "manifests": (forms.manifests, ""),
    "cluster-info": (forms.cluster_info, "kubectl cluster-info dump"),
    "cluster-info-yaml": (lambda: forms.cluster_info("yaml"), "kubectl cluster-info dump"),
    "cluster-info-in-a-file": (lambda: {"a/x.json": forms.cluster_info_stdout()}, "kubectl cluster-info dump"),
    "cluster-info-of-2017": (forms.cluster_info_of_2017, "kubectl cluster-info dump"),
    "cluster-info-of-2017-in-a-file": (
        lambda: {"x.json": forms.cluster_info_stdout_of_2017()},
        "kubectl cluster-info dump",
    ),
    "insights": (forms.insights, "Insights archive"),
    "must-gather": (forms.must_gather, "must-gather"),
    "must-gather-of-two-images": (
        lambda: forms.must_gather(forms.inspected(), forms.inspected(["shop"])),
        "must-gather",
    ),
    "must-gather-of-nodes": (
        lambda: {
            f"must-gather.local.1/{node}/{forms.DIGEST}/{name}": content
            for node in ("node-a", "node-b")
            for name, content in forms.inspected().items()
        },
        "must-gather",
    ),
    "must-gather-in-a-must-gather": (
        lambda: {
            f"{at}{name}": content for at in ("", "namespaces/all/") for name, content in forms.inspected().items()
        },
        "must-gather",
    ),
    "inspect": (
        lambda: {f"inspect.local.7/{name}": content for name, content in forms.inspected().items()},
        "oc adm inspect",
    ),
    "inside-a-must-gather": (forms.inspected, "must-gather"),
    "support-bundle": (forms.support_bundle, "troubleshoot support bundle"),
    "old-support-bundle": (lambda: forms.support_bundle(arrays=True), "troubleshoot support bundle"),
    "sonobuoy": (forms.sonobuoy, "Sonobuoy archive"),
    "old-sonobuoy": (lambda: forms.sonobuoy(is_old=True), "Sonobuoy archive"),
    "simulator": (lambda: {"x.json": forms.as_json(forms.simulator_export())}, "kube-scheduler-simulator export"),
}


def summary(snapshot: Snapshot) -> object:
    """What the law is about."""
    pods = snapshot.pods
    return sorted(node.name for node in snapshot.cluster.nodes), sorted(
        (pods.namespaces[row], pods.names[row], pods.node_names[row]) for row in range(len(pods))
    )


EXPECTED = summary(Snapshot.from_objects(forms.EVERYTHING))


def read_whole(path: Path | str) -> tuple[Snapshot, list[Dump]]:
    everything: list[Dump | LeftOut] = []
    snapshot = load([str(path)], see=everything.append)
    seen = [item for item in everything if isinstance(item, Dump)]
    assert summary(snapshot) == EXPECTED
    assert snapshot.source.formats == tuple(dict.fromkeys(dump.format for dump in seen))
    return snapshot, seen


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", TREES)
def test_a_folder(form: str, tmp_path: Path) -> None:
    files, format_ = TREES[form]
    _, seen = read_whole(forms.folder(tmp_path / "dump", files()))
    assert [dump.format for dump in seen] == ([format_] if format_ else [])


@pytest.mark.sample(4)
@pytest.mark.parametrize("form", TREES)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_tar_archive(form: str, compression: str, tmp_path: Path) -> None:
    files, format_ = TREES[form]
    path = tmp_path / "x"
    path.write_bytes(COMPRESSIONS[compression](forms.tar(files())))
    _, seen = read_whole(path)
    assert [dump.format for dump in seen] == ([format_] if format_ else [])


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", TREES)
def test_a_zip_archive(form: str, tmp_path: Path) -> None:
    files, format_ = TREES[form]
    (tmp_path / "x").write_bytes(forms.zipped(files()))
    _, seen = read_whole(tmp_path / "x")
    assert [dump.format for dump in seen] == ([format_] if format_ else [])


@pytest.mark.parametrize("dialect", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_dialect_of_tar_with_long_names(dialect: int, tmp_path: Path) -> None:
    deep = "/".join(["d" * 60] * (3 if dialect == tarfile.USTAR_FORMAT else 5))
    (tmp_path / "x").write_bytes(forms.tar({f"{deep}/{k}": v for k, v in forms.manifests().items()}, dialect))
    read_whole(tmp_path / "x")


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_method_of_zip(method: int, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(forms.zipped(forms.manifests(), method))
    read_whole(tmp_path / "x")


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_one_file(suffix: str, compression: str, tmp_path: Path) -> None:
    write = forms.as_json if suffix == "json" else forms.as_yaml
    pack = COMPRESSIONS[compression]
    for content in (
        write(forms.of("List", "", items=forms.EVERYTHING)),
        write(forms.simulator_export()).removeprefix(b"---\n"),
        forms.cluster_info_stdout(suffix),
    ):
        (tmp_path / "any").write_bytes(pack(content))
        read_whole(tmp_path / "any")


class _Pipe(io.BytesIO):
    """It can be read once, a little at a time."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: object) -> int:
        raise io.UnsupportedOperation("seek")

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size, 1000) if size and size > 0 else size)


@pytest.mark.sample(4)
@pytest.mark.parametrize("seekable", [True, False])
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("packed", ["tar", "zip", "file"])
def test_standard_input(packed: str, compression: str, seekable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if packed == "zip":
        data = forms.zipped(forms.must_gather())
    else:
        content = forms.tar(forms.must_gather()) if packed == "tar" else forms.cluster_info_stdout("yaml")
        data = COMPRESSIONS[compression](content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    if not seekable:
        monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": _Pipe(data), "closed": False})())
    read_whole("-")


def test_a_dump_and_what_completes_it_beside(tmp_path: Path) -> None:
    files = forms.must_gather()
    extra = forms.as_yaml(forms.of("PriorityClass", "high", version="scheduling.k8s.io/v1", value=7))
    snapshot, seen = read_whole(forms.folder(tmp_path / "d", {**files, "extra.yaml": extra}))
    assert snapshot.priority_classes["high"].value == 7
    assert [dump.place for dump in seen] == [f"{tmp_path / 'd'}: must-gather.local.123"]


@pytest.mark.parametrize("form", ["must-gather", "cluster-info", "insights", "manifests"])
def test_files_that_are_no_manifests_beside(form: str, tmp_path: Path) -> None:
    others = {
        "values.yaml": b"replicas: 3\n",
        "package.json": b'{"name": "app", "version": "1.0.0"}\n',
        "notes.yml": b"all is lost\n",
    }
    if form != "manifests":
        others["chart.yaml"] = b"name: {{ .Values.name }}\n  - {{ x }}\n"
    built, _ = TREES[form]
    path = forms.folder(tmp_path / "d", {**{f"dump/{name}": text for name, text in built().items()}, **others})
    snapshot, _ = read_whole(path)
    assert sorted(snapshot.source.left_out) == sorted(others)


def test_files_that_are_no_manifests_alone(tmp_path: Path) -> None:
    path = forms.folder(tmp_path / "d", {"values.yaml": b"replicas: 3\n"})
    with pytest.raises(InputError, match=r"values\.yaml.*not a Kubernetes object"):
        load([str(path)])


def lacking(dumps: list[Dump]) -> dict[str, str]:
    return {lack.kind: lack.what for dump in dumps for lack in dump.lacks}


def test_what_dumps_lack(tmp_path: Path) -> None:
    must_gather = lacking(read_whole(forms.folder(tmp_path / "a", forms.must_gather()))[1])
    assert must_gather["Pod"] == "pods of namespaces that were not gathered"
    assert must_gather["PriorityClass"] == "every PriorityClass"
    assert "Node" not in must_gather
    assert "StorageClass" not in must_gather

    everywhere = lacking(read_whole(forms.folder(tmp_path / "b", forms.cluster_info()))[1])
    assert "Pod" not in everywhere
    assert {"PersistentVolume", "Namespace", "PriorityClass", "StatefulSet"} <= set(everywhere)

    bundle = lacking(read_whole(forms.folder(tmp_path / "c", forms.support_bundle()))[1])
    assert not {"Pod", "PersistentVolume", "PriorityClass", "Service"} & set(bundle)
    assert "CSINode" in bundle

    (tmp_path / "d").write_bytes(forms.as_json(forms.simulator_export()))
    _, (simulator,) = read_whole(tmp_path / "d")
    assert simulator.holds == ("a KubeSchedulerConfiguration",)
    assert "Service" in lacking([simulator])


@pytest.mark.parametrize("form", ["folder", "stdout"])
def test_a_cluster_info_dump_of_few_namespaces_lacks_pods(form: str, tmp_path: Path) -> None:
    few = ("kube-system", "shop")
    if form == "folder":
        path = forms.folder(tmp_path / "d", forms.cluster_info(namespaces=few))
    else:
        path = tmp_path / "d"
        path.write_bytes(forms.cluster_info_stdout(namespaces=few))
    seen: list[Dump | LeftOut] = []
    load([str(path)], see=seen.append)
    assert (
        lacking([item for item in seen if isinstance(item, Dump)])["Pod"]
        == "pods of namespaces that were not dumped (--all-namespaces dumps them)"
    )


def test_an_empty_file_of_a_dump_is_a_lack_and_an_empty_list_is_none(tmp_path: Path) -> None:
    files = forms.support_bundle()
    top = "support-bundle-2026-11-21T20_00_00"
    for name in ("pvs.json", "pvcs/default.json", "pvcs/shop.json"):
        files[f"{top}/cluster-resources/{name}"] = b""
    files[f"{top}/cluster-resources/priorityclasses.json"] = b"null"
    lacks = lacking(read_whole(forms.folder(tmp_path / "d", files))[1])
    assert lacks["PersistentVolume"] == "the content of cluster-resources/pvs.json, which is empty"
    assert lacks["PersistentVolumeClaim"] == (
        "the content of cluster-resources/pvcs/default.json and 1 more, which are empty"
    )
    assert "PriorityClass" not in lacks


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"nodes": [], "other": 1}', 'x:1: no "kind", so this is not a Kubernetes object'),
        ("nodes:\n- a\n", 'x:1: no "kind", so this is not a Kubernetes object'),
        ('{"pods": [}', "x:1: not valid JSON: invalid character '}', at column 11"),
        ('{"pods": {}, "nodes": []}', "x: pods: not an array"),
        ('{"pods": [7], "nodes": []}', "x: pods: not an object, so this is not a Kubernetes object"),
        ('{"pods": [{"metadata": {"name": 7}}], "nodes": []}', "x: pods[0]: metadata.name: expected a string"),
    ],
)
def test_what_begins_as_a_simulator_export(
    content: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").write_text(content)
    with pytest.raises(InputError) as caught:
        load(["x"])
    assert str(caught.value).startswith(message)


def test_two_dumps_are_not_one(tmp_path: Path) -> None:
    files = {f"{top}/{name}": content for top in "ab" for name, content in forms.inspected().items()}
    load([str(forms.folder(tmp_path / "d", files))])  # equal objects count once
    files = {
        name: content.replace(b"500m", b"600m") if name.startswith("b/") else content for name, content in files.items()
    }
    with pytest.raises(InputError, match="an object of this name already exists"):
        load([str(forms.folder(tmp_path / "d", files))])


@pytest.mark.parametrize("form", ["must-gather", "inspect"])
def test_a_list_wins_over_single_objects_in_either_order(form: str, tmp_path: Path) -> None:
    files = TREES[form][0]()
    for name in files:
        if "/shop/pods/web-1/web-1.yaml" in name:
            files[name] = forms.as_yaml(forms.pod("web-1", "shop", "node-a", older="true"))
    alone = {name: content for name, content in files.items() if not name.endswith("shop/core/pods.yaml")}
    (tmp_path / "x").write_bytes(forms.tar(files))
    read_whole(tmp_path / "x")
    read_whole(forms.folder(tmp_path / "d", files))
    snapshot = load([str(forms.folder(tmp_path / "alone", alone))])
    assert len(snapshot.pods) == len(forms.PODS)
    assert summary(snapshot) != EXPECTED


def test_a_must_gather_that_is_only_inside_of_one(tmp_path: Path) -> None:
    files = {f"must-gather.local.1/x/namespaces/all/{name}": content for name, content in forms.inspected().items()}
    read_whole(forms.folder(tmp_path / "d", files))
