"""The options that several commands have: each is defined once, with its text and its group in the help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Annotated

import typer

from kschedx.cli import completion
from kschedx.cli.connection import DEFAULT_TIMEOUT


class Part(Enum):
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
    CHANGES_BESIDE_FILES = auto()
    """For commands in which -f has another meaning."""
    CHANGES_BESIDE_DRAIN = auto()
    """For commands in which --drain has another meaning."""
    DRAINING = auto()
    BASELINE = auto()
    CONNECTION = auto()


def _value(*names: str, metavar: str, text: str, complete: Callable[..., list[str]] | None = None) -> object:
    return Annotated[str | None, typer.Option(*names, metavar=metavar, help=text, autocompletion=complete)]


def _values(*names: str, metavar: str, text: str) -> object:
    return Annotated[list[str] | None, typer.Option(*names, metavar=metavar, help=text, show_default=False)]


def _flag(name: str, *, text: str) -> object:
    return Annotated[bool | None, typer.Option(name, help=text, show_default=False)]


_APPLIED = "Apply manifests, with all replicas of their workloads."
CHANGES: Mapping[str, object] = {
    "apply": _values("--apply", "--filename", "-f", metavar="FILE", text=_APPLIED),
    "scale": _values("--scale", metavar="KIND/NAME=N", text="Set the number of replicas: deploy/web=10."),
    "drain": _values("--drain", metavar="NODE", text="Evict the pods that `kubectl drain` evicts, within budgets."),
    "cordon": _values("--cordon", metavar="NODE", text="Make a node unschedulable."),
    "uncordon": _values("--uncordon", metavar="NODE", text="Make a node schedulable."),
    "delete": _values("--delete", metavar="KIND/NAME", text="Delete an object; a pod with a controller is recreated."),
    "add_nodes": _values("--add-nodes", metavar="N=NODE|FILE", text="Add N nodes like a node, or like a manifest."),
    "remove_node": _values("--remove-node", metavar="NODE", text="Remove a node; controllers recreate its pods."),
    "taint": _values("--taint", metavar="NODE:KEY=VALUE:EFFECT", text="Add a taint; NODE:KEY- removes it."),
    "label": _values("--label", metavar="NODE:KEY=VALUE", text="Set a label; NODE:KEY- removes it."),
    "set": _values(
        "--set",
        metavar="KIND/NAME:PATH=VALUE",
        text="Set one field: deploy/web:spec.template.spec.priorityClassName=high.",
    ),
    "changes": _values("--changes", metavar="FILE", text="Read a YAML list of changes: `- scale: deploy/web=10`."),
}
"""Each change's name, with underscores for the dashes of `simulate.changes.ChangeVerb`, to its option. All can be
repeated."""
CONNECTION: Mapping[str, object] = {
    "kubeconfig": _value(
        "--kubeconfig", metavar="FILE", text="The kubeconfig file.  [default: KUBECONFIG, else ~/.kube/config]"
    ),
    "context": _value("--context", metavar="NAME", text="The kubeconfig's context."),
    "cluster": _value("--cluster", metavar="NAME", text="The kubeconfig's cluster."),
    "user": _value("--user", metavar="NAME", text="The kubeconfig's user."),
    "as_user": _value("--as", metavar="NAME", text="Impersonate this user."),
    "as_groups": _values("--as-group", metavar="NAME", text="Impersonate this group. Repeatable."),
    "request_timeout": _value(
        "--request-timeout",
        metavar="TIME",
        text=f"The timeout of a request, for example 30s or 1m30s; 0 means none.  [default: {DEFAULT_TIMEOUT}s]",
    ),
    "insecure": _flag("--insecure-skip-tls-verify", text="Do not verify the server's certificate."),
}
"""A field of `Connection` to its declaration."""

OPTIONS: Mapping[Part, Mapping[str, object]] = {
    Part.CLUSTER: {
        "snapshot": _values(
            "--snapshot",
            "-s",
            metavar="PATH",
            text="A file, folder, or archive written by `kschedx snapshot`, `kubectl get ... -A -o json`, or another "
            "tool; - is standard input. Repeatable.  [default: the cluster that kubectl uses]",
        )
    },
    Part.NAMESPACE: {
        "namespace": _value(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            text="The namespace of TARGET or of the selected pods.  [default: the context's; all for --all, "
            "--all-pending]",
            complete=completion.namespaces,
        )
    },
    Part.ORPHANS: {
        "ignore_orphans": _flag(
            "--ignore-orphans/--refuse-orphans",
            text="Ignore, or refuse, pods on nodes that the input lacks.  [default: refuse, except in a dump]",
        )
    },
    Part.PROFILES: {
        "config": _value(
            "--config",
            metavar="FILE|NAME",
            text="The scheduler's KubeSchedulerConfiguration, or a name that `kschedx profiles` lists.",
            complete=completion.profiles,
        ),
        "profile": _value(
            "--profile",
            metavar="NAME",
            text="The profile to use instead of the one that spec.schedulerName names.",
            complete=completion.scheduler_names,
        ),
    },
    Part.UNKNOWN: {
        "without_unknown_plugins": _flag(
            "--without-unknown-plugins", text="Assume that plugins that kschedx does not have reject no node."
        )
    },
    Part.RELEASE: {
        "kube_version": _value(
            "--kube-version",
            metavar="VERSION",
            text="The Kubernetes version to emulate.  [default: the cluster's, else the newest]",
            complete=completion.releases,
        )
    },
    Part.GATES: {
        "feature_gate": _values(
            "--feature-gate", metavar="NAME=true", text="A feature gate of kube-scheduler. Repeatable."
        )
    },
    Part.ADMISSION: {
        "enable_admission_plugins": _values(
            "--enable-admission-plugins",
            metavar="NAMES",
            text="Admission plugins that the API server runs beyond the default ones: PodNodeSelector, "
            "PodTolerationRestriction, ExtendedResourceToleration.",
        )
    },
    Part.AUTOSCALER: {
        "node_group_label": _value(
            "--node-group-label",
            metavar="KEY",
            text="The node label whose value is the name of the node's group.  [default: derived from the cloud's "
            "labels and names]",
        ),
        "autoscaler_flag": _values(
            "--autoscaler-flag",
            metavar="NAME=VALUE",
            text="A flag of cluster-autoscaler. Repeatable.  [default: those of its Deployment]",
        ),
        "node_groups": _value(
            "--node-groups",
            metavar="FILE",
            text="Node groups with their templates: the output of the autoscaler's /snapshotz, or a file of the "
            "schema NodeGroups (kschedx schema NodeGroups).",
        ),
        "instance_types": _value(
            "--instance-types",
            metavar="FILE",
            text="Instance types for Karpenter: a catalog (kschedx schema InstanceTypes), or the output of `aws ec2 "
            "describe-instance-types`.  [default: those seen in the cluster]",
        ),
        "karpenter_flag": _values(
            "--karpenter-flag",
            metavar="NAME=VALUE",
            text="A flag of Karpenter: preference-policy, min-values-policy, ignore-dra-requests, feature-gates; or "
            "version=1.13 or 1.14. Repeatable.",
        ),
    },
    Part.KUEUE: {
        "kueue_config": _value(
            "--kueue-config",
            metavar="FILE",
            text="Kueue's Configuration.  [default: the cluster's ConfigMap kueue-manager-config, else Kueue's "
            "defaults]",
        ),
        "kueue_feature_gate": _values(
            "--kueue-feature-gate", metavar="NAME=true", text="A feature gate of Kueue. Repeatable."
        ),
    },
    Part.EXTENDERS: {
        "extenders": _value(
            "--extenders",
            metavar="call|record=FILE|FILE",
            text="HTTP extenders: `call` calls them from this machine (filter, prioritize, preempt; never bind); "
            "record=FILE also keeps their answers; FILE answers for them.  [default: they are not called]",
        )
    },
    Part.CONNECTION: CONNECTION,
    Part.CHANGES: CHANGES,
    Part.CHANGES_BESIDE_FILES: {**CHANGES, "apply": _values("--apply", metavar="FILE", text=_APPLIED)},
    Part.CHANGES_BESIDE_DRAIN: {name: change for name, change in CHANGES.items() if name != "drain"},
    Part.DRAINING: {
        "force": _flag("--force", text="Let a drain delete pods without a controller."),
        "delete_emptydir_data": _flag("--delete-emptydir-data", text="Let a drain evict pods with an emptyDir."),
    },
    Part.BASELINE: {
        "baseline": _value(
            "--baseline",
            metavar="FILE",
            text="What -o sarif wrote before: its findings do not count for the exit code.",
        )
    },
}
"""Each option's name in Python, which is that of its field, to its declaration."""

