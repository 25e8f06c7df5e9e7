"""Files, folders, and standard input, and the errors about other content."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kschedx.errors import InputError
from kschedx.sources import compression, files, manifests
from kschedx.sources.files import load_documents
from kschedx.sources.lists import from_objects
from tests.builders import node
from tests.command import kschedx
from tests.sources.dumps import forms

POD = '{"kind": "Pod", "a": 1}'


def read(path: Path | str) -> list[dict[str, Any]]:
    decoder = msgspec.json.Decoder(list[dict[str, Any]])
    return [item for batch in files.read(str(path)) for item in batch.decode(decoder)]


def error(path: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        read(path)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


THROTTLED = "I1120 08:50:05.100000   12345 request.go:697] Waited for 1.19s, request: GET:https://10.0.0.1/apis\n"
"""A log line of kubectl, if its standard error was redirected to the file."""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", POD),
        ("a.yaml", POD),
        ("noextension", POD),
        ("a.yaml", "kind: Pod\na: 1\n"),
        ("a.json", "kind: Pod\na: 1\n"),
        ("a.yaml", "{kind: Pod, a: 1}"),
        ("a.yaml", "[{kind: Pod, a: 1}]"),
        ("a.json", b"\xef\xbb\xbf\r\n" + POD.encode()),
        ("a.yaml", b"\xef\xbb\xbfkind: Pod\r\na: 1\r\n"),
        ("a.json", POD.encode("utf-16")),
        ("a.yaml", "kind: Pod\r\na: 1\r\n".encode("utf-16")),
        ("a.json", POD + "\n---\n"),
        ("a.json", f"{THROTTLED}{POD}"),
        ("a.yaml", f"Warning: v1 ComponentStatus is deprecated\n{THROTTLED}kind: Pod\na: 1\n"),
        ("a.json.gz", gzip.compress(POD.encode(), mtime=0)),
        ("a.yaml", gzip.compress(b"kind: Pod\na: 1\n", mtime=0)),
    ],
)
def test_a_pod_in_every_format(name: str, content: str | bytes) -> None:
    write(name, content)
    assert read(name) == [{"kind": "Pod", "a": 1}]


def test_a_folder_in_order_of_names_without_hidden_files() -> None:
    for name in (
        "d/2.json",
        "d/10.yaml",
        "d/1/b.yml",
        "d/1/a.json",
        "d/z.txt",
        "d/.h.json",
        "d/.git/x.json",
        "d/3.json.gz",
    ):
        content = json.dumps({"kind": "Pod", "n": name})
        write(name, gzip.compress(content.encode(), mtime=0) if name.endswith(".gz") else content)
    write("d/empty.yaml", "# nothing\n")
    assert [item["n"] for item in read("d")] == ["d/1/a.json", "d/1/b.yml", "d/10.yaml", "d/2.json", "d/3.json.gz"]


@pytest.mark.parametrize("text", [POD, "kind: Pod\na: 1\n", f"{POD}\n{POD}"])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read("-")[0] == {"kind": "Pod", "a": 1}


def test_a_named_pipe() -> None:
    items = ",\n".join(json.dumps({"kind": "Pod", "a": number, "x": "x" * 100}) for number in range(30_000))
    os.mkfifo("pipe")
    writer = threading.Thread(
        target=write, args=("pipe", f'{{"kind": "List", "items": [\n{items},\n{{"kind": 1,}}\n]}}')
    )
    writer.start()
    assert error("pipe") == "pipe (document 1): not valid JSON: trailing comma in object, at column 12"
    writer.join()


def test_an_error_in_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: Pod\nkind: Node\n")))
    assert error("-") == 'standard input:2: key "kind" is written twice (first on line 1)'


def test_documents_with_places() -> None:
    write("a.yaml", "kind: A\n---\n\nkind: List\nitems:\n- kind: B\n- kind: C\n")
    items = [(document["kind"], str(place), place.document) for document, place in load_documents("a.yaml")]
    assert items == [("A", "a.yaml:1", 1), ("B", "a.yaml:6", 2), ("C", "a.yaml:7", 2)]


def test_dicts() -> None:
    batch = from_objects([{"kind": "Pod", "a": 1}, {"kind": "Node"}])
    assert batch.decode(msgspec.json.Decoder(list[dict[str, Any]])) == [{"kind": "Pod", "a": 1}, {"kind": "Node"}]
    assert str(batch.origin.place(1)) == "document 2"


HELM = "looks like a template of a Helm chart (render it first, with `helm template`)"
INCOMPLETE = (
    "not valid YAML: mapping values are not allowed in this context, at column 33 "
    "(kubectl failed there, so the dump is not complete)"
)
ALLOWED = "(allowed are Kubernetes objects in YAML or JSON)"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", f"x: holds no objects {ALLOWED}"),
        ("# only this\n---\n", f"x: holds no objects {ALLOWED}"),
        ("kind: Pod\nmetadata:\n  name: {{ .Values.name }}\n", f"x:3: {HELM}"),
        ("{{- if .Values.a }}\nkind: Pod\n{{- end }}\n", f"x:1: {HELM}"),
        ("kind: Pod\nmetadata:\n  name: {{ name }}\n", "x:3: looks like a template (render it first)"),
        ("# syntax\nFROM alpine:3\nRUN true\n", f"x: looks like a Dockerfile {ALLOWED}"),
        ("#!/bin/sh\nls\n", f"x: looks like a script {ALLOWED}"),
        ("<html></html>", f"x: looks like XML or HTML {ALLOWED}"),
        ('resource "a" "b" {\n  c = 1\n}\n', f"x: looks like a Terraform file {ALLOWED}"),
        (
            "LAST SEEN   TYPE      REASON\n5m          Warning   FailedScheduling\n",
            ("x: looks like a table of events, not the output of `get -o yaml` "
            "(`kschedx reason - < FILE` explains the events in it)"),
        ),
        ("NAME   READY\na      1/1\n", f"x: looks like a table printed by kubectl without -o yaml {ALLOWED}"),
        (
            "Name:  a\nRoles: b\n",
            f"x: looks like {manifests.DESCRIBED} (`kschedx reason - < FILE` explains the events in it)",
        ),
        ("error: You must be logged in\n", f"x: looks like an error of kubectl {ALLOWED}"),
        ("kind: Pod\nError from server (Forbidden): x: y\n", f"x:2: {INCOMPLETE}"),
        ("services:\n  a:\n    image: b\n", f"x: looks like a Docker Compose file {ALLOWED}"),
        ("[tool]\na = 1\n", f"x: looks like a TOML or INI file {ALLOWED}"),
        ("replicas: 3\n", 'x:1: no "kind", so this is not a Kubernetes object'),
        ("some words\n", "x:1: text, not a Kubernetes object"),
        (b"\x28\xb5\x2f\xfd", "x: damaged zstd data: it is cut short"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 99, "x: damaged zstd data"),
        (b"a" * 257 + b"ustar\x0000", "x: a tar archive that is damaged or cut short"),
        (b"a" * 257 + b"ustar\x0000" + b"a" * 999, "x: a tar archive that is damaged or cut short"),
        (gzip.compress(gzip.compress(b"a", mtime=0), mtime=0), f"x: looks like data compressed twice {ALLOWED}"),
        (gzip.compress(b'{"kind": "Pod"}' * 99, mtime=0)[:-20], "x: damaged gzip data: it is cut short"),
        ("kind: Pod\n".encode("utf-16")[:-1], "x: not valid UTF-16"),
        (b"ab\x00cd", f"x: looks like binary data {ALLOWED}"),
        ('{"kind": "Pod",}', "x:1: not valid JSON: trailing comma in object, at column 16"),
    ],
)  # fmt: skip
def test_files_of_other_tools(content: str | bytes, message: str) -> None:
    write("x", content)
    assert error("x") == message


@pytest.mark.parametrize(
    "content",
    [
        "[a]" + "\n" * 200_000 + "!",
        "[a]\n" * 50_000 + "!",
        "#\n" * 100_000 + "!",
        "\n" * 200_000 + "[a",
        "services:" + "\n" * 200_000 + "- x: [",
        "Name:  " + " " * 200_000,
        "{{" + " " * 200_000 + "\n",
        "{{" * 200_000 + "\n",
        "resource" + "a" * 200_000,
        "---" * 100_000 + "\na: [",
    ],
)  # fmt: skip
def test_a_long_text_is_recognized_quickly(content: str) -> None:
    write("x", content)
    started = time.monotonic()
    assert error("x").startswith("x:")
    assert time.monotonic() - started < 5


def test_braces_in_a_rendered_manifest_are_no_template() -> None:
    write("a.yaml", 'kind: Pod\nargs: ["{{ .Name }}"]\n')
    assert read("a.yaml") == [{"kind": "Pod", "args": ["{{ .Name }}"]}]


def test_what_commands_printed_in_a_sosreport() -> None:
    """Such files are recognized by name; errors that a command printed are left out."""
    folder = Path("sos_commands/kubernetes")
    folder.mkdir(parents=True)
    write(f"{folder}/kubectl_get_-o_json_nodes", '{"kind": "NodeList", "apiVersion": "v1", "items": [{"spec": {}}]}')
    write(f"{folder}/kubectl_get_-o_json_--all-namespaces_foo", "error: the server doesn't have a resource type\n")
    write(f"{folder}/kubectl_describe_nodes", "Name:  a\n")
    assert read("sos_commands") == [{"spec": {}, "kind": "Node", "apiVersion": "v1"}]


def test_missing_files_and_folders() -> None:
    write("pods.yaml", "kind: Pod")
    write("empty/readme.md", "")
    write("nothing/a.yaml", "")
    assert error("pod.yaml") == 'pod.yaml: no such file or folder (did you mean "pods.yaml"?)'
    assert error("no/such") == "no/such: no such file or folder"
    Path("pods").mkdir()
    assert error("pod/web.yaml") == 'pod/web.yaml: no such file or folder (did you mean "pods"?)'
    assert error("empty") == "empty: a folder without manifests (allowed are *.yaml, *.yml, *.json)"
    assert error("nothing") == f"nothing: holds no objects {ALLOWED}"
    assert error("pods.yaml/x") == "pods.yaml/x: cannot be read: not a directory"


def test_an_unreadable_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    write("a.yaml", "kind: Pod")
    monkeypatch.setattr(Path, "open", refuse)
    assert error("a.yaml") == "a.yaml: cannot be read: permission denied"


def test_a_long_file_is_read_as_a_stream_also_when_gzipped() -> None:
    items = ",\n".join(json.dumps({"kind": "Pod", "n": number, "x": "x" * 100}) for number in range(30_000))
    text = f'{{"kind": "List", "items": [\n{items}\n]}}'.encode()
    write("a.json", text)
    write("b.json", gzip.compress(text, 1, mtime=0))
    assert len(list(files.read("a.json"))) > 1
    assert [item["n"] for item in read("a.json")] == list(range(30_000))
    assert read("b.json") == read("a.json")


@pytest.mark.parametrize("packed", ["folder", "tar"])
def test_unreadable_files_of_many_may_be_left_out(packed: str) -> None:
    several = {"a.yaml": b"kind: Pod\n---\n{", "b.yaml": b"", "c.yaml": b"kind: Node\n", "d.json.gz": b"\x1f\x8b"}
    path = str(forms.folder(Path("x"), several))
    if packed == "tar":
        path = "x.tar"
        Path(path).write_bytes(forms.tar(several))
    refused: list[InputError] = []
    kinds = [
        item["kind"]
        for batch in files.read(path, refuse=refused.append)
        for item in batch.decode(msgspec.json.Decoder(list[dict[str, Any]]))
    ]
    assert sorted(kinds) == ["Node", "Pod"]
    assert sorted(Path(error.place.source).name.removeprefix("x.tar: ") for error in refused) == [
        "a.yaml",
        "d.json.gz",
    ]


def test_a_broken_file_in_a_folder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise OSError(5, "Input/output error")

    write("d/a.yaml", POD)
    monkeypatch.setattr(Path, "open", lambda *_, **__: Broken())
    assert error("d") == "d/a.yaml: cannot be read: input/output error"


def test_a_text_beyond_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_MAX_TEXT", 3 << 20)
    fits, longer = (f"# {'x' * size}\nkind: Pod\n" for size in (2 << 20, 4 << 20))
    write("fits.yaml", fits)
    write("longer.yaml", longer)
    assert read("fits.yaml") == [{"kind": "Pod"}]
    assert error("longer.yaml").startswith("longer.yaml: a text of more than 3 MB that cannot be read in pieces")


@pytest.mark.parametrize("command", [("merge",), ("simulate", "-s", "cluster.yaml", "--changes")])
def test_a_device_without_end_is_too_large(
    command: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "_LARGEST_WHOLE", 1000)
    (tmp_path / "cluster.yaml").write_text(json.dumps(node("a")), encoding="utf-8")
    result = kschedx(*command, "/dev/zero", cwd=tmp_path)
    assert (result.code, result.err.endswith("file too large\n")) == (2, True), result.err
