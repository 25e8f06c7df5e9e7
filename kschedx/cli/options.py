"""The options that several commands have: each stands here once, with its text and its group in the help."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Annotated

import typer

from kschedx.cli import completion
from kschedx.cli.connection import OPTIONS as CONNECTION_OPTIONS


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


_SNAPSHOT = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        "-s",
        metavar="PATH",
        help="A file, folder, or archive written by `kschedx snapshot`, `kubectl get ... -A -o json`, or another tool; "
        "- is standard input. Repeatable.  [default: the cluster that kubectl uses]",
    ),
]
_NAMESPACE = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAMESPACE",
        help="The namespace of TARGET or of the selected pods.  [default: the context's; all for --all, --all-pending]",
        autocompletion=completion.namespaces,
    ),
]
_IGNORE_ORPHANS = Annotated[
    bool | None,
    typer.Option(
        "--ignore-orphans/--refuse-orphans",
        help="Ignore, or refuse, pods on nodes that the input lacks.  [default: refuse, except in a dump]",
        show_default=False,
    ),
]
_CONFIG = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE|NAME",
        help="The scheduler's KubeSchedulerConfiguration, or a name that `kschedx profiles` lists.",
        autocompletion=completion.profiles,
    ),
]
_PROFILE = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The profile to use instead of the one that spec.schedulerName names.",
        autocompletion=completion.scheduler_names,
    ),
]
_WITHOUT_UNKNOWN_PLUGINS = Annotated[
    bool | None,
    typer.Option(
        "--without-unknown-plugins",
        help="Assume that plugins that kschedx does not have reject no node.",
    ),
]
_KUBE_VERSION = Annotated[
    str | None,
    typer.Option(
        "--kube-version",
        metavar="VERSION",
        help="The Kubernetes version to emulate.  [default: the cluster's, else the newest]",
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
        help="Admission plugins that the API server runs beyond the default ones: PodNodeSelector, "
        "PodTolerationRestriction, ExtendedResourceToleration.",
    ),
]

_NODE_GROUP_LABEL = Annotated[
    str | None,
    typer.Option(
        "--node-group-label",
        metavar="KEY",
        help="The node label whose value is the name of the node's group.  [default: derived from the cloud's labels "
        "and names]",
    ),
]
_AUTOSCALER_FLAG = Annotated[
    list[str] | None,
    typer.Option(
        "--autoscaler-flag",
        metavar="NAME=VALUE",
        help="A flag of cluster-autoscaler. Repeatable.  [default: those of its Deployment]",
    ),
]
_NODE_GROUPS = Annotated[
    str | None,
    typer.Option(
        "--node-groups",
        metavar="FILE",
        help="Node groups with their templates: the output of the autoscaler's /snapshotz, or a file of the schema "
        "NodeGroups (kschedx schema NodeGroups).",
    ),
]
_KARPENTER_FLAG = Annotated[
    list[str] | None,
    typer.Option(
        "--karpenter-flag",
        metavar="NAME=VALUE",
        help="A flag of Karpenter: preference-policy, min-values-policy, ignore-dra-requests, feature-gates; or "
        "version=1.13 or 1.14. "
        "Repeatable.",
    ),
]
_INSTANCE_TYPES = Annotated[
    str | None,
    typer.Option(
        "--instance-types",
        metavar="FILE",
        help="Instance types for Karpenter: a catalog (kschedx schema InstanceTypes), or the output of `aws ec2 "
        "describe-instance-types`.  [default: those seen in the cluster]",
    ),
]
_KUEUE_CONFIG = Annotated[
    str | None,
    typer.Option(
        "--kueue-config",
        metavar="FILE",
        help="Kueue's Configuration.  [default: the cluster's ConfigMap kueue-manager-config, else Kueue's defaults]",
    ),
]
_KUEUE_FEATURE_GATE = Annotated[
    list[str] | None,
    typer.Option("--kueue-feature-gate", metavar="NAME=true", help="A feature gate of Kueue. Repeatable."),
]
_EXTENDERS = Annotated[
    str | None,
    typer.Option(
        "--extenders",
        metavar="call|record=FILE|FILE",
        help="HTTP extenders: `call` calls them from this machine (filter, prioritize, preempt; never bind); "
        "record=FILE also keeps their answers; FILE answers for them.  [default: they are not called]",
    ),
]


def _change(*names: str, metavar: str, text: str) -> object:
    return Annotated[list[str] | None, typer.Option(*names, metavar=metavar, help=text, show_default=False)]


_APPLIED = "Apply manifests, with all replicas of their workloads."
_BASELINE = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        help="What -o sarif wrote before: its findings do not count for the exit code.",
        show_default=False,
    ),
]
CHANGES: Mapping[str, object] = {
    "apply": _change("--apply", "--filename", "-f", metavar="FILE", text=_APPLIED),
    "scale": _change("--scale", metavar="KIND/NAME=N", text="Set the number of replicas: deploy/web=10."),
    "drain": _change("--drain", metavar="NODE", text="Evict the pods that `kubectl drain` evicts, within budgets."),
    "cordon": _change("--cordon", metavar="NODE", text="Make a node unschedulable."),
    "uncordon": _change("--uncordon", metavar="NODE", text="Make a node schedulable."),
    "delete": _change("--delete", metavar="KIND/NAME", text="Delete an object; a pod with a controller is recreated."),
    "add_nodes": _change("--add-nodes", metavar="N=NODE|FILE", text="Add N nodes like a node, or like a manifest."),
    "remove_node": _change("--remove-node", metavar="NODE", text="Remove a node; controllers recreate its pods."),
    "taint": _change("--taint", metavar="NODE:KEY=VALUE:EFFECT", text="Add a taint; NODE:KEY- removes it."),
    "label": _change("--label", metavar="NODE:KEY=VALUE", text="Set a label; NODE:KEY- removes it."),
    "set": _change(
        "--set",
        metavar="KIND/NAME:PATH=VALUE",
        text="Set one field: deploy/web:spec.template.spec.priorityClassName=high.",
    ),
    "changes": _change("--changes", metavar="FILE", text="Read a YAML list of changes: `- scale: deploy/web=10`."),
}
"""Options to verbs, as `simulate.changes.Verb` has them with dashes; all can be repeated."""
_DRAINING = {
    "force": Annotated[
        bool | None, typer.Option("--force", help="Let a drain delete pods without a controller.", show_default=False)
    ],
    "delete_emptydir_data": Annotated[
        bool | None,
        typer.Option("--delete-emptydir-data", help="Let a drain evict pods with an emptyDir.", show_default=False),
    ],
}

OPTIONS: Mapping[Part, Mapping[str, object]] = {
    Part.CLUSTER: {"snapshot": _SNAPSHOT},
    Part.NAMESPACE: {"namespace": _NAMESPACE},
    Part.ORPHANS: {"ignore_orphans": _IGNORE_ORPHANS},
    Part.PROFILES: {
        "config": _CONFIG,
        "profile": _PROFILE,
    },
    Part.UNKNOWN: {"without_unknown_plugins": _WITHOUT_UNKNOWN_PLUGINS},
    Part.RELEASE: {"kube_version": _KUBE_VERSION},
    Part.GATES: {"feature_gate": _FEATURE_GATE},
    Part.ADMISSION: {"enable_admission_plugins": _ADMISSION_PLUGINS},
    Part.AUTOSCALER: {
        "node_group_label": _NODE_GROUP_LABEL,
        "autoscaler_flag": _AUTOSCALER_FLAG,
        "node_groups": _NODE_GROUPS,
        "instance_types": _INSTANCE_TYPES,
        "karpenter_flag": _KARPENTER_FLAG,
    },
    Part.KUEUE: {"kueue_config": _KUEUE_CONFIG, "kueue_feature_gate": _KUEUE_FEATURE_GATE},
    Part.EXTENDERS: {"extenders": _EXTENDERS},
    Part.CONNECTION: CONNECTION_OPTIONS,
    Part.CHANGES: CHANGES,
    Part.CHANGES_BESIDE_FILES: {**CHANGES, "apply": _change("--apply", metavar="FILE", text=_APPLIED)},
    Part.CHANGES_BESIDE_DRAIN: {name: change for name, change in CHANGES.items() if name != "drain"},
    Part.DRAINING: _DRAINING,
    Part.BASELINE: {"baseline": _BASELINE},
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
