"""Bad input is refused in one clear line with the place, the value, and the nearest valid one; exit code 2."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kschedx import loading
from tests.builders import Manifest, pod
from tests.cli.manifests import NODE, POD, changed, configuration, write
from tests.command import CommandResult, kschedx

CPU = "spec.containers.0.resources.requests.cpu"
TERM = {
    "labelSelector": {"matchExpressions": [{"key": "app", "operator": "in", "values": ["web"]}]},
    "topologyKey": "zone",
}
BAD_SELECTOR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}


@dataclass(frozen=True)
class Bad:
    """The files of a folder, the arguments of the command in it, and the texts that its error line must contain."""

    name: str
    says: tuple[str, ...]
    arguments: tuple[str, ...] = ("why", "pod.yaml", "-s", "cluster.yaml")
    cluster: str | tuple[Manifest, ...] = (NODE,)
    pod: str | tuple[Manifest, ...] = (POD,)
    config: str | tuple[Manifest, ...] = ()

    def run(self, folder: Path) -> CommandResult:
        for name, content in (("cluster.yaml", self.cluster), ("pod.yaml", self.pod), ("config.yaml", self.config)):
            if isinstance(content, str):
                (folder / name).write_text(content, encoding="utf-8")
            else:
                write(folder, *content, name=name)
        config = ("--config", "config.yaml") if self.config else ()
        return kschedx(*self.arguments, *config, cwd=folder)


FILES = [
    Bad(
        "a missing snapshot",
        ("clustr.yaml", "no such file", '"cluster.yaml"'),
        ("why", "pod.yaml", "-s", "clustr.yaml"),
    ),
    Bad("a missing pod file", ("pot.yaml", "no such file", '"pod.yaml"'), ("why", "pot.yaml", "-s", "cluster.yaml")),
    Bad("no snapshot", ("--snapshot",), ("why", "pod.yaml")),
    Bad("an empty snapshot", ("cluster.yaml", "holds no objects"), cluster=""),
    Bad("the folder is empty", ("empty", "without manifests", "*.yaml"), ("why", "pod.yaml", "-s", "empty")),
    Bad("standard input twice", ("standard input",), ("why", "-", "-s", "-")),
    Bad("broken YAML", ("cluster.yaml:2", "not valid YAML"), cluster="kind: Node\n  name: [\n"),
    Bad("broken JSON", ("cluster.yaml:2", "not valid JSON"), cluster='{"kind": "Node",\n "metadata": }'),
    Bad("JSON that ends early", ("cluster.yaml", "not valid JSON"), cluster='{"kind": "Node", "metadata": {'),
    Bad("a key twice", ("cluster.yaml:2", '"kind"', "line 1"), cluster="kind: Node\nkind: Pod\n"),
    Bad("a list of nothing", ("cluster.yaml",), cluster="- 1\n- 2\n"),
    Bad("a table of kubectl's", ("cluster.yaml", "kubectl"), cluster="NAME    STATUS   AGE\nnode-01   Ready   3d\n"),
    Bad("a Compose file", ("cluster.yaml", "Docker Compose"), cluster="services:\n  web:\n    image: x\n"),
    Bad("a Helm template", ("cluster.yaml:1", "helm template"), cluster="{{- if .Values.x }}\nkind: Pod\n{{- end }}\n"),
    Bad("a Terraform file", ("cluster.yaml", "Terraform"), cluster='resource "x" "y" {\n  a = 1\n}\n'),
    Bad("binary data", ("cluster.yaml", "binary data"), cluster="\0\1\2"),
]

OBJECTS = [
    Bad(
        "an unknown kind",
        ("cluster.yaml:22", ": kind: ", '"Podd"', 'did you mean "Pod"?'),
        cluster=(NODE, {"apiVersion": "v1", "kind": "Podd", "metadata": {"name": "x"}}),
    ),
    Bad(
        "a kind in the wrong group",
        ("cluster.yaml", '"Deployment"', "apps"),
        cluster=(NODE, {"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "x"}}),
    ),
    Bad("no kind", ("cluster.yaml", "kind"), cluster=(NODE, {"metadata": {"name": "x"}})),
    Bad(
        "a bad quantity of a pod",
        ("cluster.yaml", "Pod shop/web-0", ": spec.containers[0].resources.requests[cpu]", "1 core"),
        cluster=(NODE, changed(POD, CPU, "1 core")),
    ),
    Bad(
        "a bad quantity of a node",
        ("cluster.yaml", "Node node-01", ": status.allocatable[memory]", "8GiB", "8Gi"),
        cluster=(changed(NODE, "status.allocatable.memory", "8GiB"),),
    ),
    Bad(
        "a bad quantity of the pod to explain",
        ("pod.yaml", "Pod shop/web-0", ": spec.containers[0].resources.requests[cpu]", "1 core"),
        pod=(changed(POD, CPU, "1 core"),),
    ),
    Bad(
        "a selector that the API server refuses",
        ("pod.yaml", "Pod shop/web-0", "labelSelector.matchExpressions[0].operator", '"in"'),
        pod=(changed(POD, "spec.affinity", BAD_SELECTOR),),
    ),
    Bad(
        "a quantity of a pod in a namespace that does not exist",
        ("pod.yaml", "Pod web-0", "spec.containers[0].resources.requests[cpu]", "found '1 core'"),
        cluster=(
            changed(NODE, "metadata.creationTimestamp", "2026-01-01T00:00:00Z"),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        ),
        pod=(changed(changed(POD, "metadata.namespace", "gone"), CPU, "1 core"),),
    ),
    Bad(
        "a number where a text belongs",
        ("cluster.yaml", "Pod shop/web-0", "spec.nodeName"),
        cluster=(NODE, changed(POD, "spec.nodeName", 7)),
    ),
    Bad(
        "two pods of a name",
        ("cluster.yaml", "Pod shop/web-0", "already exists", "with other content"),
        cluster=(NODE, POD, changed(POD, "spec.priority", 7)),
    ),
    Bad(
        "a pod on a node that is not there",
        ("cluster.yaml", ": spec.nodeName", '"node-1"', 'did you mean "node-01"?'),
        cluster=(NODE, changed(POD, "spec.nodeName", "node-1")),
    ),
    Bad("a cluster without nodes", ("cluster.yaml", "without nodes", "1 Pod"), cluster=(pod("other"),)),
    Bad("pods without their nodes", ("cluster.yaml", "without nodes", "1 Pod"), cluster=(pod("other", on="gone"),)),
]

CONFIGURATION = [
    Bad(
        "an unknown profile",
        ('"batch"', "default-scheduler"),
        ("why", "pod.yaml", "-s", "cluster.yaml", "--profile", "batch"),
    ),
    Bad(
        "an unknown plugin",
        ("config.yaml:10: profiles[0].plugins.score.enabled[0].name", 'did you mean "NodeResourcesFit"?'),
        config=(configuration({"plugins": {"score": {"enabled": [{"name": "NodeResourceFit"}]}}}),),
    ),
    Bad(
        "a weight of zero",
        ("config.yaml", "profiles[0].plugins.score.enabled[0].weight", "zero"),
        config=(configuration({"plugins": {"score": {"enabled": [{"name": "ImageLocality", "weight": 0}]}}}),),
    ),
    Bad(
        "arguments out of range",
        ("config.yaml:10: profiles[0].pluginConfig[0].args.hardPodAffinityWeight", "101"),
        config=(
            configuration({"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]}),
        ),
    ),
    Bad("a configuration that is none", ("config.yaml", "KubeSchedulerConfiguration", "Node"), config=(NODE,)),
    Bad(
        "an old configuration",
        ("config.yaml:2: apiVersion", "v1"),
        config=(configuration() | {"apiVersion": "x/v1beta3"},),
    ),
    Bad("an unknown release", ('"1.2"', "1.36"), ("why", "pod.yaml", "-s", "cluster.yaml", "--kube-version", "1.2")),
    Bad(
        "an unknown feature gate",
        ('"MatchLabelKeysInPodTopologySpred"', "MatchLabelKeysInPodTopologySpread"),
        ("why", "pod.yaml", "-s", "cluster.yaml", "--feature-gate", "MatchLabelKeysInPodTopologySpred=true"),
    ),
    Bad(
        "half a feature gate",
        ('"Foo"', "NAME=true"),
        ("why", "pod.yaml", "-s", "cluster.yaml", "--feature-gate", "Foo"),
    ),
]

IN_SHOP = ("-s", "cluster.yaml", "-n", "shop")
TARGETS = [
    Bad("an unknown pod", ('"web0"', 'did you mean "web-0"?'), ("why", "pod/web0", *IN_SHOP), cluster=(NODE, POD)),
    Bad("a bare name", ('"web0"', 'did you mean "web-0"?'), ("why", "web0", *IN_SHOP), cluster=(NODE, POD)),
    Bad(
        "a kind alone",
        ('no pod "shop/deploy"', "(name one: deploy/NAME)"),
        ("why", "deploy", *IN_SHOP),
        cluster=(NODE, POD),
    ),
    Bad(
        "a namespace before the name",
        ("(did you mean pod/web-0 -n shop?)",),
        ("why", "pod/shop/web-0", "-s", "cluster.yaml"),
        cluster=(NODE, POD),
    ),
    Bad(
        "a misspelled kind after the namespace",
        ('no kind "dploy" (did you mean "deploy"?)',),
        ("why", "shop/dploy/web", "-s", "cluster.yaml"),
        cluster=(NODE, POD),
    ),
    Bad(
        "a missing path",
        ("./nowhere: no such file or folder",),
        ("why", "./nowhere", "-s", "cluster.yaml"),
        cluster=(NODE, POD),
    ),
    Bad(
        "a profile of kschedx for one of the configuration",
        ("did you mean --config binpack?",),
        ("why", "pod.yaml", "-s", "cluster.yaml", "--profile", "binpak"),
    ),
    Bad(
        "a very long value",
        ("pod.yaml", " ... ", "must be no more than 253"),
        pod=(changed(POD, "metadata.name", "a" * 100_000),),
    ),
    Bad("another namespace", ("-n shop",), ("why", "pod/web-0", "-s", "cluster.yaml"), cluster=(NODE, POD)),
    Bad(
        "an unknown namespace",
        ('there is no namespace "shopp"', 'did you mean "shop"?'),
        ("why", "pod/web-1", "-n", "shopp", "-s", "cluster.yaml"),
        cluster=(NODE, POD),
    ),
    Bad("an unknown workload", ("Deployment", '"web"'), ("why", "deploy/web", *IN_SHOP), cluster=(NODE, POD)),
    Bad(
        "-n against the manifest",
        ("pod.yaml", '"shop"', '"web"'),
        ("why", "pod.yaml", "-s", "cluster.yaml", "-n", "web"),
    ),
    Bad("a file without a pod", ("cluster.yaml", "no pod", "Node"), ("why", "cluster.yaml", "-s", "cluster.yaml")),
    Bad(
        "an unknown node",
        ('"node-1"', 'did you mean "node-01"?'),
        ("why", "pod.yaml", "-s", "cluster.yaml", "--node", "node-1"),
    ),
    Bad(
        "--nodes of one",
        ('"node-01"', "all", "--node"),
        ("why", "pod.yaml", "-s", "cluster.yaml", "--nodes", "node-01"),
    ),
]


def check(bad: Bad, folder: Path) -> None:
    (folder / "empty").mkdir()
    result = bad.run(folder)
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert line.startswith("error: ")
    assert not [part for part in bad.says if part not in line], line


@pytest.mark.parametrize("bad", [*FILES, *OBJECTS, *CONFIGURATION, *TARGETS], ids=lambda bad: bad.name)
def test_bad_input_is_refused_in_one_line(bad: Bad, tmp_path: Path) -> None:
    check(bad, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("whi",), 'no command "whi" (did you mean "why"?)'),
        (("why", "--snapshott", "x"), 'no option "--snapshott" (did you mean --snapshot'),
        (("why", "x", "-o", "jason"), "allowed are wide, json, yaml, name"),
        (("why", "x", "-s"), "error: -s: its value is missing"),
        (("why", "x", "--fix", "0"), "error: --fix: found 0, allowed are numbers from 1"),
        (("why", "x", "--fix", "two"), '--fix: found "two", expected a whole number'),
        (("fit", "x", "--replicas", "0"), "--replicas: found 0, allowed are numbers from 1 to 1000000"),
        (("merge",), "error: FILE is missing"),
        (("schema", "a", "b"), "error: unexpected argument: b"),
        (("completion", "tcsh"), 'error: found "tcsh", allowed are bash, zsh, fish'),
        (("simulate", "README.md"), "(use -f for manifests, use -s for a dump)"),
        (("snapshot", "README.md", "-o", "x.json"), "(use -s for a dump)"),
    ],
    ids=" ".join,
)
def test_an_invalid_command_line_is_an_error(arguments: tuple[str, ...], says: str) -> None:
    result = kschedx(*arguments)
    assert (result.code, result.out) == (2, "")
    line, see = result.err.splitlines()
    assert says in line
    assert see.startswith("See 'kschedx")
    assert "Value error" not in line


@pytest.mark.parametrize("arguments", [(), ("why",), ("completion",)], ids=["kschedx", "why", "completion"])
def test_a_command_without_arguments_shows_its_help(arguments: tuple[str, ...]) -> None:
    result = kschedx(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Usage: kschedx")


def test_too_little_memory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(loading, "read", read)
    result = kschedx("why", "x", "-s", write(tmp_path, NODE))
    assert (result.code, result.err) == (2, "error: not enough memory for this input\n")


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_internal_error_is_not_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, debug: str) -> None:
    def read(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(loading, "read", read)
    result = kschedx("why", "x", "-s", write(tmp_path, NODE), env={"KSCHEDX_DEBUG": debug})
    assert (result.code, result.out) == (70, "")
    text = "error: internal error: KeyError: 'oops' (a defect of kschedx; KSCHEDX_DEBUG=1 shows where)\n"
    assert result.err.endswith(text)
    assert ("Traceback" in result.err) == bool(debug)


def test_an_error_has_the_line_of_the_field(tmp_path: Path) -> None:
    """In a document, a list, and JSON; not the line on which its object begins."""
    broken = changed(NODE, "status.allocatable.memory", "8GiB")
    for name, text in (
        ("documents.yaml", yaml.safe_dump_all([POD, broken])),
        ("list.yaml", yaml.safe_dump({"apiVersion": "v1", "items": [POD, broken], "kind": "List"})),
        ("list.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, broken]}, indent=2)),
    ):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        result = kschedx("why", "pod/web-0", "-n", "shop", "-s", path)
        line = next(number for number, item in enumerate(text.splitlines(), 1) if "8GiB" in item)
        assert result.err.startswith(f"error: {path}:{line}: Node node-01: status.allocatable[memory]: "), result.err
