"""From a snapshot to what the cluster-autoscaler would do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from msgspec import Struct

from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import AUTOSCALER_STATUS, Node
from kschedx.autoscaler.answers import Answer
from kschedx.autoscaler.document import Json, document
from kschedx.autoscaler.flags import Flags, FlagValue
from kschedx.autoscaler.loop import Loop
from kschedx.autoscaler.scheduling import scheduling
from kschedx.autoscaler.state import Setup
from kschedx.autoscaler.status import read_status
from kschedx.autoscaler.templates import cloud_templates
from kschedx.errors import InputError
from kschedx.framework.runtime import Framework
from kschedx.releases import resolve
from kschedx.releases.autoscaler import autoscaler_behaviour
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot


class Autoscaling(Struct, frozen=True, kw_only=True):
    """A loop's answer about the pending pods of a snapshot."""

    answer: Answer
    pods: PodTable

    def to_dict(self) -> Json:
        return document(self.answer, self.pods)


def one_loop(setup: Setup) -> Autoscaling:
    return Autoscaling(answer=Loop(setup).run(), pods=setup.framework.snapshot.pods)


def setup_of(
    snapshot: Snapshot,
    *,
    group_label: str,
    templates: Mapping[str, object] | None = None,
    flags: Mapping[str, FlagValue] | None = None,
    config: Mapping[str, object] | None = None,
    kube_version: str | None = None,
    now: str | None = None,
) -> Setup:
    """What a loop goes by. Raises `InputError` where it has no status of an autoscaler that can be read."""
    release = resolve(kube_version)
    behaviour = autoscaler_behaviour(release.version)
    written = snapshot.config_maps.get(AUTOSCALER_STATUS)
    if written is None:
        raise InputError(f"the snapshot has no ConfigMap {AUTOSCALER_STATUS}, which the cluster-autoscaler writes")
    status = read_status(written.data.get("status", ""))
    names = {group.name for group in status.groups}
    scheduler = scheduling(config, release)
    framework = Framework(scheduler.profiles[0], scheduler, snapshot, release)

    def group_of(node: Node) -> str | None:
        name = node.metadata.labels.get(group_label)
        return name if name in names else None

    return Setup(
        framework=framework,
        group_of=group_of,
        status=status,
        cloud=cloud_templates(templates),
        flags=Flags.read(flags or {}, behaviour),
        behaviour=behaviour,
        now=nanoseconds(now or snapshot.source.taken or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
    )
