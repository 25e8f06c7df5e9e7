"""The files for other programs: what their hosts take, and that the commands in them exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kschedx.cli.app import program
from kschedx.cli.integrations import INTEGRATIONS
from tests.cli.manifests import NODE, write
from tests.command import ROOT, kschedx

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
            ["name", "description", "command", "command_desc"],
            name={"type": "string", "pattern": "^[a-z_]+$"},
            description=TEXT,
            command=TEXT,
            command_desc=TEXT,
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
    ran = kschedx("integrations", name)
    assert ran.code == 0
    return yaml.safe_load(ran.out)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_host_takes_it(name: str) -> None:
    Draft202012Validator(SCHEMAS[name]).validate(content(name))


def commands(value: object) -> list[list[str]]:
    """Every command line of kschedx in a file, with what is filled in replaced by a word."""
    if isinstance(value, dict):
        return [line for item in value.values() for line in commands(item)]
    if isinstance(value, list):
        return [line for item in value for line in commands(item)]
    value = str(value).replace("$QUESTION", "diff-profiles default binpack --all")
    text = re.sub(r"\{\{.*?\}\}|\$\{?\w+(\[@\])?\}?", "word", value)
    found = re.findall(r"^\s*kschedx [^|>]*", text, re.MULTILINE)
    return [shlex.split(line.rstrip())[1:] for line in found]


@pytest.mark.parametrize("name", sorted(set(INTEGRATIONS) - {"ray", "skill"}))
def test_every_command_in_it_exists(name: str) -> None:
    found = commands(content(name))
    assert found
    known = {command.name: command for command in program().registered_commands}
    for line in found:
        if line == ["--version"]:
            continue
        assert line[0] in known
        told = kschedx(line[0], "--help-all").out
        for word in line[1:]:
            if word.startswith("-"):
                assert re.search(rf"(^|[\s,]){re.escape(word)}\b", told), f"{line[0]} has no {word}"


def test_an_api_server_takes_the_indexed_job(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(kschedx("integrations", "indexed-job").out)
    snapshot = write(tmp_path, NODE, CLAIM)
    ran = kschedx("why", tmp_path / "job.yaml", "-s", snapshot)
    assert "unknown field" not in ran.err
    assert "1 pod" in ran.out or "kschedx-" in ran.out
    job = content("indexed-job")
    assert str(job["spec"]["completions"]) == job["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"]


SHELL = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
ZONE_FULL = ROOT / "fixtures/zone-full"


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        env={**SHELL, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_answer_is_no_error_for_holmesgpt() -> None:
    tools = {one["name"]: one["command"] for one in content("holmesgpt")["toolsets"]["kschedx"]["tools"]}
    asked = tools["kschedx_why"].replace(
        "pod/{{ pod_name }} -n {{ namespace }}", f"{ZONE_FULL}/pod.yaml -s {ZONE_FULL}/cluster"
    )
    ran = shell(asked)
    assert (ran.returncode, ran.stdout[:2]) == (0, "✗ ")
    assert shell(asked.replace("/cluster", "/nothing")).returncode != 0


def test_the_example_for_kubectl_ai_is_one_argument() -> None:
    tool = next(one for one in content("kubectl-ai") if one["name"] == "kschedx_reason")
    ran = shell(f"{tool['command']} {tool['command_desc'].partition('for example ')[2]}")
    assert ran.returncode == 0, ran.stderr
    assert "insufficient" in ran.stdout


@pytest.mark.parametrize("baseline", ["", "earlier.sarif"])
def test_the_action_fails_after_it_wrote_its_files(tmp_path: Path, baseline: str) -> None:
    steps = content("github-action")["runs"]["steps"]
    step, upload = next(one for one in steps if one.get("id") == "check"), steps[-1]
    files = {"MANIFESTS": f"{ZONE_FULL}/pod.yaml", "SNAPSHOT": f"{ZONE_FULL}/cluster", "CONFIG": ""}
    given = {
        "GITHUB_OUTPUT": f"{tmp_path}/output",
        "GITHUB_STEP_SUMMARY": f"{tmp_path}/summary",
        "RUNNER_TEMP": f"{tmp_path}",
    }
    if baseline:
        shell(f"kschedx why -f {ZONE_FULL}/pod.yaml -s {ZONE_FULL}/cluster -o sarif > {tmp_path}/{baseline}")
    ran = shell(step["run"], **files, **given, BASELINE=str(tmp_path / baseline) if baseline else "")
    assert ran.returncode == (0 if baseline else 1), ran.stderr
    assert (tmp_path / "output").read_text() == f"sarif={tmp_path}/kschedx.sarif\n"
    assert "## ✗" in (tmp_path / "summary").read_text()
    assert json.loads((tmp_path / "kschedx.sarif").read_text())["runs"][0]["results"]
    assert "always()" in upload["if"]


def test_the_commands_of_the_skill_exist() -> None:
    text = kschedx("integrations", "skill").out
    assert text.startswith("---\nname: kschedx\ndescription: ")
    known = {command.name for command in program().registered_commands}
    assert set(re.findall(r"`kschedx ([a-z-]+)", text)) <= known


def test_the_script_for_ray_is_python() -> None:
    compile(kschedx("integrations", "ray").out, "ray_shards.py", "exec")


def test_they_are_listed_and_a_typo_is_told() -> None:
    assert [line.split()[0] for line in kschedx("integrations").out.splitlines()] == list(INTEGRATIONS)
    ran = kschedx("integrations", "k8s")
    assert (ran.code, ran.err.partition("(")[0]) == (2, 'error: no integration "k8s" ')
