"""What every command about a cluster is asked with: the cluster, and how its scheduler is set up.

A command says with `asks` which groups of options it takes, and is called with the `Question` that they make. An option
that several commands have stands here once: its text, its group in the help, and its field.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from kschedx.cli import completion
from kschedx.cli.connection import OPTIONS as CONNECTION_OPTIONS
from kschedx.cli.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kschedx.autoscaler.cluster import Options
    from kschedx.cli.connection import Reached
    from kschedx.explain.setup import Setup
    from kschedx.explain.shards import Shard
    from kschedx.export.slim import Slim
    from kschedx.framework.extenders import Ask
    from kschedx.simulate.changes import Change
    from kschedx.snapshot.snapshot import Snapshot


class Part(Enum):
    """Options that a command has together."""

    CLUSTER = auto()
    NAMESPACE = auto()
    ORPHANS = auto()
    PROFILES = auto()
    RELEASE = auto()
    GATES = auto()
    ADMISSION = auto()
    AUTOSCALER = auto()
    EXTENDERS = auto()
    CONNECTION = auto()
    CHANGES = auto()


_SNAPSHOT = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        "-s",
        metavar="PATH",
        help="A file, folder or archive made by `kschedx snapshot`, `kubectl get ... -A -o json` or another tool; - is "
        "standard input. Repeatable.  [default: the cluster that kubectl would talk to]",
    ),
]
_NAMESPACE = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="The namespace of what is named.  [default: the context's]",
        autocompletion=completion.namespaces,
    ),
]
_IGNORE_ORPHANS = Annotated[
    bool | None,
    typer.Option(
        "--ignore-orphans/--refuse-orphans",
        help="Leave out, or refuse, pods on nodes that are not there.  [default: refuse those of no cluster yet]",
        show_default=False,
    ),
]
_CONFIG = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE|NAME",
        help="The KubeSchedulerConfiguration that the scheduler runs with, or a name of `kschedx profiles`.",
        autocompletion=completion.profiles,
    ),
]
_PROFILE = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The profile to use in place of the one that spec.schedulerName names.",
        autocompletion=completion.scheduler_names,
    ),
]
_WITHOUT_UNKNOWN_PLUGINS = Annotated[
    bool | None,
    typer.Option(
        "--without-unknown-plugins",
        help="Answer as if the plugins that the configuration names and kschedx does not have rejected nothing.",
    ),
]
_KUBE_VERSION = Annotated[
    str | None,
    typer.Option(
        "--kube-version",
        metavar="VERSION",
        help="The Kubernetes release to emulate.  [default: the cluster's, else the newest]",
        autocompletion=completion.releases,
    ),
]
_FEATURE_GATE = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gate",
        metavar="NAME=true",
        help="A feature gate of kube-scheduler. Repeatable.",
    ),
]
_ADMISSION_PLUGINS = Annotated[
    list[str] | None,
    typer.Option(
        "--enable-admission-plugins",
        metavar="NAMES",
        help="What the API server runs beyond its default ones, which changes a manifest: PodNodeSelector, "
        "PodTolerationRestriction, ExtendedResourceToleration.",
    ),
]

_NODE_GROUP_LABEL = Annotated[
    str | None,
    typer.Option(
        "--node-group-label",
        metavar="KEY",
        help="The node label whose value is the name of the node's group, as cluster-autoscaler calls it.  [default: "
        "found out from the cloud's labels and names]",
    ),
]
_AUTOSCALER_FLAG = Annotated[
    list[str] | None,
    typer.Option(
        "--autoscaler-flag",
        metavar="NAME=VALUE",
        help="A flag that cluster-autoscaler runs with. Repeatable.  [default: its Deployment's]",
    ),
]
_NODE_GROUPS = Annotated[
    str | None,
    typer.Option(
        "--node-groups",
        metavar="FILE",
        help="What nodes of groups look like and which they are: the output of the autoscaler's /snapshotz, or a file "
        "of groups with templates, ASG tags and nodes.",
    ),
]
_EXTENDERS = Annotated[
    str | None,
    typer.Option(
        "--extenders",
        metavar="call|record=FILE|FILE",
        help="The HTTP extenders of the configuration: call asks them from this machine about filter, prioritize and "
        "preempt, never bind; record=FILE keeps their answers too; FILE, which may be a snapshot, answers for them.  "
        "[default: nobody is asked]",
    ),
]


def _change(*names: str, metavar: str, text: str) -> object:
    return Annotated[list[str] | None, typer.Option(*names, metavar=metavar, help=text, show_default=False)]


_CHANGES: Mapping[str, object] = {
    "apply": _change("--filename", "-f", metavar="FILE", text="Apply manifests, workloads with all their replicas."),
    "scale": _change("--scale", metavar="KIND/NAME=N", text="Such as deploy/web=10."),
    "drain": _change("--drain", metavar="NODE", text="Evict what `kubectl drain` would, as budgets allow it."),
    "cordon": _change("--cordon", metavar="NODE", text="Nothing new comes there."),
    "uncordon": _change("--uncordon", metavar="NODE", text="It is schedulable again."),
    "delete": _change("--delete", metavar="KIND/NAME", text="A pod that has a controller comes back."),
    "add_nodes": _change("--add-nodes", metavar="N=NODE|FILE", text="So many more like this one."),
    "remove_node": _change("--remove-node", metavar="NODE", text="With its pods, which their controllers make anew."),
    "taint": _change("--taint", metavar="NODE:KEY=VALUE:EFFECT", text="NODE:KEY- takes it away."),
    "label": _change("--label", metavar="NODE:KEY=VALUE", text="NODE:KEY- takes it away."),
    "set": _change(
        "--set", metavar="KIND/NAME:PATH=VALUE", text="One field: deploy/web:spec.template.spec.priorityClassName=high."
    ),
    "changes": _change("--changes", metavar="FILE", text="A YAML list of these: `- scale: deploy/web=10`."),
}
"""Options to verbs, as `simulate.changes.Verb` has them with dashes; all can be repeated."""

_OPTIONS: Mapping[Part, Mapping[str, object]] = {
    Part.CLUSTER: {"snapshot": _SNAPSHOT},
    Part.NAMESPACE: {"namespace": _NAMESPACE},
    Part.ORPHANS: {"ignore_orphans": _IGNORE_ORPHANS},
    Part.PROFILES: {
        "config": _CONFIG,
        "profile": _PROFILE,
        "without_unknown_plugins": _WITHOUT_UNKNOWN_PLUGINS,
    },
    Part.RELEASE: {"kube_version": _KUBE_VERSION},
    Part.GATES: {"feature_gate": _FEATURE_GATE},
    Part.ADMISSION: {"enable_admission_plugins": _ADMISSION_PLUGINS},
    Part.AUTOSCALER: {
        "node_group_label": _NODE_GROUP_LABEL,
        "autoscaler_flag": _AUTOSCALER_FLAG,
        "node_groups": _NODE_GROUPS,
    },
    Part.EXTENDERS: {"extenders": _EXTENDERS},
    Part.CONNECTION: CONNECTION_OPTIONS,
    Part.CHANGES: _CHANGES,
}
"""Each option's name in Python, which is that of its field, and what is typed."""

