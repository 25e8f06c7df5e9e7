"""`kschedx snapshot`: what scheduling reads of a cluster, in a file to keep or send."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct, json
from msgspec.structs import replace

from kschedx.cli import completion
from kschedx.cli.options import READS, Arguments, Command, flag, value
from kschedx.cli.output import ExitCode
from kschedx.cli.question import Question
from kschedx.cli.streams import print_note
from kschedx.errors import ConfigError, InputError, UndecidableError, nearest
from kschedx.progress import Phase, count_items
from kschedx.wording import count, visible

if TYPE_CHECKING:
    from kschedx.export.slim import Slim
    from kschedx.kube.snapshot_header import SnapshotHeader
    from kschedx.snapshot.snapshot import Snapshot, Source

COMMAND = Command(
    "Save what scheduling reads of a cluster",
    READS,
    no_args_is_help=True,
    help="""Save what scheduling reads of a cluster in a file.

\b
Examples:
  kschedx snapshot -o cluster.json.gz            # the live cluster
  kschedx snapshot -o cluster.yaml --anonymize   # to share it
  kschedx snapshot -o small.json -s dump.tar.gz  # cut down a dump

The file holds no environment variables, no commands, no Secrets, only the ConfigMaps of autoscalers and queues, and
only the annotations that scheduling reads. It also holds what the descheduler reads: restarts, states, conditions, and
metrics. Every command answers from it as from the cluster: kschedx why pod/NAME --snapshot FILE.

--extenders record also keeps what the HTTP extenders of a configuration answer about the pending pods.
--anonymize replaces names, labels, and images; every decision stays the same.

Exit codes: 0 written, 2 usage or input error.
""",
)


class _SnapshotArguments(Arguments, frozen=True, kw_only=True):
    output: str = value(
        "FILE",
        "The file: .json or .yaml, also with .gz or .zst; - is standard output, as JSON.",
        "--output",
        "-o",
        default=...,
    )
    namespace: str | None = value(
        "NAMESPACE",
        "Keep only this namespace and cluster-wide objects. What other pods use is then unknown.",
        "--namespace",
        "-n",
        complete=completion.namespaces,
    )
    anonymize: bool = flag("Replace names, labels and images; decisions stay the same.", "--anonymize")
    anonymize_map: str | None = value(
        "FILE", "With --anonymize: write the old and new names as JSON. Keep this file private."
    )
    keep_selectors: bool = flag(
        "With --anonymize: keep device selectors that read parts of a string, with every word in them.",
        "--keep-selectors",
    )
    config: str | None = value(
        "FILE|NAME",
        "With --anonymize: the scheduler's configuration, which is anonymized with the cluster and written "
        "beside it. With --extenders record: the one that has the extenders.",
        complete=completion.profiles,
    )
    extenders: str | None = value(
        "record",
        "Ask the HTTP extenders of --config about every pending pod, from this machine, and keep "
        "their answers in the file too. `kschedx why --extenders FILE` answers from them.",
    )

    @property
    def name(self) -> str:
        """The output's name without the suffix of its compression."""
        from kschedx.sources.compression import compression_of

        return self.output.removesuffix(compression_of(self.output))

    @property
    def is_json(self) -> bool:
        from kschedx.sources.compression import STDOUT

        return self.output == STDOUT or self.name.endswith(".json")

    @property
    def config_output(self) -> str:
        """The name of the anonymized configuration; empty if none is written. Raises `InputError`."""
        from kschedx.sources.compression import STDOUT

        if not self.anonymize or self.config is None:
            return ""
        if self.output == STDOUT:
            raise InputError("--config is written next to the file that -o names; - names no file")
        return f"{self.name.rpartition('.')[0]}-scheduler.yaml"

    def check(self) -> None:
        """Raise `InputError` for options that cannot be combined."""
        from kschedx.cli.files import check_name

        check_name("-o", self.output)
        for option, is_given in (("--anonymize-map", self.anonymize_map), ("--keep-selectors", self.keep_selectors)):
            if is_given and not self.anonymize:
                raise InputError(f"{option} needs --anonymize")
        _ = self.config_output
        _check_extenders(self.extenders, self.config, anonymize=self.anonymize)
        if self.anonymize_map and _is_same_file(self.anonymize_map, self.output):
            raise InputError("-o and --anonymize-map name the same file; the map would be shared with the snapshot")


def snapshot(wanted: _SnapshotArguments, *, question: Question) -> int:
    from kschedx.cli.files import json_parts, yaml_parts
    from kschedx.export.slim import Slim
    from kschedx.sources.compression import STDOUT, write

    output, namespace, extenders = wanted.output, wanted.namespace, wanted.extenders
    wanted.check()
    begun = datetime.now(UTC)
    keep = Slim([namespace] if namespace else [])
    cluster = question.read(namespace=namespace or "", keep=keep, whole=extenders is not None, on_demand=True).snapshot
    source = _source(cluster, namespace, question.snapshot, begun)
    header = replace(source.header, complete={kind: keep.count(kind) for kind in sorted(source.complete)})
    contents = _SnapshotContent(
        header=header, objects=keep.lines(), others=keep.count() - keep.count("Node") - keep.count("Pod")
    )
    if wanted.anonymize:
        contents = _anonymize(contents, keep, wanted)
    if extenders is not None:
        contents = replace(contents, objects=chain(contents.objects, [_answers(cluster, wanted.config or "")]))
    objects = count_items(contents.objects, Phase.WRITING, keep.count(), "objects")
    write(output, json_parts(contents.header, objects) if wanted.is_json else yaml_parts(contents.header, objects))
    if output != STDOUT:
        kinds = (keep.count("Node"), "node"), (keep.count("Pod"), "pod"), (contents.others, "other object")
        counts = ", ".join(count(number, what) for number, what in kinds)
        _print_summary(output, counts, source)
        if wanted.anonymize and wanted.config is None:
            print_note(_WITHOUT_CONFIG)
    return ExitCode.SCHEDULABLE


