"""`kschedx why`: one pod's whole story."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from kschedx.cli import completion, connection
from kschedx.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from kschedx.answer.explanation import Explanation
    from kschedx.cli.why_many import Asked
    from kschedx.explain.notes import Note

HELP = """Why kube-scheduler puts a pod there, or nowhere.

TARGET is a manifest (a file, or - for standard input), a pod of the snapshot (pod/NAME, or just NAME), or a workload
whose template makes the pod (deploy/NAME, sts/NAME, ds/NAME, job/NAME, ...). A pod that runs already is explained as if
it were scheduled now.

Without TARGET, --all-pending or -l asks for many pods: equal reasons are told together, in the order of the queue.

With --watch, what changes is printed below, until the pod has a node (0) or is gone (1).

Exit codes: 0 it can be scheduled, 1 it cannot, 2 usage or input error, 3 kschedx cannot decide.
"""


class Output(StrEnum):
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@connection.reads_a_cluster
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
            help="The cluster: a file, folder or archive made by `kschedx snapshot`, `kubectl get ... -A -o json` or "
            "another tool; - is standard input. Repeatable.  [default: the cluster that kubectl would talk to]",
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
        str | None,
        typer.Option(
            metavar="FILE|NAME",
            help="The KubeSchedulerConfiguration that the scheduler runs with, or a name of `kschedx profiles`.",
        ),
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
        str | None,
        typer.Option(
            metavar="VERSION", help="The Kubernetes release to emulate.  [default: the live server's, else the newest]"
        ),
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
    dry_run: Annotated[
        str | None,
        typer.Option(
            "--dry-run",
            metavar="server",
            help="`server`: the live API server admits a manifest, and stores nothing. Needs the verb create on pods.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print what changes, until the pod has a node or is gone.")
    ] = False,
    interval: Annotated[
        int, typer.Option(min=1, metavar="SECONDS", help="With --watch: the time between two looks at the cluster.")
    ] = 10,
    *,
    where: connection.Connection,
) -> int:
    """The command; its help is HELP."""
    from functools import partial

    from msgspec.structs import replace

    from kschedx.answer.run import explain_pod
    from kschedx.api.types import Pod
    from kschedx.cli import named_profiles
    from kschedx.cli.target import find_target, node_names
    from kschedx.errors import ConfigError, InputError, Place
    from kschedx.explain.admission import admitted_pod
    from kschedx.explain.which_release import release_to_emulate
    from kschedx.releases import resolve

    many = all_pending or selector is not None
    if watch and (many or output or "-" in (snapshot or ())):
        other = "many pods" if many else f"-o {output}" if output else "--snapshot -"
        raise InputError(f"--watch is about one pod, as text, and does not go with {other}")
    if many == (target is not None):
        raise InputError("name one TARGET, or ask for many with --all-pending or -l")
    if "-" in (snapshot or ()) and target == "-":
        raise InputError("standard input cannot be both the target and the snapshot")
    if nodes not in (None, "all"):
        raise InputError(f'--nodes: found "{nodes}", allowed is "all"', hint="--node NAME shows one")
    if dry_run not in (None, "server"):
        raise InputError(f'--dry-run: found "{dry_run}", allowed is "server"')
    if dry_run and (snapshot or many):
        raise InputError("--dry-run=server is about one manifest and a live cluster")
    gates = feature_gates(feature_gate or [])
    configuration = None if config is None else named_profiles.configuration(config)

    def read() -> connection.Reached:
        return connection.read_cluster_to_decide(snapshot, where, check=not ignore_orphans)

    reached = read()
    found = reached.snapshot
    release = resolve(release_to_emulate(found, kube_version), gates)
    plugins = [name.strip() for names in enable_admission_plugins or () for name in names.split(",")]
    explain = partial(
        explain_pod,
        config=configuration,
        profile=profile,
        kube_version=kube_version,
        feature_gates=gates,
        admission_plugins=plugins,
    )
    if target is None:
        from kschedx.api.label_query import parse_label_query
        from kschedx.cli.why_many import Asked
        from kschedx.explain.many import rows_in_queue_order

        rows = rows_in_queue_order(
            found,
            namespace=None if all_namespaces or (namespace is None and all_pending) else namespace or reached.namespace,
            labels=None if selector is None else parse_label_query(selector),
            pending=all_pending,
        )
        connection.tell_missing(found)
        return _many(Asked(found, rows, partial(explain, found)), output)
    pod = find_target(
        found,
        target,
        namespace,
        check=lambda manifest: None if dry_run else admitted_pod(found, manifest, release, plugins),
        default_namespace=reached.namespace,
    )
    wanted = node_names(found, node or [])
    if watch and not isinstance(pod, Pod):
        raise InputError(f'--watch: "{target}" is no pod of the cluster', hint="name one: pod/NAME")
    said: tuple[Note, ...] = ()
    if dry_run and not isinstance(pod, Pod):
        from kschedx.cli.dry_run import server_side

        pod, said = server_side(where, pod, lambda manifest: admitted_pod(found, manifest, release, plugins).pod)
    try:
        explanation = explain(found, pod)
        explanation = replace(explanation, admission=(*said, *explanation.admission))
    except ConfigError as error:
        source = target if error.place.object else config if error.place.field else None
        raise error.at(Place(source=source or "")) from None
    _print(explanation, output, wanted, all_nodes=nodes == "all")
    if watch and isinstance(pod, Pod):
        from kschedx.cli.watch import Watch

        return Watch(pod, explain, lambda: read().snapshot, interval=interval).run(explanation)
    return ExitCode.SCHEDULABLE if explanation.outcome == "Scheduled" else ExitCode.UNSCHEDULABLE


def _many(asked: Asked, output: Output | None) -> int:
    """A row for each reason, or every document."""
    from kschedx.cli.why_many import exit_code

    match output:
        case Output.JSON:
            from kschedx.render.document import to_json

            document, answers = asked.documents()
            typer.echo(to_json(document))
        case Output.YAML:
            from kschedx.render.document import to_yaml

            document, answers = asked.documents()
            typer.echo(to_yaml(document), nl=False)
        case Output.NAME:
            answers = asked.answers()
            for answer in answers:
                typer.echo(f"{answer.pod} {' '.join(f'node/{name}' for name in answer.nodes)}".rstrip())
        case Output.WIDE | None:
            from kschedx.render.many import print_many

            answers = asked.answers()
            print_many(answers, wide=output is Output.WIDE)
        case _:
            assert_never(output)
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
