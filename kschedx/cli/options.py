"""The options that several commands have: each is defined once, with its text and its group in the help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

import typer
from msgspec import Struct
from msgspec.structs import force_setattr
from typer.models import ParameterInfo

from kschedx.cli import completion
from kschedx.cli.connection import DEFAULT_TIMEOUT

_Complete = Callable[..., list[str]]


class OptionGroup(Enum):
    """Options that commands have together, in the order of the help."""

    CLUSTER = auto()
    NAMESPACE = auto()
    ORPHANS = auto()
    PROFILES = auto()
    UNKNOWN = auto()
    RELEASE = auto()
    GATES = auto()
    ADMISSION = auto()
    AUTOSCALER = auto()
    KUEUE = auto()
    EXTENDERS = auto()
    CHANGES = auto()
    CHANGES_BESIDE_FILES = auto()  # the changes of commands in which -f has another meaning
    CHANGES_BESIDE_DRAIN = auto()  # the changes of commands in which --drain has another meaning
    DRAINING = auto()
    BASELINE = auto()
    CONNECTION = auto()


class Command(NamedTuple):
    """What a command's module declares in `COMMAND`."""

    summary: str
    options: tuple[OptionGroup, ...] = ()
    no_args_is_help: bool = False
    allow_interspersed_args: bool = True
    help: str = ""  # the help text with its examples, after `\b`, and its exit codes


# Declarations of options, each the default of a command's parameter, or of a field of its `Arguments`. Without `names`,
# an option is named after it.


def value(
    metavar: str, text: str, *names: str, default: object = None, complete: _Complete | None = None, **bounds: int
) -> Any:
    return typer.Option(default, *names, metavar=metavar, help=text, autocompletion=complete, **bounds)  # type: ignore[call-overload] # min and max


def values(metavar: str, text: str, *names: str, complete: _Complete | None = None) -> Any:
    """Return an option that can be repeated."""
    return typer.Option([], *names, metavar=metavar, help=text, autocompletion=complete, show_default=False)


def flag(text: str, *names: str, default: bool | None = False) -> Any:
    return typer.Option(default, *names, help=text, show_default=False)


def hidden(*names: str, default: bool | None = None) -> Any:
    """Return an option of kubectl that has no effect."""
    return typer.Option(default, *names, hidden=True)


def argument(metavar: str, *, default: object = None, complete: _Complete | None = None) -> Any:
    """Return an argument. One whose metavar has no brackets is required."""
    default = default if metavar.startswith("[") else ...
    return typer.Argument(default, metavar=metavar, show_default=False, autocompletion=complete)


