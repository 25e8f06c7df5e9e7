"""Who asks the extenders of a configuration: the only place that knows both the rules and the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kschedx.errors import InputError
from kschedx.framework.duration import NANOSECONDS
from kschedx.framework.extenders import Answer, Ask, Failure, Question, Reply
from kschedx.framework.extenders.recording import KIND, Replay, recording_of

if TYPE_CHECKING:
    from kschedx.framework.config import Extender
    from kschedx.sources.extenders.client import Request, Response
    from kschedx.sources.extenders.tls import Identity

CALL = "call"
DEFAULT_TIMEOUT = 5.0
"""Seconds, for an extender without an httpTimeout."""


def asking(extenders: str | Mapping[str, object]) -> Ask:
    """Who answers for the extenders: themselves, for "call", or a recording. Raises `InputError`."""
    if isinstance(extenders, Mapping):
        return Replay([recording_of(extenders)])
    if extenders == CALL:
        return call
    raise InputError(f'extenders: found {extenders!r}, allowed are "call" and a recording')


def replaying(path: str) -> Replay:
    """The recordings in a file, or in a snapshot. Raises `InputError`."""
    from kschedx.sources.extenders.recordings import read

    return Replay([recording_of(manifest) for manifest in read(path, KIND)], path)


def call(questions: tuple[Question, ...]) -> tuple[Reply, ...]:
    """Over HTTP, all at the same time."""
    from kschedx.sources.extenders.client import post

    return tuple(map(_reply, post([_request(question) for question in questions])))


def _request(question: Question) -> Request:
    from kschedx.sources.extenders.client import Request

    seconds = question.extender.http_timeout / NANOSECONDS["s"]
    return Request(
        url=question.url,
        body=question.body(),
        seconds=seconds or DEFAULT_TIMEOUT,
        identity=_identity(question.extender, question.index),
    )


def _reply(response: Response) -> Reply:
    if response.error:
        return Failure(text=response.error)
    return Answer(status=response.status, body=response.body, ended=response.ended)


def _identity(extender: Extender, index: int) -> Identity:
    """`enableHTTPS` without a CA trusts anybody."""
    from kschedx.sources.extenders.tls import Identity

    place, tls = f"extenders[{index}]", extender.tls_config
    if tls is None:
        return Identity(insecure=extender.enable_https, place=place)
    has_ca = bool(tls.ca_file or tls.ca_data)
    return Identity(
        insecure=tls.insecure or (extender.enable_https and not has_ca),
        server_name=tls.server_name,
        ca_file=tls.ca_file,
        ca_data=tls.ca_data,
        cert_file=tls.cert_file,
        cert_data=tls.cert_data,
        key_file=tls.key_file,
        key_data=tls.key_data,
        place=place,
    )
