"""The cluster of a command: files with --snapshot, else the live one that kubectl would use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from kschedx.cli.streams import print_note

if TYPE_CHECKING:
    from kschedx.explain.setup import Setup
    from kschedx.export.slim import Slim
    from kschedx.kube.types import Pod
    from kschedx.snapshot.snapshot import Snapshot
    from kschedx.sources.live.client import ApiServer, Impersonation
    from kschedx.sources.live.cluster import Event
    from kschedx.sources.live.kubeconfig import KubeconfigUser, NamedEntry

DEFAULT_TIMEOUT = 30  # seconds per request


class Connection(Struct, frozen=True, kw_only=True):
    """The values of the connection options."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    as_user: str | None = None
    as_groups: Sequence[str] = ()
    request_timeout: str | None = None
    insecure: bool = False

    @property
    def live_option(self) -> str:
        """A given option that only makes sense for a live cluster."""
        spelled = {"as_user": "as", "as_groups": "as-group", "insecure": "insecure-skip-tls-verify"}
        typed = next((name for name in self.__struct_fields__ if getattr(self, name)), "")
        return f"--{spelled.get(typed, typed).replace('_', '-')}" if typed else ""


class LoadedCluster(Struct, frozen=True, kw_only=True):
    snapshot: Snapshot
    namespace: str = "default"  # the namespace of names without one: that of -n, else the context's


_Load: TypeAlias = "Callable[[Sequence[str], bool, bool | None], Snapshot]"
"""Reads files, given the paths, and `check` and `ignore_orphans` of `loading.load`."""
_REMEMBERED: ContextVar[_Load | None] = ContextVar("remembered", default=None)


@contextmanager
def cached_files(load: _Load) -> Iterator[None]:
    """Read files by `load` within this context; it may have them in memory."""
    token = _REMEMBERED.set(load)
    try:
        yield
    finally:
        _REMEMBERED.reset(token)


_TIMES: ContextVar[list[str] | None] = ContextVar("times", default=None)


@contextmanager
def noting_times() -> Iterator[list[str]]:
    """Collect when the clusters were taken that are read within this context."""
    times: list[str] = []
    token = _TIMES.set(times)
    try:
        yield times
    finally:
        _TIMES.reset(token)


def note_time(taken: Callable[[], str]) -> None:
    """Keep when a cluster was taken, for a caller that collects it."""
    if (times := _TIMES.get()) is not None:
        times.append(taken())


def read_cluster(
    paths: Sequence[str] | None,
    connection: Connection,
    *,
    check: bool = False,
    ignore_orphans: bool | None = None,
    namespace: str = "",
    keep: Slim | None = None,
    whole: bool = False,
    on_demand: bool = False,
) -> LoadedCluster:
    """Return the cluster in `paths`, or the live cluster if there are none. Raises `InputError`.

    `check` and `ignore_orphans` are those of `loading.load`, for files; `namespace` and `on_demand` are those of
    `loading.load_live`; `keep` and `whole` are those of both.
    """
    from kschedx.errors import InputError
    from kschedx.loading import load, load_live

    default_namespace = "default"
    if not paths:
        server, source, default_namespace = connect(connection)
        see = Reading(source).see
        snapshot = load_live(server, source, see, namespace=namespace, keep=keep, whole=whole, on_demand=on_demand)
    elif connection.live_option:
        raise InputError(f"{connection.live_option} applies to a live cluster, and --snapshot names files")
    elif (remembered := _REMEMBERED.get()) is not None and keep is None and not whole:
        snapshot = remembered(paths, check, ignore_orphans)
    else:
        snapshot = load(paths, check=check, ignore_orphans=ignore_orphans, keep=keep, whole=whole)
    note_time(lambda: snapshot.taken)
    return LoadedCluster(snapshot=snapshot, namespace=default_namespace)


def print_notes(snapshot: Snapshot, *setups: Setup) -> None:
    """Print lines on stderr, before many pods are evaluated, about kinds that may not be listed, and plugins that
    kschedx does not have."""
    from kschedx.explain.missing_kinds import missing_for_many

    note = missing_for_many(snapshot)
    if note is not None:
        print_note(note.text)
    print_unknown_plugins(*setups)


def print_unknown_plugins(*setups: Setup) -> None:
    """Print a line on stderr, before many pods are evaluated, about plugins that kschedx does not have."""
    from kschedx.explain.notes import unknown_plugins

    left_out = {plugin.name: plugin for setup in setups for plugin in setup.unknown_plugins}
    if left_out:
        print_note(unknown_plugins(tuple(left_out.values()), stands=False).text)


