"""Small inputs as plain dicts: the pod to explain, a scheduler configuration."""

from __future__ import annotations

import msgspec

from kschedx.errors import Place
from kschedx.sources import files

_DECODER = msgspec.json.Decoder(list[dict[str, object]])


def load_documents(path: str) -> list[tuple[dict[str, object], Place]]:
    """The objects of a file, a folder or standard input ("-"), with their places. Raises InputError."""
    documents = []
    for batch in files.read(path):
        try:
            objects = batch.decode(_DECODER)
        except msgspec.ValidationError as error:
            raise batch.invalid(error) from None
        documents += [(found, batch.origin.place(index)) for index, found in enumerate(objects)]
    return documents
