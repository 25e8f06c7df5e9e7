"""A shell runs printed commands as they are meant, whatever the names of the cluster's objects.

`kubectl` and `kschedx` only record their arguments; no other program is on the path, and no command may create a file.
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
    """Yield scripts with the arguments of their programs; no arguments for a name that Kubernetes does not accept."""
    chance = random.Random(seed)

    def word() -> str:
        return chance.choice(HOSTILE if chance.random() < 0.5 else HARMLESS)

    def expected(*words: str, names: tuple[str, ...], file: str = "") -> list[list[str]]:
        return [] if set(names) & set(HOSTILE) or visible(file) != file else [list(words)]

    def step(step: FixStep, *words: str, names: tuple[str, ...]) -> tuple[str, list[list[str]]]:
        return "".join(f"{line}\n" for line in step.commands()), expected(*words, names=names)

    group, kind, namespace, name, key, value = (word() for _ in range(6))
    target = Target(api_version=f"{group}/v1", kind=kind, namespace=namespace, name=name)
    target_words = (f"{kind.lower()}.{group}", name, "-n", namespace)
    named = (group, kind, namespace, name)
    patch: dict[str, object] = {"op": "replace", "path": f"/metadata/labels/{key}", "value": value}
    patch_text = json.dumps([patch])
    yield (
        kubectl_commands([Change(target=target, patch=(patch,))]),
        expected("kubectl", "patch", *target_words, "--type=json", f"--patch={patch_text}", names=named),
    )
    yield (
        kubectl_commands([Change(target=target, delete=True)]),
        expected("kubectl", "delete", *target_words, names=named),
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
    yield step(Uncordon(row=row, node=name), "kubectl", "uncordon", name, names=(name,))
    yield step(
        RemoveTaints(row=row, node=name, taints=(Taint(key=key, value=value, effect="NoSchedule"),)),
        *("kubectl", "taint", "node", name, f"{key}={value}:NoSchedule-"),
        names=(name, key, value),
    )
    yield step(
        LabelNode(row=row, node=name, labels=((key, value),), is_overwritten=True),
        *("kubectl", "label", "node", name, f"{key}={value}", "--overwrite"),
        names=(name, key, value),
    )
    yield step(
        StopWorkload(workload=Target(f"{group}/v1", kind, name, namespace), victims=()),
        *("kubectl", "scale", *target_words, "--replicas=0"),
        names=named,
    )
    victim = Victim(pod=f"{namespace}/{name}", priority=0)
    if "/" not in namespace:
        yield step(
            DeletePods(victims=(victim,)), "kubectl", "delete", "pod", name, "-n", namespace, names=(namespace, name)
        )
    if " " not in kind:
        cluster = f"{key}.yaml" if not key.startswith("-") else f"./{key}.yaml"
        with repeat_options(("-s", cluster)):
            result = command_of(WhyArguments(files=["-x.yaml", "-"]), namespace, f"{kind} {name}", "")
        words = (
            "kschedx",
            "why",
            f"{kind.lower()}/{name}",
            "-n",
            namespace,
            "-f",
            "./-x.yaml",
            "-f",
            "-",
            "-s",
            cluster,
        )
        yield f"{result}\n", expected(*words, names=(kind, namespace, name), file=key)
    yield (
        shell_command("kubectl get {} -o {}", name, Path(value)) + "\n",
        expected(
            "kubectl", "get", name, "-o", f"./{value}" if value.startswith("-") else value, names=(name,), file=value
        ),
    )


def wrapped(script: str) -> str:
    """Return the script in lines as short as those of a narrow screen."""
    rows = [row for line in script.splitlines() for row in continue_command(line, 20)]
    return "".join(f"{row}\n" for row in (*rows, "#", *shell_rows("# " + script.rstrip("\n").replace("\n", " "), 20)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_shell_runs_only_the_printed_command(seed: int, tmp_path: Path) -> None:
    programs, folder = tmp_path / "bin", tmp_path / "here"
    programs.mkdir()
    folder.mkdir()
    for name in ("kubectl", "kschedx"):
        (programs / name).write_text(RECORD)
        (programs / name).chmod(0o755)
    (programs / "cat").symlink_to("/bin/cat")
    pairs = [
        (form, expected)
        for case in range(12)
        for script, expected in commands(1000 * seed + case)
        for form in ((script,) if "<<" in script else (script, wrapped(script)))
    ]
    record = tmp_path / "recorded"
    record.touch()
    for script, expected in pairs:
        record.write_text("")
        process = subprocess.run(
            ["/bin/sh", "-ec", script],
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env={"PATH": str(programs), "RECORDED": str(record)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (process.returncode, process.stderr) == (0, ""), script
        calls = record.read_bytes().decode().split("\0\n\0")[:-1]
        assert [call.split("\0") for call in calls] == expected, script
        assert not list(folder.iterdir()), script