_WHAT_IF = "What if (changes that are applied first, in this order; repeatable)"
_TITLES = {
    Part.CLUSTER: "Cluster",
    Part.NAMESPACE: "Cluster",
    Part.ORPHANS: "Cluster",
    Part.PROFILES: "Scheduler",
    Part.UNKNOWN: "Scheduler",
    Part.RELEASE: "Scheduler",
    Part.GATES: "Scheduler",
    Part.ADMISSION: "Scheduler",
    Part.AUTOSCALER: "Autoscaler",
    Part.KUEUE: "Kueue",
    Part.EXTENDERS: "Scheduler",
    Part.CONNECTION: "Connection (as for kubectl)",
    Part.CHANGES: _WHAT_IF,
    Part.CHANGES_BESIDE_FILES: _WHAT_IF,
    Part.CHANGES_BESIDE_DRAIN: _WHAT_IF,
    Part.DRAINING: _WHAT_IF,
    Part.BASELINE: "Options",
}
TITLE_OF = {name: _TITLES[part] for part, options in OPTIONS.items() for name in options}
"""An option's name in Python to its title in the help; a command's own options have none."""

READS = (Part.CLUSTER, Part.CONNECTION)
"""The options of a command that reads a cluster."""
WHAT_IF = (Part.CHANGES, Part.CHANGES_BESIDE_FILES, Part.CHANGES_BESIDE_DRAIN, Part.DRAINING)
DECIDES = tuple(part for part in Part if part not in (*WHAT_IF, Part.KUEUE, Part.BASELINE))
"""The options of a command that reports where pods go."""

