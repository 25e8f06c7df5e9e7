"""`kschedx kueue`: the queues of Kueue, their usage, and who waits for what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from kschedx.cli.options import READS
from kschedx.cli.output import ExitCode, Format, Report, option, write
from kschedx.cli.question import Question, asks

HELP = """Show Kueue's ClusterQueues, cohorts, and flavors with their usage, and why each Workload is pending.

Kueue 0.19's rules run over the snapshot, cycle after cycle, until nothing changes: flavor assignment, borrowing,
preemption, fair sharing, partial admission, admission checks, and topology. No Workload finishes meanwhile.

\b
Examples:
  kschedx kueue
  kschedx kueue -s dump.tar.gz -o wide
  kschedx kueue --kueue-config kueue.yaml -o json    # every cycle

--kueue-config is Kueue's Configuration, or the ConfigMap kueue-manager-config. Without it, Kueue's defaults apply.

Exit codes: 0 no Workload is pending, 1 some are, 2 usage or input error.
"""
SUMMARY = "Show Kueue's queues and why Workloads are pending"


@asks(*READS)
def kueue(
    kueue_config: Annotated[
        str | None,
        typer.Option("--kueue-config", metavar="FILE", help="Kueue's Configuration.", show_default=False),
    ] = None,
    kueue_feature_gate: Annotated[
        list[str] | None,
        typer.Option("--kueue-feature-gate", metavar="NAME=BOOL", help="A feature gate of Kueue.", show_default=False),
    ] = None,
    now: Annotated[
        str | None,
        typer.Option(
            "--now", metavar="TIME", help="When the run starts.  [default: when the snapshot was taken, else now]"
        ),
    ] = None,
    output: Annotated[
        Format | None,
        option(
            *(Format.WIDE, Format.JSON, Format.YAML),
            text="wide shows every Workload and cause; json and yaml every cycle.",
        ),
    ] = None,
    *,
    question: Question,
) -> int:
    """The command; its help is HELP."""
    from kschedx.kueue.overview import overview
    from kschedx.kueue.run import start_of
    from kschedx.kueue.settings import resolve
    from kschedx.kueue.workloads import timestamp

    settings = resolve(_configuration(kueue_config), _gates(kueue_feature_gate or ()))
    snapshot = question.read().snapshot
    started = start_of(snapshot, now)
    found = overview(snapshot, settings, now=timestamp(started), written_now=started)

    def screen(wide: bool) -> None:
        from kschedx.render.kueue import print_overview

        print_overview(found, wide=wide)

    write(Report(screen=screen, document=found.admissions.to_dict), output)
    return ExitCode.UNSCHEDULABLE if found.waiting else ExitCode.SCHEDULABLE


def _configuration(path: str | None) -> Mapping[str, object] | None:
    """Raises `InputError`."""
    if path is None:
        return None
    from kschedx.errors import InputError, Place

    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", place=Place(source=path)) from None
    found = list(_configurations(text, path))
    if len(found) != 1:
        raise InputError("expected one Kueue Configuration", place=Place(source=path))
    return found[0]


def _configurations(text: bytes, source: str) -> Iterator[Mapping[str, object]]:
    """Those of a file, and of the ConfigMaps in it."""
    from kschedx.sources import yaml

    for part in yaml.split(text, source=source):
        read = yaml.load(part, source=source)
        document = read.value if read is not None else None
        if not isinstance(document, Mapping):
            continue
        data = document.get("data")
        if document.get("kind") == "ConfigMap" and isinstance(data, Mapping):
            for key, held in data.items():
                yield from _configurations(str(held).encode(), f"{source}: data[{key}]")
        elif document.get("kind") == "Configuration":
            yield document


def _gates(written: list[str] | tuple[str, ...]) -> dict[str, bool]:
    """Raises `InputError`."""
    from kschedx.errors import InputError

    found = {}
    for one in written:
        name, _, value = one.partition("=")
        if value.lower() not in ("true", "false"):
            raise InputError(f"--kueue-feature-gate {one}: expected NAME=true or NAME=false")
        found[name] = value.lower() == "true"
    return found
