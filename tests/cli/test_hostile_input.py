"""Markup, terminal escapes, and shell text of a cluster are shown and have no effect."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kschedx.cli.streams import print_note
from tests.builders import Manifest, node, pod
from tests.cli.manifests import NODE, changed, small_pod, write
from tests.command import ROOT, kschedx

RED = "\x1b[31mred\x1b[0m"
HOSTILE = {
    "an escape": (RED, r"\x1b[31mred\x1b[0m"),
    "a one-byte escape": ("\x9b2J", r"\x9b2J"),
    "a bell": ("a\ab", r"a\x07b"),
    "a new line": ("a\nb", r"a\nb"),
    "a return": ("a\rb", r"a\rb"),
    "a turned line": ("a\u202eb", r"a\u202eb"),
    "rich markup": ("[bold red]x[/]", "[bold red]x[/]"),
    "a rich link": ("[link=https://example.com]x[/link]", "[link=https://example.com]x[/link]"),
    "an emoji code": (":smiley:", ":smiley:"),
    "a workflow command": ("::error::x", r":\x3aerror::x"),
    "a command of Azure Pipelines": ("##vso[task.x]y", r"#\x23vso[task.x]y"),
    "a percent": ("%s%n%(x)s{0}{x}", "%s%n%(x)s{0}{x}"),
}
SCREENS = ((), ("-o", "wide"), ("--nodes", "all"))

each = pytest.mark.parametrize(("raw", "shown"), HOSTILE.values(), ids=HOSTILE)


def control_characters(text: str) -> list[str]:
    """Return the characters of an output that control a terminal."""
    return [
        c
        for c in text
        if c != "\n" and (c < " " or "\x7f" <= c < "\xa0" or c in "\u202a\u202b\u202c\u202d\u202e\u2028\u2029")
    ]


@each
def test_a_hostile_node_name_is_escaped(raw: str, shown: str, tmp_path: Path) -> None:
    cluster = write(tmp_path, node(raw, taints=["x:NoSchedule"]), node("b"))
    texts = [
        kschedx("why", write(tmp_path, small_pod("p"), name="pod.yaml"), "-s", cluster, *screen).out
        for screen in SCREENS
    ]
    assert not [control_characters(text) for text in texts if control_characters(text)]
    assert all(shown in text for text in texts[1:])


@each
def test_a_hostile_taint_label_and_pod_are_escaped(raw: str, shown: str, tmp_path: Path) -> None:
    port = {"containerPort": 80, "hostPort": 80}
    wanted = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["nvme"]}]}
    asking = changed(small_pod("new"), "spec.containers.0.ports", [port])
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wanted]}}
    asking = changed(asking, "spec.affinity", {"nodeAffinity": required})
    holder = pod(raw, on="a", containers=[{"name": "main", "ports": [port]}])
    place = changed(node("a", labels={"disk": raw}), "spec.taints", [{"key": raw, "effect": "NoSchedule"}])
    result = kschedx(
        "why", write(tmp_path, asking, name="pod.yaml"), "-s", write(tmp_path, place, holder), "--node", "a"
    )
    assert result.code == 1
    assert not control_characters(result.out)
    assert result.out.count(shown) >= 3


@each
def test_a_hostile_note_is_one_line(raw: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_note(f"a {raw}")
    assert capsys.readouterr().err == f"note: a {shown}\n"
    elsewhere = [path.name for path in (ROOT / "kschedx").rglob("*.py") if 'echo(f"note: ' in path.read_text()]
    assert elsewhere == ["streams.py"]


@each
def test_a_hostile_error_is_one_line(raw: str, shown: str, tmp_path: Path) -> None:
    twice = pod(raw), pod(raw, labels={"other": "content"})
    result = kschedx("why", write(tmp_path, small_pod("p"), name="pod.yaml"), "-s", write(tmp_path, NODE, *twice))
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert not control_characters(result.err)
    assert shown in line


@each
def test_a_hostile_argument_is_escaped(raw: str, shown: str, tmp_path: Path) -> None:
    cluster = write(tmp_path, NODE)
    for arguments in (("why", raw, "-s", cluster), ("why", "x", "-s", raw), ("why", "x", "-o", raw), (raw,)):
        result = kschedx(*arguments)
        assert result.code == 2
        assert not control_characters(result.err)


@each
def test_lists_and_yaml_have_no_control_characters(raw: str, shown: str, tmp_path: Path) -> None:
    asking = small_pod(raw, namespace=raw)
    unknown: Manifest = {"apiVersion": "example.com/v1", "kind": raw, "metadata": {"name": raw}}
    long = changed(
        node("b"), "status.conditions", [{"type": "Ready", "status": "False", "message": f"{'a ' * 60}{raw}"}]
    )
    cluster = write(tmp_path, node(raw, labels={"a": raw}), long, asking, unknown)
    for answer in (("why", "--all-pending", "-o", "name"), ("nodes", "-o", "yaml"), ("doctor", "-o", "yaml")):
        result = kschedx(*answer, "-s", cluster)
        assert result.out, result.err
        assert not control_characters(result.out)
        assert not re.search(r"^\s*::error|##vso\[", result.out, re.MULTILINE)


@each
def test_documents_keep_the_text_and_terminals_get_no_escape(raw: str, shown: str, tmp_path: Path) -> None:
    files = (write(tmp_path, small_pod("p"), name="pod.yaml"), "-s", write(tmp_path, node(raw), name="cluster.yaml"))
    printed = kschedx("why", *files, "-o", "json").out
    assert json.loads(printed)["bestNodes"] == [raw]
    assert not set(control_characters(printed)) - set("\u202e")


PAGES = {
    "why": ("why", "pod.json"),
    "why --all-pending": ("why", "--all-pending"),
    "nodes": ("nodes",),
    "doctor": ("doctor",),
    "simulate": ("simulate", "--remove-node", "b"),
    "drain": ("drain", "--each"),
    "survive": ("survive", "--each", "node"),
    "fit": ("fit", "pod.json"),
    "scale-down": ("scale-down",),
    "deschedule": ("deschedule", "--policy", "policy.yaml"),
    "diff-profiles": ("diff-profiles", "default", "binpack", "--all"),
}
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: all
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 20, memory: 20, pods: 20}, targetThresholds: {cpu: 50, memory: 50, pods: 50}}
  plugins: {balance: {enabled: [LowNodeUtilization]}}
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("question", PAGES.values(), ids=PAGES)
def test_no_form_of_an_answer_has_control_characters(question: tuple[str, ...], tmp_path: Path) -> None:
    raw = "".join(text for text, _ in HOSTILE.values())
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": raw, "uid": "r", "controller": True}
    running = [
        changed(pod(f"p{number}{raw}", on=raw, containers=[{"name": raw}]), "metadata.ownerReferences", [owner])
        for number in range(4)
    ]
    taint = {"key": raw, "value": raw, "effect": "NoSchedule"}
    nodes = node(raw, labels={"a": raw}), changed(node("b"), "spec.taints", [taint])
    cluster = write(tmp_path, *nodes, *running)
    write(tmp_path, small_pod("p"), name="pod.json")
    (tmp_path / "policy.yaml").write_text(POLICY)
    for form in ("wide", "html", "markdown", "svg"):
        result = kschedx(*question, "-s", cluster, "-o", form, cwd=tmp_path)
        assert result.code in (0, 1, 3), result.err
        assert not set(control_characters(result.out)), form
