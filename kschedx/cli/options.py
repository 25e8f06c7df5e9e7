"""The options that several commands have: each stands here once, with its text and its group in the help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Annotated

import typer

from kschedx.cli import completion
from kschedx.cli.connection import DEFAULT_TIMEOUT


class Part(Enum):
    """Options that a command has together, in the order of its help."""

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
    """Where -f has another meaning."""
    CHANGES_BESIDE_DRAIN = auto()
    """Where --drain has another meaning."""
    DRAINING = auto()
    BASELINE = auto()
    CONNECTION = auto()


def _text(*names: str, metavar: str, help: str, complete: Callable[..., list[str]] | None = None) -> object:  # noqa: A002 - as typer has it
    return Annotated[str | None, typer.Option(*names, metavar=metavar, help=help, autocompletion=complete)]


def _texts(*names: str, metavar: str, help: str) -> object:  # noqa: A002
    """An option that can be repeated."""
    return Annotated[list[str] | None, typer.Option(*names, metavar=metavar, help=help, show_default=False)]


def _flag(name: str, *, help: str) -> object:  # noqa: A002
    return Annotated[bool | None, typer.Option(name, help=help, show_default=False)]


_APPLIED = "Apply manifests, with all replicas of their workloads."
CHANGES: Mapping[str, object] = {
    "apply": _texts("--apply", "--filename", "-f", metavar="FILE", help=_APPLIED),
    "scale": _texts("--scale", metavar="KIND/NAME=N", help="Set the number of replicas: deploy/web=10."),
    "drain": _texts("--drain", metavar="NODE", help="Evict the pods that `kubectl drain` evicts, within budgets."),
    "cordon": _texts("--cordon", metavar="NODE", help="Make a node unschedulable."),
    "uncordon": _texts("--uncordon", metavar="NODE", help="Make a node schedulable."),
    "delete": _texts("--delete", metavar="KIND/NAME", help="Delete an object; a pod with a controller is recreated."),
    "add_nodes": _texts("--add-nodes", metavar="N=NODE|FILE", help="Add N nodes like a node, or like a manifest."),
    "remove_node": _texts("--remove-node", metavar="NODE", help="Remove a node; controllers recreate its pods."),
    "taint": _texts("--taint", metavar="NODE:KEY=VALUE:EFFECT", help="Add a taint; NODE:KEY- removes it."),
    "label": _texts("--label", metavar="NODE:KEY=VALUE", help="Set a label; NODE:KEY- removes it."),
    "set": _texts(
        "--set",
        metavar="KIND/NAME:PATH=VALUE",
        help="Set one field: deploy/web:spec.template.spec.priorityClassName=high.",
    ),
    "changes": _texts("--changes", metavar="FILE", help="Read a YAML list of changes: `- scale: deploy/web=10`."),
}
"""Options to verbs, as `simulate.changes.Verb` has them with dashes; all can be repeated."""
CONNECTION: Mapping[str, object] = {
    "kubeconfig": _text(
        "--kubeconfig", metavar="FILE", help="The kubeconfig file.  [default: KUBECONFIG, else ~/.kube/config]"
    ),
    "context": _text("--context", metavar="NAME", help="The kubeconfig's context."),
    "cluster": _text("--cluster", metavar="NAME", help="The kubeconfig's cluster."),
    "user": _text("--user", metavar="NAME", help="The kubeconfig's user."),
    "as_user": _text("--as", metavar="NAME", help="Impersonate this user."),
    "as_groups": _texts("--as-group", metavar="NAME", help="Impersonate this group. Repeatable."),
    "request_timeout": _text(
        "--request-timeout",
        metavar="TIME",
        help=f"The timeout of a request, for example 30s or 1m30s; 0 means none.  [default: {DEFAULT_TIMEOUT}s]",
    ),
    "insecure": _flag("--insecure-skip-tls-verify", help="Do not verify the server's certificate."),
}
"""kubectl's options: a field of `Connection` to what is typed."""

