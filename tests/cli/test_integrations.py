"""The files for other programs: what their hosts take, and that the commands in them exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kschedx.cli.app import app
from kschedx.cli.integrations import INTEGRATIONS
from tests.cli.manifests import NODE, write
from tests.command import kschedx

CLAIM: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "kschedx", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
}
TEXT = {"type": "string", "minLength": 1}


def closed(_required: list[str], /, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": _required, "additionalProperties": False}


# What each host takes: k9s' own JSON schema of plugins; the fields that kubectl-ai and HolmesGPT decode; the metadata
# syntax of GitHub's composite actions.
SCHEMAS: dict[str, dict[str, object]] = {
    "k9s": closed(
        ["plugins"],
        plugins={
            "type": "object",
            "additionalProperties": closed(
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
        },
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


@pytest.mark.parametrize("name", sorted(set(INTEGRATIONS) - {"ray"}))
def test_every_command_in_it_exists(name: str) -> None:
    found = commands(content(name))
    assert found
    known = {command.name: command for command in app.registered_commands}
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


def test_the_script_for_ray_is_python() -> None:
    compile(kschedx("integrations", "ray").out, "ray_shards.py", "exec")


def test_they_are_listed_and_a_typo_is_told() -> None:
    assert [line.split()[0] for line in kschedx("integrations").out.splitlines()] == list(INTEGRATIONS)
    ran = kschedx("integrations", "k8s")
    assert (ran.code, ran.err) == (2, 'error: no integration "k8s" (did you mean "k9s"?)\n')
