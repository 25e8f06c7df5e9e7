"""Quantities as Go prints the struct: for plugins whose texts show one with %v."""

from __future__ import annotations

from typing import Self

from msgspec import Struct

from kschedx.api.quantity import milli_value, value

_SCALES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class GoQuantity(Struct, frozen=True, kw_only=True):
    """`value` times ten to the `scale`: int64Amount in k8s.io/apimachinery/pkg/api/resource."""

    value: int
    scale: int
    form: str = "DecimalSI"

    @classmethod
    def parsed(cls, written: str | int | float) -> Self:
        """As it is read from a manifest. Raises `InputError` for what is no quantity."""
        text = str(written)
        whole = value(text)
        if text.endswith("i"):
            return cls(value=whole, scale=0, form="BinarySI")
        digits, _, fraction = text.rstrip("numkMGTPE").partition(".")
        suffix = text[len(text.rstrip("numkMGTPE")) :]
        if not (digits + fraction).lstrip("+-").isdigit():
            return cls(value=milli_value(text), scale=-3)
        return cls(value=int(digits + fraction), scale=_SCALES[suffix] - len(fraction))

    def minus(self, amount: int, *, scale: int) -> Self:
        """Less an amount of another scale; the finer one stays."""
        if not amount:
            return self
        finest = min(self.scale, scale) if self.value else scale
        own = self.value * 10 ** max(self.scale - finest, 0)
        return type(self)(value=own - amount * 10 ** max(scale - finest, 0), scale=finest, form=self.form)

    @property
    def printed(self) -> str:
        return f"{{{{{self.value} {self.scale}}} {{<nil>}}  {self.form}}}"

    def rounded_up(self, resource: str) -> int:
        """In milli-units of cpu, units of everything else."""
        places = self.scale + (3 if resource == "cpu" else 0)
        return self.value * int(10**places) if places >= 0 else -(-self.value // int(10**-places))