class Arguments(Struct, frozen=True, kw_only=True):
    """The own options and arguments of a command that has many."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if isinstance(declared := getattr(self, name), ParameterInfo):
                force_setattr(self, name, declared.default)


_APPLIED = "Apply manifests, with all replicas of their workloads."
CHANGES: Mapping[str, ParameterInfo] = {
    "apply": values("FILE", _APPLIED, "--apply", "--filename", "-f"),
    "scale": values("KIND/NAME=N", "Set the number of replicas: deploy/web=10.", complete=completion.targets),
    "restart": values("KIND/NAME", "Replace its pods, as `kubectl rollout restart` does.", complete=completion.targets),
    "drain": values("NODE", "Evict the pods that `kubectl drain` evicts, within budgets.", complete=completion.nodes),
    "cordon": values("NODE", "Make a node unschedulable.", complete=completion.nodes),
    "uncordon": values("NODE", "Make a node schedulable.", complete=completion.nodes),
    "delete": values(
        "KIND/NAME", "Delete an object; a pod with a controller is recreated.", complete=completion.targets
    ),
    "add_nodes": values("N=NODE|FILE", "Add N nodes like a node, or like a manifest."),
    "remove_node": values("NODE", "Remove a node; controllers recreate its pods.", complete=completion.nodes),
    "taint": values("NODE:KEY=VALUE:EFFECT", "Add a taint; NODE:KEY- removes it.", complete=completion.nodes),
    "label": values("NODE:KEY=VALUE", "Set a label; NODE:KEY- removes it.", complete=completion.nodes),
    "set": values("KIND/NAME:PATH=VALUE", "Set one field: sts/db:spec.template.spec.hostNetwork=true."),
    "changes": values("FILE", "Read a YAML list of changes: `- scale: deploy/web=10`."),
}
"""Each change's name, with underscores for the dashes of `simulate.changes.ChangeVerb`, to its option. All can be
repeated."""
CONNECTION: Mapping[str, ParameterInfo] = {
    "kubeconfig": value("FILE", "The kubeconfig file.  [default: KUBECONFIG, else ~/.kube/config]"),
    "context": value("NAME", "The kubeconfig's context.", complete=completion.entries("contexts")),
    "cluster": value("NAME", "The kubeconfig's cluster.", complete=completion.entries("clusters")),
    "user": value("NAME", "The kubeconfig's user.", complete=completion.entries("users")),
    "as_user": value("NAME", "Impersonate this user.", "--as"),
    "as_groups": values("NAME", "Impersonate this group. Repeatable.", "--as-group"),
    "request_timeout": value(
        "TIME", f"The timeout of a request, for example 30s or 1m30s; 0 means none.  [default: {DEFAULT_TIMEOUT}s]"
    ),
    "insecure": flag("Do not verify the server's certificate.", "--insecure-skip-tls-verify"),
}
"""A field of `Connection` to its declaration."""

OPTIONS: Mapping[OptionGroup, Mapping[str, ParameterInfo]] = {
    OptionGroup.CLUSTER: {
        "snapshot": values(
            "PATH",
            "A file, folder, or archive written by `kschedx snapshot`, `kubectl get ... -A -o json`, or another "
            "tool; - is standard input. Repeatable.  [default: the cluster that kubectl uses]",
            "--snapshot",
            "-s",
        )
    },
    OptionGroup.NAMESPACE: {
        "namespace": value(
            "NAMESPACE",
            "The namespace of objects that you name or select.  [default: the context's; all for --all, --all-pending]",
            "--namespace",
            "-n",
            complete=completion.namespaces,
        )
    },
    OptionGroup.ORPHANS: {
        "ignore_orphans": flag(
            "Ignore, or refuse, pods on nodes that the input lacks.  [default: refuse, except in a dump]",
            "--ignore-orphans/--refuse-orphans",
            default=None,
        )
    },
    OptionGroup.PROFILES: {
        "config": value(
            "FILE|NAME",
            "The scheduler's KubeSchedulerConfiguration, or a name that `kschedx profiles` lists.",
            complete=completion.profiles,
        ),
        "profile": value(
            "NAME",
            "The profile to use instead of the one that spec.schedulerName names.",
            complete=completion.scheduler_names,
        ),
    },
    OptionGroup.UNKNOWN: {
        "without_unknown_plugins": flag(
            "Assume that plugins that kschedx does not have reject no node.", "--without-unknown-plugins"
        )
    },
    OptionGroup.RELEASE: {
        "kube_version": value(
            "VERSION",
            "The Kubernetes version to emulate.  [default: the cluster's, else the newest]",
            complete=completion.releases,
        )
    },
    OptionGroup.GATES: {"feature_gate": values("NAME=true", "A feature gate of kube-scheduler. Repeatable.")},
    OptionGroup.ADMISSION: {
        "enable_admission_plugins": values(
            "NAMES",
            "Admission plugins that the API server runs beyond the default ones: PodNodeSelector, "
            "PodTolerationRestriction, ExtendedResourceToleration.",
        )
    },
    OptionGroup.AUTOSCALER: {
        "node_group_label": value(
            "KEY",
            "The node label whose value is the name of the node's group.  [default: derived from the cloud's "
            "labels and names]",
        ),
        "autoscaler_flag": values(
            "NAME=VALUE", "A flag of cluster-autoscaler. Repeatable.  [default: those of its Deployment]"
        ),
        "node_groups": value(
            "FILE",
            "Node groups with their templates: the output of the autoscaler's /snapshotz, or a file of the "
            "schema NodeGroups (kschedx schema NodeGroups).",
        ),
        "instance_types": value(
            "FILE",
            "Instance types for Karpenter: a catalog (kschedx schema InstanceTypes), or the output of `aws ec2 "
            "describe-instance-types`.  [default: those seen in the cluster]",
        ),
        "karpenter_flag": values(
            "NAME=VALUE",
            "A flag of Karpenter: preference-policy, min-values-policy, ignore-dra-requests, feature-gates; or "
            "version=1.13 or 1.14. Repeatable.",
        ),
    },
    OptionGroup.KUEUE: {
        "kueue_config": value(
            "FILE",
            "Kueue's Configuration.  [default: the cluster's ConfigMap kueue-manager-config, else Kueue's defaults]",
        ),
        "kueue_feature_gate": values("NAME=true", "A feature gate of Kueue. Repeatable."),
    },
    OptionGroup.EXTENDERS: {
        "extenders": value(
            "call|record=FILE|FILE",
            "HTTP extenders: `call` calls them from this machine (filter, prioritize, preempt; never bind); "
            "record=FILE also keeps their answers; FILE answers for them.  [default: they are not called]",
        )
    },
    OptionGroup.CONNECTION: CONNECTION,
    OptionGroup.CHANGES: CHANGES,
    OptionGroup.CHANGES_BESIDE_FILES: {**CHANGES, "apply": values("FILE", _APPLIED)},
    OptionGroup.CHANGES_BESIDE_DRAIN: {name: change for name, change in CHANGES.items() if name != "drain"},
    OptionGroup.DRAINING: {
        "force": flag("Let a drain delete pods without a controller.", "--force"),
        "delete_emptydir_data": flag("Let a drain evict pods with an emptyDir.", "--delete-emptydir-data"),
    },
    OptionGroup.BASELINE: {
        "baseline": value("FILE", "What -o sarif wrote before: its findings do not count for the exit code.")
    },
}
"""Each option's name in Python, which is that of its field, to its declaration."""

