"""Recordings of extenders in files of any form that a snapshot may have."""

from __future__ import annotations

import msgspec

from kschedx.errors import InputError, Place
from kschedx.sources.batch import RAWS
from kschedx.sources.dumps import ignore
from kschedx.sources.files import read as read_files


class _Head(msgspec.Struct):
    kind: str | None = ""


_HEADS: msgspec.json.Decoder[list[_Head]] = msgspec.json.Decoder(list[_Head])


def read(path: str, kind: str) -> list[object]:
    """The manifests of `kind` in a file. Raises `InputError` where there is none."""
    found: list[object] = []
    for batch in read_files(path, ignore):
        try:
            heads = batch.decode(_HEADS)
        except msgspec.ValidationError as error:
            raise batch.invalid(error) from None
        if any(head.kind == kind for head in heads):
            raws = batch.decode(RAWS)
            found += [msgspec.json.decode(raw) for head, raw in zip(heads, raws, strict=True) if head.kind == kind]
    if not found:
        raise InputError(
            f"holds no {kind}", place=Place(source=path), hint="kschedx why --extenders record=FILE writes one"
        )
    return found