_TITLES = {
    Part.CLUSTER: "Cluster",
    Part.NAMESPACE: "Cluster",
    Part.ORPHANS: "Cluster",
    Part.PROFILES: "Scheduler",
    Part.RELEASE: "Scheduler",
    Part.GATES: "Scheduler",
    Part.ADMISSION: "Scheduler",
    Part.AUTOSCALER: "Autoscaler",
    Part.EXTENDERS: "Scheduler",
    Part.CONNECTION: "Connection, as kubectl's",
    Part.CHANGES: "What if: changes to try first, in the order given; each can be repeated",
}
TITLE_OF = {name: _TITLES[part] for part, options in _OPTIONS.items() for name in options}
"""An option's name in Python to the title under which help shows it; a command's own options have none."""

READS = (Part.CLUSTER, Part.CONNECTION)
"""What a command takes that reads a cluster."""
RECORD = "record="
DECIDES = tuple(part for part in Part if part is not Part.CHANGES)
"""What a command takes that says where pods go."""


class Question(Struct, frozen=True, kw_only=True, dict=True):
    """The options, as typed, and what they come to. Files are read once, a cluster as often as `read` is called."""

    where: Connection = Connection()
    snapshot: Sequence[str] = ()
    namespace: str | None = None
    ignore_orphans: bool | None = None
    config: str | None = None
    profile: str | None = None
    without_unknown_plugins: bool = False
    kube_version: str | None = None
    feature_gate: Sequence[str] = ()
    enable_admission_plugins: Sequence[str] = ()
    node_group_label: str = ""
    autoscaler_flag: Sequence[str] = ()
    node_groups: str | None = None
    what_if: Sequence[tuple[str, str]] = ()
    """Changes as typed, in their order: the name of the option, and its value."""
    extenders: str | None = None

    @property
    def names_cluster(self) -> bool:
        """Whether the command line says which cluster it is about."""
        return bool(self.snapshot or self.where.given)

    @cached_property
    def gates(self) -> Mapping[str, bool]:
        """Raises `ConfigError`."""
        return feature_gates(self.feature_gate)

    @cached_property
    def configuration(self) -> Mapping[str, object] | None:
        """Of --config; None for the release's default. Raises `InputError`."""
        from kschedx.cli import named_profiles

        return None if self.config is None else named_profiles.configuration(self.config)

    @cached_property
    def admission_plugins(self) -> tuple[str, ...]:
        return tuple(name.strip() for names in self.enable_admission_plugins for name in names.split(","))

    @cached_property
    def autoscaling(self) -> Options:
        """What is said about the cluster's autoscaler. Raises `InputError`, and `ConfigError` for a flag's value."""
        from kschedx.autoscaler.cluster import Options
        from kschedx.autoscaler.command_line import typed
        from kschedx.autoscaler.flags import check_known
        from kschedx.autoscaler.groups_file import GroupsFile, read_groups
        from kschedx.errors import InputError, Place
        from kschedx.sources.text import load_documents

        flags = typed(self.autoscaler_flag)
        check_known(list(flags))
        file = GroupsFile()
        if self.node_groups is not None:
            documents = load_documents(self.node_groups)
            if len(documents) != 1:
                raise InputError("one document is expected", place=Place(source=self.node_groups))
            file = read_groups(documents[0][0], self.node_groups)
        return Options(group_label=self.node_group_label, flags=flags, file=file)

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """What is to be tried first; files are read. Raises `InputError` with the change."""
        from kschedx.simulate.written import typed_changes

        return typed_changes(self.what_if)

    @cached_property
    def ask(self) -> Ask | None:
        """Who answers for the configuration's extenders, as --extenders says; None for nobody. Raises `InputError`."""
        if self.extenders is None:
            return None
        from kschedx.asking import CALL, call, replaying
        from kschedx.framework.extenders.recording import Recorder

        if self.extenders == CALL:
            return call
        return Recorder(call) if self.recorded_in is not None else replaying(self.extenders)

    @property
    def recorded_in(self) -> str | None:
        """The file that keeps what the extenders say."""
        return self.extenders.removeprefix(RECORD) if self.extenders and self.extenders.startswith(RECORD) else None

    @property
    def calls(self) -> bool:
        """Extenders are asked themselves, which takes whole objects."""
        return self.extenders == "call" or self.recorded_in is not None

    def jobs(self, wanted: int | None = None) -> int:
        """How many processes may work on many pods; one where all of them have to be remembered."""
        from kschedx.cli.parallel import processors

        return 1 if self.recorded_in is not None else wanted or processors()

    def keep_recording(self) -> None:
        """Write what the extenders said to the file that was asked for. Raises `InputError`."""
        from msgspec import json

        from kschedx.framework.extenders.recording import Recorder
        from kschedx.sources.output import write

        if self.recorded_in is not None and isinstance(self.ask, Recorder):
            write(self.recorded_in, [json.format(json.encode(self.ask.recording)), b"\n"], mode=0o600)

    def read(self, *, keep: Slim | None = None, namespace: str = "", whole: bool = False) -> Reached:
        """What --snapshot names, or the live cluster. Raises `InputError`.

        `keep`, `namespace` and `whole` are `loading.load_live`'s.
        """
        from kschedx.cli import connection

        return connection.read_cluster(self.snapshot, self.where, namespace=namespace, keep=keep, whole=whole)

    def read_to_decide(self) -> Reached:
        """As `read`, with nodes to put pods on; wrong options are told before anything is read.

        Raises `UndecidableError` where nodes or pods may not be listed.
        """
        from kschedx.cli import connection

        _ = self.gates, self.configuration, self.changes, self.ask
        return connection.read_cluster_to_decide(
            self.snapshot, self.where, check=True, ignore_orphans=self.ignore_orphans, whole=self.calls
        )

    def setup(self, snapshot: Snapshot) -> Setup:
        """How the scheduler of this cluster is set up. Raises `ConfigError`."""
        from kschedx.explain.setup import Setup

        with self.placed():
            return Setup.for_cluster(
                snapshot,
                config=self.configuration,
                profile=self.profile,
                kube_version=self.kube_version,
                feature_gates=self.gates,
                admission_plugins=self.admission_plugins,
                without_unknown_plugins=self.without_unknown_plugins,
                ask=self.ask,
            )

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Errors about a field of the configuration get its file and line."""
        from kschedx.cli import named_profiles
        from kschedx.errors import ConfigError

        try:
            yield
        except ConfigError as error:
            if error.place.object or not error.place.field or self.config is None:
                raise
            with named_profiles.placed(self.config):
                raise


def asks(*parts: Part) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A command with the options of these groups, called with `question`: what they say."""
    options = {name: hint for part in parts for name, hint in _OPTIONS[part].items()}

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def called(**values: Any) -> int:
            typed = {name: value for name in options if (value := values.pop(name)) is not None}
            what_if = _in_order({name: typed.pop(name) for name in _CHANGES if name in typed})
            of_connection = {name: typed.pop(name) for name in CONNECTION_OPTIONS if name in typed}
            question = Question(where=Connection(**of_connection), what_if=what_if, **typed)
            try:
                return command(**values, question=question)
            finally:
                question.keep_recording()

        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "question"]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in options.items()
        ]
        called.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return called

    return decorate


ORDER: ContextVar[tuple[str, ...]] = ContextVar("order", default=())
"""The names of the options in the order in which they were typed, which `help.Command` keeps."""


def _in_order(typed: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """The values of several options that can be repeated, as they followed each other on the command line."""
    values = {name: iter(texts) for name, texts in typed.items()}
    return [(name, next(values[name])) for name in ORDER.get() if name in values]


SHARD = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Of many pods only the I-th of N parts, with -o json; `kschedx merge` puts the parts together.",
    ),
]


def shard_of(typed: str | None, *, is_json: bool) -> Shard | None:
    """What --shard says. Raises `InputError`."""
    from kschedx.errors import InputError
    from kschedx.explain.shards import Shard

    if typed is None:
        return None
    if not is_json:
        raise InputError("--shard needs -o json, for kschedx merge")
    return Shard.parse(typed)


def feature_gates(settings: Sequence[str]) -> dict[str, bool]:
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
