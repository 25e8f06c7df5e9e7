"""The places of a scheduler configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedx.errors import ConfigError, InputError
from kschedx.sources.configurations import find_configuration, read_configuration

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def config_map(name: str, **data: str) -> str:
    lines = [f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kube-system}}\ndata:"]
    for key, text in data.items():
        lines += [f"  {key}.yaml: |", *(f"    {line}" for line in text.splitlines())]
    return "\n".join(lines)


def deployment(*, argument: str = "--config=/etc/kubernetes/scheduler/main.yaml", mount: str, source: str) -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: second-scheduler}}
spec:
  template:
    spec:
      containers:
      - name: scheduler
        command: [/bin/sh, -c, "kube-scheduler -v 2 {argument}"]
        volumeMounts: [{{name: config, {mount}}}]
      volumes: [{{name: config, configMap: {{{source}}}}}]
"""


KUBEADM = "kind: ClusterConfiguration\napiVersion: kubeadm.k8s.io/v1beta4\n"
FIRST = HEAD + "profiles: [{schedulerName: first}]"
SECOND = HEAD + "profiles: [{schedulerName: second}]"
BOTH = [config_map("one", main=FIRST), config_map("two", main=SECOND, other=FIRST)]
FOLDER = "mountPath: /etc/kubernetes/scheduler"


@pytest.mark.parametrize(
    ("documents", "name"),
    [
        ([FIRST], "first"),
        (["kind: Pod\napiVersion: v1", SECOND], "second"),
        ([config_map("one", main=FIRST)], "first"),
        ([config_map("one", main=FIRST).replace("ConfigMap", "Secret").replace("data:", "stringData:")], "first"),
        ([config_map("one", note="just words", main=FIRST)], "first"),
        ([*BOTH, deployment(mount=FOLDER, source="name: two")], "second"),
        ([*BOTH, deployment(mount=FOLDER, source="name: one")], "first"),
        (
            [
                *BOTH,
                deployment(
                    argument="--config /cfg/x.yaml",
                    mount="mountPath: /cfg/",
                    source="name: two, items: [{key: other.yaml, path: x.yaml}]",
                ),
            ],
            "first",
        ),
        (
            [
                *BOTH,
                deployment(
                    argument="--config=/c.yaml", mount="mountPath: /c.yaml, subPath: main.yaml", source="name: two"
                ),
            ],
            "second",
        ),
        # values of a chart, and what a tool says of a cluster
        (["scheduler:\n  config:\n" + "".join(f"    {line}\n" for line in FIRST.splitlines())], "first"),
        (["files:\n- contents: |\n" + "".join(f"    {line}\n" for line in SECOND.splitlines())], "second"),
    ],
)
def test_it_is_found_in_its_usual_places(tmp_path: Path, documents: list[str], name: str) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text("\n---\n".join(documents), encoding="utf-8")
    assert read_configuration(str(path))["profiles"] == [{"schedulerName": name}]


BLOCK = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\ndata:\n  main.yaml: |\n    {indented}"
HELD = HEAD + "profiles:\n- plugins: {score: {enabled: [{name: NodeAffinity, weight: 0}]}}"


@pytest.mark.parametrize(
    ("documents", "parts"),
    [
        (["kind: Pod\napiVersion: v1"], ("expected one KubeSchedulerConfiguration, found Pod",)),
        (
            [deployment(mount=FOLDER, source="name: one")],
            ("found Deployment", "is started with --config=/etc/kubernetes/scheduler/main.yaml there"),
        ),
        (
            [KUBEADM + "scheduler: {extraArgs: [{name: config, value: /etc/s.yaml}]}"],
            ("found ClusterConfiguration", "--config=/etc/s.yaml there"),
        ),
        (
            [KUBEADM + "scheduler: {extraArgs: {config: /s.yaml}}"],
            ("--config=/s.yaml there",),
        ),
        (
            ["kind: Cluster\nnodes:\n- kubeadmConfigPatches:\n  - |\n    scheduler: {extraArgs: {config: /k.yaml}}\n"],
            ("found Cluster", "--config=/k.yaml there"),
        ),
        (["kube-scheduler-arg: [v=2, config=/etc/k3s.yaml]"], ("found nothing", "--config=/etc/k3s.yaml there")),
        (["kind: Policy\napiVersion: audit.k8s.io/v1"], ("found Policy",)),
        (
            BOTH,
            (
                "found 3",
                "ConfigMap one[main.yaml]",
                "ConfigMap two[other.yaml]",
                "put the intended one in its own file",
            ),
        ),
        ([config_map("one", main=HEAD + "profiles: [")], ("ConfigMap one[main.yaml]", "not valid YAML")),
        (
            [HEAD + "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 0}]}}}]"],
            ("profiles[0].plugins.score.enabled[0].weight", "a weight of zero does not exist"),
        ),
        (
            ["kind: Service\napiVersion: v1", BLOCK.format(indented=HELD.replace("\n", "\n    "))],
            ("scheduler.yaml:12: ConfigMap one[main.yaml]: profiles[0].plugins.score.enabled[0].weight",),
        ),
        (
            [HEAD + "profiles: [{plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 0}]}}}]"],
            ("profiles[0].plugins.multiPoint.enabled[0].weight", "a weight of zero does not exist"),
        ),
    ],
)
def test_an_unusable_configuration_is_named(tmp_path: Path, documents: list[str], parts: tuple[str, ...]) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text("\n---\n".join(documents), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_configuration(str(path))
    assert isinstance(caught.value, ConfigError)
    assert not [part for part in (str(path), *parts) if part not in str(caught.value)], str(caught.value)


def test_a_folder_is_one_input(tmp_path: Path) -> None:
    for number, text in enumerate([*BOTH, deployment(mount=FOLDER, source="name: two")]):
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
    result = find_configuration(str(tmp_path))
    assert (result.config_map, result.key) == ("two", "main.yaml")
