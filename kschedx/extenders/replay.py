"""Recorded answers of extenders, which answer the same requests again.

A recording is an object of kind `ExtenderAnswers` in `kschedx/v1`: in its own file, or in a snapshot. A request is
recognized by its URL, its pod, and its subject: the nodes, or the victims on each node, in any order. Passwords in URLs
are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, UndecidableError
from kschedx.framework.extenders import Ask, ExtenderAnswer, ExtenderFailure, ExtenderRequest, Reply
from kschedx.kube.documents import API_VERSION

KIND = "ExtenderAnswers"


class Recorded(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A request and the reply."""

    url: str
    verb: str
    pod: str
    about: tuple[str, ...] = ()
    status: int = 0
    body: str = ""
    """A byte that is not UTF-8 is read as U+FFFD anyway."""
    ended: str = "EOF"
    error: str = ""
    """If there is no answer."""

    @classmethod
    def of(cls, question: ExtenderRequest, reply: Reply) -> Self:
        request = cls(
            url=str(question.url),
            verb=question.verb.value,
            pod=question.pod,
            about=tuple(sorted(question.about)),
        )
        match reply:
            case ExtenderFailure(text=text):
                return replace(request, error=text)
            case ExtenderAnswer(status=status, body=body, ended=ended):
                return replace(request, status=status, body=body.decode("utf-8", "replace"), ended=ended)
            case _:
                assert_never(reply)

    @property
    def key(self) -> tuple[object, ...]:
        return self.url, self.verb, self.pod, self.about

    @property
    def reply(self) -> Reply:
        if self.error:
            return ExtenderFailure(text=self.error)
        return ExtenderAnswer(status=self.status, body=self.body.encode(), ended=self.ended)


class Recording(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = API_VERSION
    kind: str = KIND
    answers: tuple[Recorded, ...] = ()


class Recorder:
    """A wrapper that records the answers of another source."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._kept: dict[tuple[object, ...], Recorded] = {}

    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        replies = self._ask(questions)
        for question, reply in zip(questions, replies, strict=True):
            recorded = Recorded.of(question, reply)
            self._kept[recorded.key] = recorded
        return replies

    @property
    def recording(self) -> Recording:
        return Recording(answers=tuple(self._kept.values()))


class Replay:
    """Answers from recordings. Raises `UndecidableError` for a request that they lack."""

    def __init__(self, recordings: Iterable[Recording], name: str = "the recording") -> None:
        """`name` is the name of the recordings in errors."""
        self._replies = {answer.key: answer.reply for recording in recordings for answer in recording.answers}
        self._name = name

    def __call__(self, questions: tuple[ExtenderRequest, ...], /) -> tuple[Reply, ...]:
        return tuple(map(self._reply, questions))

    def _reply(self, question: ExtenderRequest) -> Reply:
        url = str(question.url)
        reply = self._replies.get((url, question.verb.value, question.pod, tuple(sorted(question.about))))
        if reply is None:
            what = "candidates" if question.verb == "preempt" else "nodes"
            raise UndecidableError(
                f"{self._name} has no answer of {url} about {question.pod} on these {len(question.about):,} {what} "
                "(--extenders call calls it, --extenders record=FILE keeps its answer)"
            )
        return reply


def recording_of(manifest: object) -> Recording:
    """Return a recording as parsed from YAML or JSON. Raises `InputError`."""
    try:
        recording = msgspec.convert(manifest, Recording)
    except msgspec.ValidationError as error:
        raise InputError(f"no recording of extenders: {str(error).replace('`', '')}") from None
    if (recording.api_version, recording.kind) != (API_VERSION, KIND):
        raise InputError(f"expected kind {KIND} in {API_VERSION}, found {recording.kind} in {recording.api_version}")
    return recording