_WHAT_IF = (
    OptionGroup.CHANGES,
    OptionGroup.CHANGES_BESIDE_FILES,
    OptionGroup.CHANGES_BESIDE_DRAIN,
    OptionGroup.DRAINING,
)
_TITLES = {
    **dict.fromkeys((OptionGroup.CLUSTER, OptionGroup.NAMESPACE, OptionGroup.ORPHANS), "Cluster"),
    **dict.fromkeys(_WHAT_IF, "What if (changes that are applied first, in this order; repeatable)"),
    OptionGroup.AUTOSCALER: "Autoscaler",
    OptionGroup.KUEUE: "Kueue",
    OptionGroup.CONNECTION: "Connection (as for kubectl)",
    OptionGroup.BASELINE: "Options",
}
TITLE_OF = {name: _TITLES.get(part, "Scheduler") for part, options in OPTIONS.items() for name in options}
"""An option's name in Python to its title in the help; a command's own options have none."""

READS = (OptionGroup.CLUSTER, OptionGroup.CONNECTION)  # the options of a command that reads a cluster
DECIDES = tuple(part for part in OptionGroup if part not in (*_WHAT_IF, OptionGroup.KUEUE, OptionGroup.BASELINE))
"""The options of a command that reports where pods go."""

SELECTOR = value("LABELS", "Select pods by labels, in one namespace unless -A.", "--selector", "-l")
ALL_NAMESPACES = flag("With -l: select pods of all namespaces.", "--all-namespaces", "-A")
OUT = value("FILE", "Write the resulting cluster as a snapshot: .json or .yaml, also with .gz or .zst.")
NOW = value("TIME", "When the run starts.  [default: when the snapshot was taken, else now]")
EVICTIONS = value(
    "api|dry-run",
    "dry-run: no PodDisruptionBudget forbids an eviction, as with the descheduler's --dry-run.",
    complete=completion.words("api", "dry-run"),
    default="api",
)
INTERVAL = value("SECONDS", "With --watch: the time between two requests.", default=10, min=1)
SHARD = value("I/N", "Answer only the I-th of N parts, with -o json; `kschedx merge` merges them.")


def namespace_of_many(named: str | None, default: str, *, everywhere: bool, by_labels: bool) -> str | None:
    """Return the namespace of the pods that a command is about; None for all.

    As in kubectl, pods selected by labels are in the named namespace, or in the context's. All pods, and all pending
    pods, are in any namespace unless one is named.
    """
    if everywhere:
        return None
    return named or (default if by_labels else None)