def print_ignored_groups(snapshot: Snapshot, setup: Setup, more: Iterable[Pod] = ()) -> None:
    """Print a line on stderr about pod groups of pending pods, and of pods of manifests, that no plugin of the
    configuration evaluates."""
    from kschedx.snapshot.pods import group_name

    if not snapshot.pod_groups or any("GangScheduling" in it.points.get("permit", ()) for it in setup.profiles):
        return
    pods = snapshot.pods
    of_workloads = setup.release.behavior.gangs_are_of_workloads
    specs = [*((pods.namespaces[row], pods.specs[row]) for row in pods.pending)]
    specs += ((pod.metadata.namespace, pod.spec) for pod in more)
    named = {
        f"{namespace}/{name}"
        for namespace, spec in specs
        if (name := group_name(spec, of_workloads=of_workloads)) is not None
    }
    groups = sorted(key for key in named if key in snapshot.pod_groups)
    if groups:
        shown = ", ".join(groups[:3]) + (f" and {len(groups) - 3} more" if len(groups) > 3 else "")
        gates = "the feature gates GenericWorkload and, up to Kubernetes 1.36, GangScheduling"
        print_note(f"PodGroups are ignored unless {gates} are on: {shown}")


def connect(connection: Connection) -> tuple[ApiServer, str, str]:
    """Return the server, its name in messages, and the default namespace. Raises `InputError`."""
    from kschedx.sources.live.client import ApiServer
    from kschedx.sources.live.credentials import access, own_namespace, service_account_access
    from kschedx.sources.live.kubeconfig import load

    timeout = _seconds(connection.request_timeout)
    config = load(connection.kubeconfig, os.environ)
    if config.is_empty and not (connection.context or connection.cluster or connection.user):
        server = ApiServer(
            service_account_access(os.environ),
            timeout=timeout,
            place=config.place,
            impersonation=_impersonation(connection, None),
        )
        return server, f"the cluster of this pod ({server.url})", own_namespace()
    choice = config.choose(
        context=connection.context or "", cluster=connection.cluster or "", user=connection.user or ""
    )
    server = ApiServer(
        access(choice, os.environ, insecure=connection.insecure),
        timeout=timeout,
        place=choice.place,
        impersonation=_impersonation(connection, choice.user),
    )
    name = f"context {choice.context}" if choice.context else f"cluster {choice.cluster.name}"
    return server, f"{name} ({server.url})", choice.namespace


def _impersonation(connection: Connection, user: NamedEntry[KubeconfigUser] | None) -> Impersonation:
    """Return the impersonation of the options, else of the kubeconfig's user."""
    from kschedx.errors import InputError
    from kschedx.sources.live.client import Impersonation

    if connection.as_user:
        return Impersonation(user=connection.as_user, groups=tuple(connection.as_groups))
    if connection.as_groups:
        raise InputError("--as-group needs --as: a group is impersonated together with a user")
    return Impersonation() if user is None else Impersonation.of(user)


def _seconds(text: str | None) -> float:
    """Return the seconds of `30`, `30s`, or `1m30s`, the forms of kubectl's --request-timeout."""
    from kschedx.errors import InputError
    from kschedx.kube.scalars import Duration

    if text is None:
        return float(DEFAULT_TIMEOUT)
    try:
        seconds = int(text) if text.isascii() and text.isdigit() else Duration.parse(text) / Duration.seconds(1)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < 10**7:
        raise InputError(f'--request-timeout: found "{text}", allowed are seconds, or a duration such as 1m30s')
    return float(seconds)


class Reading:
    """Reports the progress of reading a live cluster."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._pages: dict[str, int] = {}
        self._remaining: dict[str, int] = {}

    def see(self, event: Event) -> None:
        from kschedx.progress import Phase, report_progress
        from kschedx.sources.live.lists import LIMIT, ListPage, ListRestarted

        match event:
            case ListPage():
                self._pages[event.kind] = self._pages.get(event.kind, 0) + 1
                self._remaining[event.kind] = event.remaining or 0
            case ListRestarted():
                self._pages.pop(event.kind, None)
            case _:
                pass
        done, left = sum(self._pages.values()) * LIMIT, sum(self._remaining.values())
        report_progress(Phase.READING, done, done + left if left else None, "objects" if left else "", of=self._source)


def every_context(kubeconfig: str | None) -> Sequence[str]:
    """Return the names of the contexts of a kubeconfig. Raises `InputError`."""
    from kschedx.sources.live.kubeconfig import load

    return sorted(load(kubeconfig, os.environ).contexts)


def known_contexts(contexts: Sequence[str], kubeconfig: str | None) -> Sequence[str]:
    """Return the names. Raises `InputError` for one that the kubeconfig lacks."""
    from kschedx.errors import InputError, nearest

    known = every_context(kubeconfig) if contexts else ()
    for name in contexts:
        if name not in known:
            raise InputError(f'no context "{name}" in the kubeconfig', hint=nearest(name, known))
    return contexts