SELECTOR = Annotated[
    str | None,
    typer.Option("--selector", "-l", metavar="LABELS", help="Select pods by labels, in one namespace unless -A."),
]
ALL_NAMESPACES = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="With -l: select pods of all namespaces."),
]


def namespace_of_many(named: str | None, default: str, *, everywhere: bool, by_labels: bool) -> str | None:
    """Return the namespace of the pods that a command is about; None for all.

    As in kubectl, pods selected by labels are in the named namespace, or in the context's. All pods, and all pending
    pods, are in any namespace unless one is named.
    """
    if everywhere:
        return None
    return named or (default if by_labels else None)


OUT = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Write the resulting cluster as a snapshot: .json or .yaml, also with .gz or .zst.",
        show_default=False,
    ),
]
NOW = Annotated[
    str | None,
    typer.Option(
        "--now", metavar="TIME", help="When the run starts.  [default: when the snapshot was taken, else now]"
    ),
]
EVICTIONS = Annotated[
    str,
    typer.Option(
        "--evictions",
        metavar="api|dry-run",
        help="dry-run: no PodDisruptionBudget forbids an eviction, as with the descheduler's --dry-run.",
    ),
]
INTERVAL = Annotated[int, typer.Option(min=1, metavar="SECONDS", help="With --watch: the time between two requests.")]
SHARD = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Answer only the I-th of N parts, with -o json; `kschedx merge` merges them.",
    ),
]
