"""Files for other programs: their hosts accept them, and their commands exist and answer."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kschedx.cli.app import program
from kschedx.cli.integrations import INTEGRATIONS
from tests.api_server import FakeApiServer, kubeconfig, served
from tests.builders import Manifest
from tests.cli.manifests import BIG_POD, NODE, POD, changed, write
from tests.command import ROOT, kschedx
from tests.fork_server import fork_server

CLAIM: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "kschedx", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
TEXT = {"type": "string", "minLength": 1}


def closed(_required: list[str], /, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": _required, "additionalProperties": False}


# What each host takes: the fields of one k9s plugin in a file of its own; the fields that kubectl-ai and HolmesGPT
# decode; the metadata syntax of GitHub's composite actions.
SCHEMAS: dict[str, dict[str, object]] = {
    **dict.fromkeys(
        ("k9s-drain", "k9s-namespace", "k9s-node", "k9s-pod", "k9s-workload"),
        closed(
            ["shortCut", "description", "scopes", "command"],
            shortCut=TEXT,
            override={"type": "boolean"},
            description=TEXT,
            confirm={"type": "boolean"},
            dangerous={"type": "boolean"},
            scopes={"type": "array", "items": TEXT},
            command=TEXT,
            background={"type": "boolean"},
            overwriteOutput={"type": "boolean"},
            args={"type": "array", "items": {"type": ["string", "number"]}},
        ),
    ),
    "kubectl-ai": {
        "type": "array",
        "items": closed(
            ["name", "description", "command"],
            name={"type": "string", "pattern": "^[a-z_]+$"},
            description=TEXT,
            command=TEXT,
        ),
    },
    "holmesgpt": closed(
        ["toolsets"],
        toolsets={
            "type": "object",
            "additionalProperties": closed(
                ["description", "tools"],
                description=TEXT,
                enabled={"type": "boolean"},
                tags={"type": "array", "items": {"enum": ["core", "cluster", "cli"]}},
                prerequisites={"type": "array", "items": closed(["command"], command=TEXT)},
                tools={
                    "type": "array",
                    "items": closed(["name", "description", "command"], name=TEXT, description=TEXT, command=TEXT),
                },
            ),
        },
    ),
    "github-action": closed(
        ["name", "description", "runs"],
        name=TEXT,
        description=TEXT,
        inputs={
            "type": "object",
            "additionalProperties": closed(
                ["description"], description=TEXT, required={"type": "boolean"}, default={"type": "string"}
            ),
        },
        outputs={
            "type": "object",
            "additionalProperties": closed(["description", "value"], description=TEXT, value=TEXT),
        },
        runs=closed(
            ["using", "steps"],
            using={"const": "composite"},
            steps={
                "type": "array",
                "items": {"type": "object", "anyOf": [{"required": ["uses"]}, {"required": ["run", "shell"]}]},
            },
        ),
    ),
}


def content(name: str) -> Any:
    result = kschedx("integrations", name)
    assert result.code == 0
    return yaml.safe_load(result.out)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_host_accepts_the_file(name: str) -> None:
    Draft202012Validator(SCHEMAS[name]).validate(content(name))


def commands(value: object) -> list[list[str]]:
    """Return every command line of kschedx in a file, with a word for each placeholder."""
    if isinstance(value, dict):
        return [line for item in value.values() for line in commands(item)]
    if isinstance(value, list):
        return [line for item in value for line in commands(item)]
    value = str(value).replace("$QUESTION", "diff-profiles default binpack --all")
    text = re.sub(r"\{\{.*?\}\}|\$\{?\w+(\[@\])?\}?", "word", value)
    result = re.findall(r"^\s*kschedx [^|>]*", text, re.MULTILINE)
    return [shlex.split(line.rstrip())[1:] for line in result]


@pytest.mark.parametrize("name", sorted(set(INTEGRATIONS) - {"ray", "skill"}))
def test_every_command_in_the_file_exists(name: str) -> None:
    result = commands(content(name))
    assert result
    known = {command.name: command for command in program().registered_commands}
    for line in result:
        if line == ["--version"]:
            continue
        assert line[0] in known
        outcome = kschedx(line[0], "--help-all").out
        for word in line[1:]:
            if word.startswith("-"):
                assert re.search(rf"(^|[\s,]){re.escape(word)}\b", outcome), f"{line[0]} has no {word}"


def test_an_api_server_accepts_the_indexed_job(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(kschedx("integrations", "indexed-job").out)
    snapshot = write(tmp_path, NODE, CLAIM)
    result = kschedx("why", tmp_path / "job.yaml", "-s", snapshot)
    assert "unknown field" not in result.err
    assert "1 pod" in result.out or "kschedx-" in result.out
    job = content("indexed-job")
    assert str(job["spec"]["completions"]) == job["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]


# Every command line of every file, run as its host runs it: on a small cluster behind an API server, by a real shell.

SHELL = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PAGER": "cat"}


@pytest.fixture(scope="module", autouse=True)
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make `kschedx` the command of the fork server."""
    with fork_server(tmp_path_factory.mktemp("bin")) as script:
        before = SHELL["PATH"]
        SHELL["PATH"] = f"{script.parent}{os.pathsep}{before}"
        yield
        SHELL["PATH"] = before


