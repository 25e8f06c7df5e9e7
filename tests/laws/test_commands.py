"""Printed commands do what they say, whatever the cluster's objects are called: a shell runs every one of them.

Its `kubectl` and `kschedx` record their arguments; there is nothing else to run, and no other file may come of it.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kschedx.cli.why_list import command_of
from kschedx.cli.why_pod import WhyArguments
from kschedx.fixes.steps import DeletePods, FixStep, LabelNode, RemoveTaints, StopWorkload, Uncordon, Victim
from kschedx.kube.documents import Change, Target
from kschedx.kube.escaping import repeat_options, shell_command, visible
from kschedx.kube.types import Taint
from kschedx.render.fixes import continue_command, shell_rows
from kschedx.render.manifests import kubectl_commands
from kschedx.snapshot.columns import ClusterRow

RECORD = """#!/bin/sh
for word in "${0##*/}" "$@"; do printf '%s\\0' "$word" >> "$RECORDED"; done
printf '\\n\\0' >> "$RECORDED"
cat > /dev/null
"""
HOSTILE = (
    "apps;touch${IFS}x;",
    "$(touch x)",
    "`touch x`",
    "a'; touch x; '",
    'a"; touch x; "',
    "a\ntouch x\n",
    "a\r\ntouch x #",
    "a && touch x",
    "a > x",
    "a | touch x",
    "a\u2028touch x",
    "--all",
    "-A",
    "a b",
    "*",
    "~",
    "a\\",
    "EOF\ntouch x\nEOF",
    "\x1b[2Ja",
    "a\u202eb",
    "{}",
    "{0}",
    'a" ; touch x ; echo "b" ' * 4,
    "##vso[task.x]",
)
HARMLESS = ("web", "web-0", "kube-system", "a.b.c", "rbac:reader", "node-1.example.com")


def commands(seed: int) -> Iterator[tuple[str, list[list[str]]]]:
    """A script and what its programs are given; nothing for a name that Kubernetes does not accept."""
    chance = random.Random(seed)

    def word() -> str:
        return chance.choice(HOSTILE if chance.random() < 0.5 else HARMLESS)

    def meant(*words: str, given: tuple[str, ...], file: str = "") -> list[list[str]]:
        return [] if set(given) & set(HOSTILE) or visible(file) != file else [list(words)]

    def step(step: FixStep, *words: str, given: tuple[str, ...]) -> tuple[str, list[list[str]]]:
        return "".join(f"{line}\n" for line in step.commands()), meant(*words, given=given)

    group, kind, namespace, name, key, value = (word() for _ in range(6))
    target = Target(api_version=f"{group}/v1", kind=kind, namespace=namespace, name=name)
    of_target = (f"{kind.lower()}.{group}", name, "-n", namespace)
    named = (group, kind, namespace, name)
    patch: dict[str, object] = {"op": "replace", "path": f"/metadata/labels/{key}", "value": value}
    written = json.dumps([patch])
    yield (
        kubectl_commands([Change(target=target, patch=(patch,))]),
        meant("kubectl", "patch", *of_target, "--type=json", f"--patch={written}", given=named),
    )
    yield (
        kubectl_commands([Change(target=target, delete=True)]),
        meant("kubectl", "delete", *of_target, given=named),
    )
    yield kubectl_commands([Change(target=target, delete=True, by=value)]), []
    created: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {key: value},
    }
    yield (
        kubectl_commands([Change(target=target, create=created)]),
        [["kubectl", "apply", "--server-side", "-f", "-"]],
    )
    row = ClusterRow(0)
    yield step(Uncordon(row=row, node=name), "kubectl", "uncordon", name, given=(name,))
    yield step(
        RemoveTaints(row=row, node=name, taints=(Taint(key=key, value=value, effect="NoSchedule"),)),
        *("kubectl", "taint", "node", name, f"{key}={value}:NoSchedule-"),
        given=(name, key, value),
    )
    yield step(
        LabelNode(row=row, node=name, labels=((key, value),), is_overwritten=True),
        *("kubectl", "label", "node", name, f"{key}={value}", "--overwrite"),
        given=(name, key, value),
    )
    yield step(
        StopWorkload(api_version=f"{group}/v1", kind=kind, namespace=namespace, name=name, victims=()),
        *("kubectl", "scale", *of_target, "--replicas=0"),
        given=named,
    )
    victim = Victim(pod=f"{namespace}/{name}", priority=0)
    if "/" not in namespace:
        yield step(
            DeletePods(victims=(victim,)), "kubectl", "delete", "pod", name, "-n", namespace, given=(namespace, name)
        )
    if " " not in kind:
        cluster = f"{key}.yaml" if not key.startswith("-") else f"./{key}.yaml"
        with repeat_options(("-s", cluster)):
            result = command_of(WhyArguments(files=["-x.yaml"]), namespace, f"{kind} {name}", "")
        words = ("kschedx", "why", f"{kind.lower()}/{name}", "-n", namespace, "-f", "./-x.yaml", "-s", cluster)
        yield f"{result}\n", meant(*words, given=(kind, namespace, name), file=key)
    yield (
        shell_command("kubectl get {} -o {}", name, Path(value)) + "\n",
        meant(
            "kubectl", "get", name, "-o", f"./{value}" if value.startswith("-") else value, given=(name,), file=value
        ),
    )


def in_a_window(script: str) -> str:
    """The same in lines as short as those of a screen."""
    rows = [row for line in script.splitlines() for row in continue_command(line, 20)]
    return "".join(f"{row}\n" for row in (*rows, "#", *shell_rows("# " + script.rstrip("\n").replace("\n", " "), 20)))


@pytest.mark.parametrize("seed", range(4))
def test_a_shell_runs_what_is_meant_and_nothing_else(seed: int, tmp_path: Path) -> None:
    programs, folder = tmp_path / "bin", tmp_path / "here"
    programs.mkdir()
    folder.mkdir()
    for name in ("kubectl", "kschedx"):
        (programs / name).write_text(RECORD)
        (programs / name).chmod(0o755)
    (programs / "cat").symlink_to("/bin/cat")
    pairs = [
        (form, meant)
        for case in range(12)
        for script, meant in commands(1000 * seed + case)
        for form in ((script,) if "<<" in script else (script, in_a_window(script)))
    ]
    record = tmp_path / "recorded"
    record.touch()
    for script, meant in pairs:
        record.write_text("")
        ran = subprocess.run(
            ["/bin/sh", "-ec", script],
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": str(programs), "RECORDED": str(record)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, ""), script
        calls = record.read_bytes().decode().split("\0\n\0")[:-1]
        assert [call.split("\0") for call in calls] == meant, script
        assert not list(folder.iterdir()), script
