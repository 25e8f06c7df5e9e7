"""The release to emulate where nobody names one: the API server's own."""

from __future__ import annotations

from kschedx.errors import ConfigError
from kschedx.releases import VERSIONS, resolve
from kschedx.snapshot.snapshot import Snapshot

NOTE = "release"


def release_to_emulate(snapshot: Snapshot, asked: str | None) -> str | None:
    """What --kube-version says, else the server's release where kschedx knows it; None for the newest."""
    server = snapshot.source.server_version
    return asked if asked is not None or not server or not _is_known(server) else server


def release_note(snapshot: Snapshot, asked: str | None) -> tuple[str, dict[str, object]] | None:
    """Text and facts of the note about a release that the server, and nobody else, named."""
    server = snapshot.source.server_version
    if asked is not None or not server:
        return None
    facts: dict[str, object] = {"serverVersion": server}
    if _is_known(server):
        return f"the API server is {server}: kube-scheduler {resolve(server).version} is emulated", facts
    return (
        f"the API server is {server}, which kschedx does not know: kube-scheduler {VERSIONS[0]} is emulated "
        "(--kube-version names another)",
        facts,
    )


def _is_known(version: str) -> bool:
    try:
        resolve(version)
    except ConfigError:
        return False
    return True