ZONE_FULL = ROOT / "fixtures/zone-full"
WORKLOADS = {
    "daemonsets": ("DaemonSet", "apps/v1"),
    "deployments": ("Deployment", "apps/v1"),
    "replicasets": ("ReplicaSet", "apps/v1"),
    "statefulsets": ("StatefulSet", "apps/v1"),
    "jobs": ("Job", "batch/v1"),
    "cronjobs": ("CronJob", "batch/v1"),
}


ZONED = changed(NODE, "metadata.labels", {"topology.kubernetes.io/zone": "a"})


def workload(kind: str, version: str) -> Manifest:
    """Deployment `shop/web`, whose pods do not fit."""
    labels = {"app": "web"}
    template: dict[str, object] = {
        "metadata": {"labels": labels},
        "spec": changed(BIG_POD, "spec.nodeName", "")["spec"],
    }
    spec: dict[str, object] = {"template": template}
    if version == "apps/v1":
        spec = {"selector": {"matchLabels": labels}, **spec}
    if kind == "CronJob":
        spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": spec}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a host: the command, and a kubeconfig with the context `test`."""
    folder = tmp_path_factory.mktemp("live")
    with served(FakeApiServer([ZONED, POD, BIG_POD, *(workload(*item) for item in WORKLOADS.values())])) as url:
        yield {**SHELL, "KUBECONFIG": str(kubeconfig(folder, url)), "HOME": str(folder)}


