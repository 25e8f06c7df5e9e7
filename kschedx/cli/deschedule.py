"""`kschedx deschedule`: which pods the descheduler would evict, and where they would be rescheduled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from kschedx.cli import connection
from kschedx.cli.connection import Connection, connect
from kschedx.cli.options import DECIDES, EVICTIONS, NOW, Command, value
from kschedx.cli.output import ALL, Answer, Format, Report, option
from kschedx.cli.question import Question
from kschedx.cli.streams import print_note
from kschedx.errors import InputError, Place, UndecidableError
from kschedx.sources.live.client import RefusedError

if TYPE_CHECKING:
    from kschedx.descheduler.descheduling import Descheduling, WrittenPolicy
    from kschedx.snapshot.snapshot import Snapshot

COMMAND = Command(
    "Show what the descheduler evicts, and what follows",
    DECIDES,
    help="""Show what the descheduler (0.36) evicts with a policy, why it keeps other pods, and where pods land.

One loop runs over the cluster as the descheduler runs it. Controllers then recreate the evicted pods, kube-scheduler
places them, and the next loop shows whether it evicts them again. With --rounds N, up to N loops run, until one evicts
nothing.

--policy is a DeschedulerPolicy descheduler/v1alpha2, a ConfigMap that holds one, or values of the descheduler's Helm
chart. For plugins that measure usage, NodeMetrics and PodMetrics of metrics.k8s.io are read as well; a snapshot must
hold them.

\b
Examples:
  kschedx deschedule --policy policy.yaml
  kschedx deschedule --policy values.yaml -s cluster.json --rounds 5
  kschedx deschedule --policy policy.yaml -o json
  kschedx deschedule --policy configmap/kube-system/descheduler

Exit codes: 0 every evicted pod finds a node, 1 one stays pending or the next loop evicts it again, 2 usage or input
error or a policy that the descheduler refuses, 3 kschedx cannot decide.
""",
)
_LIVE = ("configmap/", "cm/")  # prefixes of a policy in the live cluster


def deschedule(
    policy: str = value(
        "FILE|configmap/NAMESPACE/NAME",
        "The DeschedulerPolicy; - is standard input, configmap/NAMESPACE/NAME the live cluster's.",
        default=...,
    ),
    rounds: int = value("N", "The maximum number of loops.", min=1, max=50, default=1),
    evictions: str = EVICTIONS,
    now: str | None = NOW,
    output: Format | None = option(
        *ALL, text="wide shows every pod and node; json and yaml the whole document; name the evicted pods in order"
    ),
    *,
    question: Question,
) -> Answer:
    from kschedx.descheduler.cluster import lacks_details
    from kschedx.descheduler.descheduling import deschedule as descheduled
    from kschedx.descheduler.descheduling import measures_usage, policy_in

    text = _read(policy, question)
    written = policy_in(text, policy)
    reached = question.read_to_decide(whole=True, on_demand=measures_usage(written.value))
    snapshot, setup = reached.snapshot, question.setup(reached.snapshot)
    descheduling = descheduled(
        snapshot, written.value, evictions=evictions, now=now, source=policy, setup=setup, rounds=rounds
    )
    if descheduling.policy is None:
        is_named = f'"{policy}"' in descheduling.error
        place = _place_of(descheduling.error_field, written, policy, text)
        place = Place() if is_named and place.line is None else place
        raise InputError(descheduling.error, place=place, hint=descheduling.hint)
    _require_metrics(snapshot, descheduling)
    connection.print_notes(snapshot, setup)
    for ignored in descheduling.policy.ignored:
        print_note(f"{_place_of(ignored.partition(': ')[0], written, policy, text)}: {ignored}")
    if snapshot.source.taken and lacks_details(descheduling.pods):
        lacks = "this snapshot has no restart counts and container states"
        print_note(f"{lacks}; `kschedx snapshot` keeps them")
    shown = descheduling.loops[: len(descheduling.landings)]
    report = Report.of(
        descheduling, names=lambda: [f"pod/{eviction.pod.key}" for loop in shown for eviction in loop.evicted]
    )
    is_pending = any(landing.is_pending for landed in descheduling.landings for landing in landed)
    return Answer.of(report, not (is_pending or descheduling.repeats), is_undecided=descheduling.is_undecided)


def _place_of(field: str, written: WrittenPolicy, policy: str, text: bytes) -> Place:
    """Return where a field of the policy is in its file, as far as that can be found."""
    from kschedx.sources.line_numbers import line_of

    if not field or (policy.startswith(_LIVE) and not Path(policy).exists()):
        return Place(source=policy)
    document = Place(source=policy, document=written.document)
    return Place(source=policy, line=line_of(field, document, text, below=written.below))


def _read(path: str, question: Question) -> bytes:
    """Return the policy's bytes. Raises `InputError`."""
    from kschedx.sources.compression import read_content
    from kschedx.sources.files import standard_input

    if path.startswith(_LIVE) and not Path(path).exists():
        name = path.partition("/")[2]
        namespace, _, own = name.rpartition("/")
        if question.snapshot:
            raise InputError(f"--policy {path} needs a live cluster, and --snapshot names files")
        return _config_map(question.where, namespace or "kube-system", own)
    return standard_input().read() if path == "-" else read_content(path)


def _config_map(connection: Connection, namespace: str, name: str) -> bytes:
    """Return a ConfigMap of the live cluster as JSON. Raises `InputError`."""
    server, source, _ = connect(connection)
    place = Place(source=source, object=f"ConfigMap {namespace}/{name}")
    try:
        return server.get(f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}")
    except RefusedError as refused:
        text = {403: "may not be read", 404: "there is none"}.get(refused.status, refused.message)
        hint = "Helm calls it descheduler, kustomize descheduler-policy-configmap" if refused.status == 404 else ""
        raise InputError(text, place=place, hint=hint) from None


def _require_metrics(snapshot: Snapshot, descheduling: Descheduling) -> None:
    """Raise `UndecidableError` if the policy measures usage and there are no metrics."""
    from kschedx.descheduler.cluster import Metrics
    from kschedx.snapshot.snapshot import MissingCause

    measures = descheduling.policy is not None and descheduling.policy.has_metrics
    if not measures or not descheduling.loop.errors or Metrics.of(snapshot).nodes:
        return
    missing = snapshot.source.missing.get("NodeMetrics")
    if missing is MissingCause.FORBIDDEN:
        raise UndecidableError("the policy measures usage, and nodes.metrics.k8s.io may not be listed")
    if missing is MissingCause.ABSENT:
        raise UndecidableError("the policy measures usage, and the cluster serves no metrics.k8s.io (metrics-server)")
    raise UndecidableError(
        "the policy measures usage, and the snapshot has no NodeMetrics: add the output of "
        "`kubectl get nodes.metrics.k8s.io,pods.metrics.k8s.io -A -o json`"
    )
