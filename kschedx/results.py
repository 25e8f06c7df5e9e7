"""How the library's results are shown: a line in a session, a screen when printed, a card in a notebook.

`kschedx.render` depends on the packages that make results, so it is imported by name when a result is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module


class Shown:
    """A result that `kschedx.render.results` can show."""

    __slots__ = ()

    def to_dict(self) -> Mapping[str, object]:
        """Return the document of the result."""
        raise NotImplementedError

    def records(self) -> list[dict[str, object]]:
        """Return flat rows with equal keys, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        raise NotImplementedError

    def __str__(self) -> str:
        """Return the screen that the command line prints."""
        text: str = import_module("kschedx.render.results").screen(self)
        return text

    def _repr_html_(self) -> str:
        """Return a card for a notebook: headline, causes, and the first fixes."""
        card: str = import_module("kschedx.render.results").card(self)
        return card