def shell(
    command: str, environment: Mapping[str, str] = SHELL, *, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a script as a step of GitHub's runner."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def k9s(name: str, environment: Mapping[str, str], **chosen: str) -> subprocess.CompletedProcess[str]:
    """k9s puts what is chosen in place of `$NAME` and `${NAME}` in each argument, and runs the command without a shell.

    A hyphen belongs to the name, and a name that it does not know stays (internal/view/env.go). It knows the path of
    its own kubeconfig, which need not be in its environment.
    """
    plugin = content(name)
    known = {"CONTEXT": "test", "KUBECONFIG": environment["KUBECONFIG"], "NAMESPACE": "", **chosen}
    pattern = re.compile(r"\$([-\w]+)|\$\{([-\w%/: ]+)\}")
    arguments = [
        pattern.sub(lambda result: known.get(result[1] or result[2], result[0]), arg) for arg in plugin["args"]
    ]
    own = {key: value for key, value in environment.items() if key != "KUBECONFIG"}
    return subprocess.run([plugin["command"], *arguments], env=own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "chosen", "answer"),
    [
        ("k9s-pod", {"NAMESPACE": "shop", "NAME": "big-0"}, "✗ shop/big-0 is unschedulable: 0 of 1 node fits"),
        ("k9s-node", {"NAME": "node-01"}, "✓ node node-01: 0 of 110 pods, fits 1 of 2 pending pods"),
        ("k9s-drain", {"NAME": "node-01"}, "✓ node-01: nothing to evict"),
        ("k9s-namespace", {"NAME": "shop"}, "✗ 2 pods: 1 unschedulable, 1 can be scheduled"),
    ],
)
def test_a_plugin_of_k9s_answers(environment: dict[str, str], name: str, chosen: dict[str, str], answer: str) -> None:
    result = k9s(name, environment, **chosen)
    assert (result.returncode, result.stdout.partition("\n")[0]) == (0, answer), result.stderr


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["k9s-drain", "k9s-namespace", "k9s-node", "k9s-pod", "k9s-workload"])
def test_a_plugin_of_k9s_runs_no_shell_on_names(environment: dict[str, str], tmp_path: Path, name: str) -> None:
    hostile = f'"; touch {tmp_path}/a; $(touch {tmp_path}/b) `touch {tmp_path}/c` "'
    for chosen in ("NAME", "NAMESPACE", "CONTEXT"):
        result = k9s(name, environment, **{"NAME": "web", "RESOURCE_NAME": "deployments", chosen: hostile})
        assert result.stdout + result.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_plugin_for_workloads_of_k9s_answers_for_each_of_its_scopes(environment: dict[str, str]) -> None:
    assert set(content("k9s-workload")["scopes"]) == set(WORKLOADS)
    for scope in WORKLOADS:
        result = k9s("k9s-workload", environment, NAMESPACE="shop", NAME="web", RESOURCE_NAME=scope)
        assert re.match("[✓✗] (DaemonSet )?shop/web", result.stdout), (scope, result.stderr)


def test_every_tool_of_holmesgpt_answers_with_exit_code_0(environment: dict[str, str]) -> None:
    """HolmesGPT quotes each argument for the shell; any other exit code than 0 is an error to it."""
    toolset = content("holmesgpt")["toolsets"]["kschedx"]
    for prerequisite in toolset["prerequisites"]:
        assert shell(prerequisite["command"], environment).returncode == 0
    values = {"pod_name": "big-0", "namespace": "shop", "node_name": "node-01", "kind": "deploy", "name": "web"}
    values["text"] = "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."

    def run(command: str, **others: str) -> subprocess.CompletedProcess[str]:
        filled = {**values, **others}
        return shell(re.sub(r"\{\{ (\w+) \}\}", lambda value: shlex.quote(filled[value[1]]), command), environment)

    for prerequisite in toolset["tools"]:
        result = run(prerequisite["command"])
        assert (result.returncode, result.stderr) == (0, ""), prerequisite["name"]
        assert "insufficient cpu" in result.stdout.lower(), prerequisite["name"]
    missing = run(toolset["tools"][0]["command"], pod_name="nothing; touch here")
    assert (missing.returncode, missing.stdout) == (1, "")


def test_every_tool_of_kubectl_ai_answers(environment: dict[str, str]) -> None:
    """kubectl-ai puts the command before what the model writes, which the description's example shows."""
    for tool in content("kubectl-ai"):
        written = tool["description"].partition("for example ")[2].partition(". Exit")[0]
        result = shell(f"{tool['command']} {written.replace('web-0', 'big-0')}", environment)
        assert result.returncode in (0, 1), result.stderr
        assert "insufficient cpu" in result.stdout.lower(), tool["name"]


def test_every_command_of_the_skill_answers(environment: dict[str, str]) -> None:
    text = kschedx("integrations", "skill").out
    assert text.startswith("---\nname: kschedx\ndescription: ")
    words = {"NAMESPACE": "shop", "NAME": "big-0", "FILE.yaml": str(ZONE_FULL / "pod.yaml"), "NODE": "node-01"}
    words["TEXT"] = "0/5 nodes are available: 3 Insufficient cpu."
    result = re.findall(r"`kschedx ([^`]+)` \|", text)
    assert len(result) == text.count("\n| ") - 2
    for line in result:
        words_of = (re.sub("|".join(words), lambda value: words[value[0]], word) for word in shlex.split(line))
        outcome = kschedx(*words_of, env={"KUBECONFIG": environment["KUBECONFIG"]})
        assert outcome.code in (0, 1, 3), (line, outcome.err)
        assert outcome.out or outcome.code == 3, line


