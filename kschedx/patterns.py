"""Regular expressions that are compiled when they are first used.

A command uses few of those that its modules have, and compiling one takes up to a millisecond of its start.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    lazy_pattern = re.compile
else:

    class lazy_pattern:  # noqa: N801 - stands for the function re.compile
        def __init__(self, text, flags=0):
            self._text, self._flags = text, flags

        def __getattr__(self, name):
            """Return a method of the compiled pattern, which from then on is found without this function."""
            method = getattr(re.compile(self._text, self._flags), name)
            setattr(self, name, method)
            return method