class _SnapshotContent(Struct, frozen=True, kw_only=True):
    header: SnapshotHeader
    objects: Iterable[bytes]  # one line each
    others: int  # the number of objects that are neither nodes nor pods


def _source(cluster: Snapshot, namespace: str | None, paths: Sequence[str], begun: datetime) -> Source:
    """The cluster's source in words that may be published. Raises `InputError` for a namespace that does not exist."""
    source = cluster.source
    if namespace and namespace not in {*cluster.namespaces, *cluster.pods.namespaces.values}:
        known = [*cluster.namespaces, *cluster.pods.namespaces.values]
        raise InputError(f'-n: there is no namespace "{namespace}"', hint=nearest(namespace, known))
    for path in paths:
        source = replace(source, text=source.text.replace(path, Path(path).name))  # folders are private
    if not paths:
        source = replace(source, taken=f"{begun:%Y-%m-%dT%H:%M:%SZ}")
    return replace(source, namespaces=(namespace,)) if namespace else source


def _anonymize(contents: _SnapshotContent, keep: Slim, wanted: _SnapshotArguments) -> _SnapshotContent:
    """Return the same content with other names, and write the map and the configuration to files next to it."""
    from kschedx.cli import files
    from kschedx.export.anonymous import Anonymous
    from kschedx.sources.compression import write

    written = files.configuration(wanted.config) if wanted.config is not None else None
    read = count_items(keep.lines(), Phase.ANONYMIZING, keep.count(), "objects")
    anonymous = Anonymous.of_lines(read, config=written, keep_selectors=wanted.keep_selectors)
    header = anonymous.header(contents.header)
    read = count_items(keep.lines(), Phase.ANONYMIZING, keep.count(), "objects")
    kept = [line for old in read if (line := anonymous.line(old)) is not None]
    if wanted.anonymize_map:
        write(wanted.anonymize_map, [json.format(json.encode(anonymous.mapping())), b"\n"], mode=0o600)
    if written is not None:
        from kschedx.render.manifests import commented_yaml

        write(wanted.config_output, [commented_yaml(anonymous.configuration(written), {}).encode()])
        typer.echo(visible(f"{wanted.config_output}: the scheduler's configuration"), err=True)
    return _SnapshotContent(header=header, objects=kept, others=contents.others - (keep.count() - len(kept)))


_WITHOUT_CONFIG = (
    "a scheduler's configuration that names labels, resources, or schedulers of the cluster does not fit this file; "
    "with --config FILE it is anonymized, too"
)


def _check_extenders(extenders: str | None, config: str | None, *, anonymize: bool) -> None:
    """Raise `InputError` for options that cannot be combined."""
    if extenders not in (None, "record"):
        raise InputError(f'--extenders: found "{extenders}", allowed is "record"')
    if extenders is not None and config is None:
        raise InputError("--extenders record needs --config: the configuration names the extenders")
    if extenders is None and config is not None and not anonymize:
        raise InputError("--config needs --anonymize or --extenders record")
    if extenders is not None and anonymize:
        raise InputError("--extenders record and --anonymize cannot be combined: answers of extenders may hold names")


def _answers(snapshot: Snapshot, config: str) -> bytes:
    """Return the answers of a configuration's extenders about every pending pod, as an object of the file."""
    from kschedx.cli import files
    from kschedx.explain.setup import Setup
    from kschedx.extenders.client import Recorder, call

    recorder = Recorder(call)
    with files.error_places(config):
        setup = Setup.of_cluster(snapshot, config=files.configuration(config), ask=recorder)
    for row in snapshot.pods.pending:
        pod = snapshot.pods[row]
        with suppress(ConfigError, UndecidableError):  # a pod of another scheduler, or an undecided one
            setup.scheduler_on(snapshot).schedule(pod, setup.profile_of(pod))
    return json.encode(recorder.recording)


def _is_same_file(text: str, other: str) -> bool:
    path, other_path = Path(text), Path(other)
    with suppress(OSError):  # one does not exist yet
        return path.samefile(other_path)
    return path.absolute() == other_path.absolute()


def _print_summary(output: str, counts: str, source: Source) -> None:
    """Print what the file contains, and what it lacks."""
    from kschedx.kube.kinds import READ_LIVE
    from kschedx.render import terminal
    from kschedx.render.view import Tone
    from kschedx.snapshot.snapshot import MissingCause

    size = Path(output).stat().st_size
    amount = f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
    forbidden = [kind for kind, cause in source.missing.items() if cause is MissingCause.FORBIDDEN]
    tone, whole = Tone.OPEN if forbidden else Tone.GOOD, sys.maxsize  # a path is not broken
    terminal.write(terminal.title_lines(f"{output}: {counts}, {amount}", tone, whole), terminal.console(sys.stderr))
    for kind in forbidden:  # a kind that is not served has no objects
        typer.echo(f"not included: {READ_LIVE[kind].resource} ({MissingCause.FORBIDDEN.value})", err=True)