OPTIONS: Mapping[Part, Mapping[str, object]] = {
    Part.CLUSTER: {
        "snapshot": _texts(
            "--snapshot",
            "-s",
            metavar="PATH",
            help="A file, folder, or archive written by `kschedx snapshot`, `kubectl get ... -A -o json`, or another "
            "tool; - is standard input. Repeatable.  [default: the cluster that kubectl uses]",
        )
    },
    Part.NAMESPACE: {
        "namespace": _text(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            help="The namespace of TARGET or of the selected pods.  [default: the context's; all for --all, "
            "--all-pending]",
            complete=completion.namespaces,
        )
    },
    Part.ORPHANS: {
        "ignore_orphans": _flag(
            "--ignore-orphans/--refuse-orphans",
            help="Ignore, or refuse, pods on nodes that the input lacks.  [default: refuse, except in a dump]",
        )
    },
    Part.PROFILES: {
        "config": _text(
            "--config",
            metavar="FILE|NAME",
            help="The scheduler's KubeSchedulerConfiguration, or a name that `kschedx profiles` lists.",
            complete=completion.profiles,
        ),
        "profile": _text(
            "--profile",
            metavar="NAME",
            help="The profile to use instead of the one that spec.schedulerName names.",
            complete=completion.scheduler_names,
        ),
    },
    Part.UNKNOWN: {
        "without_unknown_plugins": _flag(
            "--without-unknown-plugins", help="Assume that plugins that kschedx does not have reject no node."
        )
    },
    Part.RELEASE: {
        "kube_version": _text(
            "--kube-version",
            metavar="VERSION",
            help="The Kubernetes version to emulate.  [default: the cluster's, else the newest]",
            complete=completion.releases,
        )
    },
    Part.GATES: {
        "feature_gate": _texts(
            "--feature-gate", metavar="NAME=true", help="A feature gate of kube-scheduler. Repeatable."
        )
    },
    Part.ADMISSION: {
        "enable_admission_plugins": _texts(
            "--enable-admission-plugins",
            metavar="NAMES",
            help="Admission plugins that the API server runs beyond the default ones: PodNodeSelector, "
            "PodTolerationRestriction, ExtendedResourceToleration.",
        )
    },
    Part.AUTOSCALER: {
        "node_group_label": _text(
            "--node-group-label",
            metavar="KEY",
            help="The node label whose value is the name of the node's group.  [default: derived from the cloud's "
            "labels and names]",
        ),
        "autoscaler_flag": _texts(
            "--autoscaler-flag",
            metavar="NAME=VALUE",
            help="A flag of cluster-autoscaler. Repeatable.  [default: those of its Deployment]",
        ),
        "node_groups": _text(
            "--node-groups",
            metavar="FILE",
            help="Node groups with their templates: the output of the autoscaler's /snapshotz, or a file of the "
            "schema NodeGroups (kschedx schema NodeGroups).",
        ),
        "instance_types": _text(
            "--instance-types",
            metavar="FILE",
            help="Instance types for Karpenter: a catalog (kschedx schema InstanceTypes), or the output of `aws ec2 "
            "describe-instance-types`.  [default: those seen in the cluster]",
        ),
        "karpenter_flag": _texts(
            "--karpenter-flag",
            metavar="NAME=VALUE",
            help="A flag of Karpenter: preference-policy, min-values-policy, ignore-dra-requests, feature-gates; or "
            "version=1.13 or 1.14. Repeatable.",
        ),
    },
    Part.KUEUE: {
        "kueue_config": _text(
            "--kueue-config",
            metavar="FILE",
            help="Kueue's Configuration.  [default: the cluster's ConfigMap kueue-manager-config, else Kueue's "
            "defaults]",
        ),
        "kueue_feature_gate": _texts(
            "--kueue-feature-gate", metavar="NAME=true", help="A feature gate of Kueue. Repeatable."
        ),
    },
    Part.EXTENDERS: {
        "extenders": _text(
            "--extenders",
            metavar="call|record=FILE|FILE",
            help="HTTP extenders: `call` calls them from this machine (filter, prioritize, preempt; never bind); "
            "record=FILE also keeps their answers; FILE answers for them.  [default: they are not called]",
        )
    },
    Part.CONNECTION: CONNECTION,
    Part.CHANGES: CHANGES,
    Part.CHANGES_BESIDE_FILES: {**CHANGES, "apply": _texts("--apply", metavar="FILE", help=_APPLIED)},
    Part.CHANGES_BESIDE_DRAIN: {name: change for name, change in CHANGES.items() if name != "drain"},
    Part.DRAINING: {
        "force": _flag("--force", help="Let a drain delete pods without a controller."),
        "delete_emptydir_data": _flag("--delete-emptydir-data", help="Let a drain evict pods with an emptyDir."),
    },
    Part.BASELINE: {
        "baseline": _text(
            "--baseline",
            metavar="FILE",
            help="What -o sarif wrote before: its findings do not count for the exit code.",
        )
    },
}
"""Each option's name in Python, which is that of its field, and what is typed."""

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
"""An option's name in Python to the title under which help shows it; a command's own options have none."""

READS = (Part.CLUSTER, Part.CONNECTION)
"""What a command takes that reads a cluster."""
WHAT_IF = (Part.CHANGES, Part.CHANGES_BESIDE_FILES, Part.CHANGES_BESIDE_DRAIN, Part.DRAINING)
DECIDES = tuple(part for part in Part if part not in (*WHAT_IF, Part.KUEUE, Part.BASELINE))
"""What a command takes that says where pods go."""

SELECTOR = Annotated[
    str | None,
    typer.Option("--selector", "-l", metavar="LABELS", help="Select pods by labels, in one namespace unless -A."),
]
ALL_NAMESPACES = Annotated[
    bool,
    typer.Option("--all-namespaces", "-A", help="With -l: select pods of all namespaces."),
]


def namespace_of_many(named: str | None, default: str, *, everywhere: bool, by_labels: bool) -> str | None:
    """The namespace of the pods that a command is about; None for every one.

    Those with labels are in the one that is named, or the context's, as kubectl has it; all pods, and all that wait,
    are in any unless one is named.
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
SHARD = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Answer only the I-th of N parts, with -o json; `kschedx merge` merges them.",
    ),
]
