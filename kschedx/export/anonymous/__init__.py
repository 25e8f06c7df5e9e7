"""A cluster with its names, labels, and images replaced, in which kube-scheduler decides the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.export.anonymous.fields import POD, change_object
from kschedx.export.anonymous.replacements import Book, Collected
from kschedx.export.anonymous.values import Json, Names, Replacement, change_configuration, version
from kschedx.kube.snapshot_header import SnapshotHeader

# Objects as lines of JSON. A hundred thousand of them may be pods, which share most of their parts.

Parts = dict[str, Raw]


class _Pod(Struct, tag_field="kind", tag="Pod", rename="camel"):
    api_version: str = ""
    metadata: Parts | UnsetType = UNSET
    spec: Parts | UnsetType = UNSET
    status: Parts | UnsetType = UNSET


class Lines:
    """Anonymizes lines, and caches the results for lists and maps."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[tuple[Replacement, bytes], Raw] = {}

    def changed(self, line: bytes) -> bytes | None:
        """Return an object with its names replaced; None for one that scheduling does not read."""
        try:
            pod = _PODS.decode(line)
        except msgspec.ValidationError:
            pod = None
        if pod is None or pod.api_version != "v1":
            manifest = change_object(msgspec.json.decode(line), self._names)
            return None if manifest is None else _ENCODER.encode(manifest)
        parts = {"metadata": pod.metadata, "spec": pod.spec, "status": pod.status}
        changed = {name: self._parts(POD[name].fields, part) for name, part in parts.items() if part is not UNSET}
        return _ENCODER.encode({"apiVersion": "v1", "kind": "Pod", **changed})

    def _parts(self, changes: Mapping[str, Replacement], parts: Parts) -> Json:
        document: Json = {}
        for name, raw in parts.items():
            change = changes.get(name)
            if change is None:
                continue
            key = change, bytes(raw)
            value: object = self._known.get(key)
            if value is None:
                value = change(msgspec.json.decode(key[1]), self._names)
                if isinstance(value, dict | list):
                    value = self._known[key] = Raw(_ENCODER.encode(value))
            if value is not None:
                document[name] = value
        return document


_ENCODER = msgspec.json.Encoder()
_PODS = msgspec.json.Decoder(_Pod)


# A name is replaced word by word, and everywhere in the same way. So the claim `web-0-data` still belongs to the pod
# `web-0` and its volume `data`, the image `team/app` is still on the same nodes, and two zones of a region still share
# a prefix. Words of Kubernetes' own vocabulary stay (`vocabulary`), and names keep their order (`tokens`). Values that
# are not names are kept, checked, or omitted (`fields`). The result is deterministic.

_SHOWN = 3
SOURCE = "an anonymized cluster"


class Anonymous:
    """Replacements for the names in some objects."""

    def __init__(self, collected: Collected) -> None:
        self._book = Book(collected)
        self._lines = Lines(self._book)

    @classmethod
    def of(
        cls,
        objects: Iterable[Mapping[str, object]],
        *,
        config: Mapping[str, object] | None = None,
        keep_selectors: bool = False,
    ) -> Anonymous:
        """Collect the names in `objects`, which are manifests, and in `config`, the scheduler's configuration.

        Raises `InputError` for a device selector that depends on a text's content. With `keep_selectors`,
        such selectors are kept, and every word in them stays everywhere.
        """
        collected = Collected()
        for item in objects:
            change_object(item, collected)
        return cls._of(collected, config, keep_selectors=keep_selectors)

    @classmethod
    def of_lines(
        cls, lines: Iterable[bytes], *, config: Mapping[str, object] | None = None, keep_selectors: bool = False
    ) -> Anonymous:
        """Collect the names in `lines`, one JSON object each, as `slim.Slim` writes them. This is faster, since a pod
        template is read once."""
        collected = Collected()
        reading = Lines(collected)
        for line in lines:
            reading.changed(line)
        return cls._of(collected, config, keep_selectors=keep_selectors)

    @classmethod
    def _of(cls, collected: Collected, config: Mapping[str, object] | None, *, keep_selectors: bool) -> Anonymous:
        if config is not None:
            change_configuration(config, collected)
        if collected.looking and not keep_selectors:
            text = "; ".join(f"{owner}: {why}" for owner, why in sorted(collected.looking.items())[:_SHOWN])
            others = len(collected.looking) - _SHOWN
            more = f"; and {others} more" if others > 0 else ""
            raise InputError(
                f"device selectors that cannot be anonymized: {text}{more}",
                hint="with --keep-selectors they are kept as they are, and every word in them stays readable",
            )
        return cls(collected)

    def configuration(self, config: Mapping[str, object]) -> Json:
        """Return the scheduler's configuration for the anonymized cluster."""
        return change_configuration(config, self._book)

    def replaced(self, item: Mapping[str, object]) -> Json | None:
        """Return one of the objects, anonymized; None for a kind that scheduling does not read, which is omitted."""
        return change_object(item, self._book)

    def line(self, line: bytes) -> bytes | None:
        """Return `replaced` for an object in JSON, also as JSON."""
        return self._lines.changed(line)

    def name(self, text: str) -> str:
        """Return the replacement of a name, or of `namespace/name`. Raises KeyError for a name that is in none of the
        objects."""
        return self._book.name(text) if text in self._book else "/".join(map(self._book.name, text.split("/")))

    def text(self, text: str) -> str:
        """Return a message about the cluster, such as an event's, with the names of the objects replaced."""
        return self._book.message(text)

    def header(self, header: SnapshotHeader) -> SnapshotHeader:
        """Return the header of the anonymized file: without the source of the objects."""
        return replace(
            header,
            source=SOURCE,
            server_version=version(header.server_version, self._book) or "",
            namespaces=tuple(map(self.name, header.namespaces)),
            anonymized=True,
        )

    def mapping(self) -> dict[str, str]:
        """Return words, addresses, and long names with their replacements, sorted. Uids are omitted, since they reveal
        nothing."""
        return self._book.mapping()


def anonymize(objects: Sequence[Mapping[str, object]], *, keep_selectors: bool = False) -> list[Json]:
    """Return the objects, in their order, with everything replaced that could identify their owner."""
    anonymous = Anonymous.of(objects, keep_selectors=keep_selectors)
    return [replaced for item in objects if (replaced := anonymous.replaced(item)) is not None]
