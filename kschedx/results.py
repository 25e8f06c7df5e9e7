"""How the library's results look: a line in a session, a screen when printed, a card in a notebook.

`kschedx.render` stands above the parts that make results, and is loaded by name when one is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module


class Shown:
    """A result that `kschedx.render.results` knows how to show."""

    __slots__ = ()

    def to_dict(self) -> Mapping[str, object]:
        """Its document."""
        raise NotImplementedError

    def records(self) -> list[dict[str, object]]:
        """Flat rows with equal keys, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The screen, as the command line prints it."""
        text: str = import_module("kschedx.render.results").screen(self)
        return text

    def _repr_html_(self) -> str:
        """A card for a notebook: headline, causes, and the first fixes."""
        card: str = import_module("kschedx.render.results").card(self)
        return card