@pytest.mark.parametrize("baseline", ["", "earlier.sarif"])
def test_the_action_fails_after_it_wrote_its_files(tmp_path: Path, baseline: str) -> None:
    steps = content("github-action")["runs"]["steps"]
    step, upload = next(item for item in steps if item.get("id") == "check"), steps[-1]
    given = {
        **SHELL,
        "MANIFESTS": f"{ZONE_FULL}/pod.yaml",
        "SNAPSHOT": f"{ZONE_FULL}/cluster",
        "CONFIG": "",
        "BASELINE": str(tmp_path / baseline) if baseline else "",
        "GITHUB_OUTPUT": f"{tmp_path}/output",
        "GITHUB_STEP_SUMMARY": f"{tmp_path}/summary",
        "RUNNER_TEMP": f"{tmp_path}",
    }
    if baseline:
        shell(f"kschedx why -f {ZONE_FULL}/pod.yaml -s {ZONE_FULL}/cluster -o sarif > {tmp_path}/{baseline}")
    result = shell(step["run"], given)
    assert result.returncode == (0 if baseline else 1), result.stderr
    assert (tmp_path / "output").read_text() == f"sarif={tmp_path}/kschedx.sarif\n"
    assert "## ✗" in (tmp_path / "summary").read_text()
    assert json.loads((tmp_path / "kschedx.sarif").read_text())["runs"][0]["results"]
    assert "always()" in upload["if"]


def differing(answer: str) -> object:
    """Return the number of pods of a comparison by change."""
    return json.loads(answer)["pods"]["effects"]


def test_the_parts_of_a_job_a_workflow_and_ray_merge(tmp_path: Path) -> None:
    """Run the scripts of a Job, a Workflow, and Ray with stubs of pip and Ray, and a folder as the volume."""
    data, bin_ = tmp_path / "data", tmp_path / "bin"
    data.mkdir()
    bin_.mkdir()
    (bin_ / "pip").write_text("#!/bin/sh\n")
    (bin_ / "pip").chmod(0o755)
    snapshot = data / "cluster.json.zst"
    assert kschedx("snapshot", "-s", ROOT / "fixtures/web-rollout/cluster", "-o", snapshot).code == 0
    question = ["diff-profiles", "default", "binpack", "--all"]
    whole = kschedx(*question, "-s", snapshot, "-o", "json")
    given = {**SHELL, "PATH": f"{bin_}{os.pathsep}{SHELL['PATH']}", "QUESTION": " ".join(question), "PARTS": "2"}
    job = content("indexed-job")["spec"]["template"]["spec"]["containers"][0]["args"][0]
    part, merge = (template["container"]["args"][0] for template in content("argo-workflow")["spec"]["templates"][1:])
    for script, numbers in ((job, ("0", "1")), (part, ("1", "2"))):
        for number in numbers:
            outcome = shell(
                script.replace("/data", str(data)), given | {"JOB_COMPLETION_INDEX": number, "PART": number}
            )
            assert outcome.returncode == 0, outcome.stderr
        assert shell(merge.replace("/data", str(data)), given).returncode in (0, 1)
        assert differing((data / "answer.json").read_text()) == differing(whole.out)
    (tmp_path / "ray.py").write_text(
        "def remote(**_):\n"
        "    return lambda function: type('Task', (), {'remote': staticmethod(function)})\n"
        "get = list\n"
    )
    (tmp_path / "ray_shards.py").write_text(kschedx("integrations", "ray").out)
    result = shell(f"python ray_shards.py 2 {' '.join(question)} -s {snapshot}", given, cwd=tmp_path)
    assert differing(result.stdout) == differing(whole.out)


def test_files_are_listed_and_a_typo_has_its_nearest_name() -> None:
    assert [line.split()[0] for line in kschedx("integrations").out.splitlines()[2:]] == list(INTEGRATIONS)
    result = kschedx("integrations", "k8s")
    assert (result.code, result.err.partition("(")[0]) == (2, 'error: no integration "k8s" ')
