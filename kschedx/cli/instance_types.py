"""`kschedx instance-types`: what clouds publish, as a catalog for --instance-types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import to_builtins

from kschedx.cli.options import Command, argument
from kschedx.cli.output import Answer, ExitCode, Format, Report, option
from kschedx.errors import InputError, Place
from kschedx.kube.names import INSTANCE_TYPE_LABELS, ZONE_LABELS, first_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from kschedx.inquiry.node import PriceOf
    from kschedx.karpenter.catalogue import InstanceTypes
    from kschedx.snapshot.snapshot import Snapshot

COMMAND = Command(
    "Print instance types as a catalog",
    help="""Print the instance types of a file as the catalog that --instance-types takes.

\b
Examples:
  aws ec2 describe-instance-types > ec2.json
  kschedx instance-types ec2.json -o yaml > types.yaml
  kschedx why pod/web-0 --instance-types types.yaml

FILE is the output of `aws ec2 describe-instance-types`, the instance types of Karpenter's kwok provider, or a catalog.
Allocatable resources are computed as karpenter-provider-aws does with its defaults. Add zones, prices, and what is sold
out to the catalog.
""",
)


def instance_types(
    file: str = argument("FILE"),
    output: Format | None = option(
        Format.JSON, Format.YAML, Format.NAME, text="json and yaml: the catalog; name: names only."
    ),
) -> Answer:
    from kschedx.render.karpenter import catalogue_lines

    catalogue = read(file)
    report = Report(
        screen=lambda *_: catalogue_lines(catalogue),
        document=lambda: to_builtins(catalogue),
        names=lambda: [instance_type.name for instance_type in catalogue.instance_types],
    )
    return Answer(report, ExitCode.SCHEDULABLE)


def read(path: str) -> InstanceTypes:
    """Return the catalog of a file, in any of the forms. Raises `InputError` with the line."""
    from kschedx.cli.files import single_document
    from kschedx.karpenter.catalogue import any_catalogue
    from kschedx.sources.line_numbers import with_line

    document = single_document(path)
    try:
        return any_catalogue(document)
    except InputError as error:
        place = Place(source=path, document=1 if error.place.field else None)
        raise with_line(error, place) from None


def prices_by_node(path: str | None, snapshot: Snapshot) -> Callable[[str], float | None]:
    """Return a function from a node's name to its price per hour, by its labels; None for all without a catalog. Raises
    `InputError`."""
    from kschedx.kube.autoscalers import CAPACITY_TYPE

    price_of = None if path is None else prices_of(path)

    def price(name: str) -> float | None:
        labels = snapshot.cluster.nodes[snapshot.cluster.index[name]].metadata.labels
        bought = labels.get(CAPACITY_TYPE, "on-demand")
        place = first_label(labels, INSTANCE_TYPE_LABELS), first_label(labels, ZONE_LABELS)
        return None if price_of is None else price_of(*place, bought)

    return price


def prices_of(path: str) -> PriceOf:
    """Return the prices per hour of a catalog. Raises `InputError`."""
    prices: dict[tuple[str, str, str], float | None] = {
        (instance_type.name, offering.zone, offering.capacity_type): offering.price
        for instance_type in read(path).instance_types
        for offering in instance_type.offerings
    }
    return lambda name, zone, bought: prices.get((name, zone, bought))
