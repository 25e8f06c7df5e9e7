"""`kschedx why`: one pod's whole story."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from kschedx.cli import completion
from kschedx.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kschedx.explain.explanation import Explanation
    from kschedx.snapshot.snapshot import Snapshot

HELP = """Why kube-scheduler puts a pod there, or nowhere.

TARGET is a manifest (a file, or - for standard input), a pod of the snapshot (pod/NAME, or just NAME), or a workload
whose template makes the pod (deploy/NAME, sts/NAME, ds/NAME, job/NAME, ...). A pod that runs already is explained as if
it were scheduled now.

Without TARGET, --all-pending or -l asks for many pods: equal reasons are told together, in the order of the queue.

Exit codes: 0 it can be scheduled, 1 it cannot, 2 usage or input error, 3 kschedx cannot decide.
"""


class Output(StrEnum):
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def why(
    target: Annotated[
        str | None, typer.Argument(metavar="[TARGET]", show_default=False, autocompletion=completion.targets)
    ] = None,
    snapshot: Annotated[
        list[str] | None,
        typer.Option(
            "--snapshot",
            "-s",
            metavar="PATH",
            help="The cluster: a file or folder of YAML or JSON, as `kubectl get nodes,pods,... -A -o json` prints it, "
            "or - for standard input. Repeatable.",
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="The pod's namespace.", autocompletion=completion.namespaces),
    ] = None,
    all_pending: Annotated[bool, typer.Option("--all-pending", help="Every pod that waits for a node.")] = False,
    selector: Annotated[
        str | None, typer.Option("--selector", "-l", metavar="LABELS", help="Pods with these labels, as kubectl's -l.")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="With --all-pending or -l: pods of every namespace.")
    ] = False,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="The KubeSchedulerConfiguration that the scheduler runs with.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The profile to use in place of the one that spec.schedulerName names."),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="One node's whole story. Repeatable.", autocompletion=completion.nodes),
    ] = None,
    nodes: Annotated[str | None, typer.Option(metavar="all", help="`all`: a row for every node.")] = None,
    output: Annotated[
        Output | None, typer.Option("--output", "-o", help="wide shows everything; json and yaml the whole document.")
    ] = None,
    kube_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="The Kubernetes release to emulate.  [default: the newest]")
    ] = None,
    feature_gate: Annotated[
        list[str] | None, typer.Option(metavar="NAME=true", help="A feature gate of kube-scheduler. Repeatable.")
    ] = None,
    enable_admission_plugins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Admission plugins that the API server runs beyond its default ones: PodNodeSelector, "
            "PodTolerationRestriction, ExtendedResourceToleration. They change a manifest.",
        ),
    ] = None,
    ignore_orphans: Annotated[
        bool, typer.Option(help="Put up with pods on nodes that the snapshot does not hold.")
    ] = False,
) -> int:
    """The command; its help is HELP."""
    from kschedx.cli.configuration import read_configuration
    from kschedx.cli.target import find_target, node_names
    from kschedx.errors import ConfigError, InputError, Place
    from kschedx.explain.admission import admitted_pod
    from kschedx.explain.run import explain_pod
    from kschedx.loading import load
    from kschedx.releases import resolve

    if not snapshot:
        raise InputError("no cluster to look at", hint="name one with --snapshot: a file, a folder, or -")
    many = all_pending or selector is not None
    if many == (target is not None):
        raise InputError("name one TARGET, or ask for many with --all-pending or -l")
    if "-" in snapshot and target == "-":
        raise InputError("standard input cannot be both the target and the snapshot")
    if nodes not in (None, "all"):
        raise InputError(f'--nodes: found "{nodes}", allowed is "all"', hint="--node NAME shows one")
    gates = feature_gates(feature_gate or [])
    configuration = None if config is None else read_configuration(config)
    cluster = load(snapshot, check=not ignore_orphans)
    if not cluster.cluster.nodes:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(cluster.source.kinds.items()))
        raise InputError("a cluster without nodes", place=Place(source=cluster.source.text), hint=f"it holds {kinds}")
    release = resolve(kube_version, gates)
    if target is None:
        from kschedx.api.label_query import parse_label_query
        from kschedx.explain.many import rows_in_queue_order

        return _many(
            cluster,
            rows_in_queue_order(
                cluster,
                namespace=None if all_namespaces or namespace is None and all_pending else namespace or "default",
                labels=None if selector is None else parse_label_query(selector),
                pending=all_pending,
            ),
            output,
            config=configuration,
            profile=profile,
            kube_version=kube_version,
            feature_gates=gates,
        )
    plugins = [name.strip() for names in enable_admission_plugins or () for name in names.split(",")]
    pod = find_target(
        cluster, target, namespace, check=lambda manifest: admitted_pod(cluster, manifest, release, plugins)
    )
    wanted = node_names(cluster, node or [])
    try:
        explanation = explain_pod(
            cluster,
            pod,
            config=configuration,
            profile=profile,
            kube_version=kube_version,
            feature_gates=gates,
            admission_plugins=plugins,
        )
    except ConfigError as error:
        source = target if error.place.object else config if error.place.field else None
        raise error.at(Place(source=source or "")) from None
    _print(explanation, output, wanted, all_nodes=nodes == "all")
    return ExitCode.SCHEDULABLE if explanation.outcome == "Scheduled" else ExitCode.UNSCHEDULABLE


def _many(
    cluster: Snapshot,
    rows: list[int],
    output: Output | None,
    *,
    config: Mapping[str, object] | None,
    profile: str | None,
    kube_version: str | None,
    feature_gates: Mapping[str, bool],
) -> int:
    """A row for each reason, or every document."""
    from kschedx.cli.why_many import Asked, documents, exit_code

    asked = Asked(cluster, rows, config=config, profile=profile, kube_version=kube_version, feature_gates=feature_gates)
    if output in (Output.JSON, Output.YAML):
        from kschedx.render.document import to_json, to_yaml

        document = documents(asked)
        typer.echo(to_json(document) if output is Output.JSON else to_yaml(document), nl=output is Output.JSON)
        return exit_code(asked.answers())
    answers = asked.answers()
    if output is Output.NAME:
        for answer in answers:
            typer.echo(f"{answer.pod} {' '.join(f'node/{name}' for name in answer.nodes)}".rstrip())
    else:
        from kschedx.render.many import print_many

        print_many(answers, wide=output is Output.WIDE)
    return exit_code(answers)


def feature_gates(settings: list[str]) -> dict[str, bool]:
    """`NAME=true,OTHER=false` as kube-scheduler takes it. Raises `ConfigError`."""
    from kschedx.errors import ConfigError

    gates: dict[str, bool] = {}
    for setting in settings:
        for part in filter(None, (p.strip() for p in setting.split(","))):
            name, equals, value = part.partition("=")
            truth = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}.get(value.lower())
            if not equals or truth is None:
                raise ConfigError(f'--feature-gate: found "{part}", allowed is NAME=true or NAME=false')
            gates[name.strip()] = truth
    return gates


def _print(explanation: Explanation, output: Output | None, nodes: tuple[str, ...], *, all_nodes: bool) -> None:
    match output:
        case Output.JSON:
            from kschedx.render.document import to_json

            typer.echo(to_json(explanation.to_dict()))
        case Output.YAML:
            from kschedx.render.document import to_yaml

            typer.echo(to_yaml(explanation.to_dict()), nl=False)
        case Output.NAME:
            for name in explanation.chosen_nodes:
                typer.echo(f"node/{name}")
        case Output.WIDE | None:
            from kschedx.render.screen import print_why

            print_why(explanation, nodes=nodes, all_nodes=all_nodes, wide=output is Output.WIDE)
