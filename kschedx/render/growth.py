"""What cluster-autoscaler and Karpenter add for all pods that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kschedx.render import terminal
from kschedx.render.layout import BLANK, paragraph

if TYPE_CHECKING:
    from kschedx.autoscaler.growth import Growth
    from kschedx.karpenter.growth import Growth as Provisioned


def growth_texts(growth: Growth | None, provisioned: Provisioned | None) -> Iterator[str]:
    """A sentence for each that is there."""
    if growth is not None:
        from kschedx.render.words.autoscaler import growth_text

        yield growth_text(growth)
    if provisioned is not None:
        from kschedx.render.words.karpenter import growth_text as provisioned_text

        yield provisioned_text(provisioned)


def print_growth(growth: Growth | None, provisioned: Provisioned | None) -> None:
    out = terminal.console()
    for told in growth_texts(growth, provisioned):
        terminal.write([*paragraph(told, out.width), BLANK], out)
