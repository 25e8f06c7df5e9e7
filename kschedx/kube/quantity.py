"""Quantities: "250m", "1.5Gi", "12e6" to exact amounts and back, as in apimachinery/pkg/api/resource.

Plugins compute with int64 values of base units (`value`: bytes, pods, devices) or of thousandths (`milli_value`: cpu).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, StrEnum, unique
from functools import lru_cache
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.kube.scalars import MAX_INT64, MIN_INT64, parse_int64, wrap_int32, wrap_int64
from kschedx.patterns import lazy_pattern

Written = str | int | float  # a quantity in a manifest; without quotes it is a number
ResourceList = dict[str, Written]


@unique
class QuantityFormat(StrEnum):
    """The format of a quantity, which decides how it is printed."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


MILLI = -3
_NANO = -9

_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX_OF_1024_POWER = ("", *_BINARY_SUFFIXES)
_SUFFIX_OF_EXPONENT = {exponent: suffix for suffix, exponent in DECIMAL_SUFFIXES.items()}


class Quantity(Struct, frozen=True, kw_only=True, eq=False):
    """The exact amount `mantissa * 10**exponent`. Quantities with the same amount are equal, whatever their format. The
    finest unit is a nano-unit, and the mantissa has no factor of ten. Upstream: `Quantity` in quantity.go."""

    mantissa: int
    exponent: int
    format: QuantityFormat
    is_big: bool  # whether upstream stores it as a decimal of any length, which decides its value beyond int64
    canonical: str  # the parsed text if it is canonical, otherwise empty
    is_whole: bool  # whether upstream takes it for an integer: not "1000m" or "1.0", whose unit is smaller than one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and (self.mantissa, self.exponent) == (other.mantissa, other.exponent)

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct has its own, which would compare identities

    def __hash__(self) -> int:
        return hash((self.mantissa, self.exponent))

    def value(self) -> int:
        """Return the amount in whole units as an int64, rounded away from zero."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """Return the amount in thousandths as an int64, rounded away from zero."""
        return self.scaled_value(MILLI)

    def scaled_value(self, scale: int) -> int:
        """Return the amount in units of `10**scale` as an int64, rounded away from zero. Beyond int64, the result
        equals kube-scheduler's: 0 for a short number ("10E"), the low 64 bits for a long one (twenty digits)."""
        shift = self.exponent - scale
        if shift < 0:
            amount: int = _divide_rounding_up(self.mantissa, -shift)
        elif self.is_big:
            amount = self.mantissa * pow(10, shift, 2**64)
        elif shift < len(str(MAX_INT64)):
            amount = self.mantissa * 10**shift
        else:
            return 0
        if self.is_big:
            return wrap_int64(amount)
        return amount if MIN_INT64 <= amount <= MAX_INT64 else 0

    def nano_value(self) -> int:
        """Return the exact amount in nano-units, up to 10**64 units."""
        # only the low 64 bits of a larger amount are read, and they are zero for any exponent
        scale: int = 10 ** min(self.exponent - _NANO, 64 - _NANO + 3)
        return self.mantissa * scale

    def __add__(self, other: Quantity) -> Quantity:
        """Add exactly. The sum has the format of the first summand that is not zero."""
        total = parse_quantity(f"{self.nano_value() + other.nano_value()}n")
        return replace(total, format=(self if self.mantissa else other).format, canonical="")

    def __lt__(self, other: Quantity) -> bool:
        return self.nano_value() < other.nano_value()

    def __str__(self) -> str:
        """Format as Kubernetes does. Above E, where Kubernetes loses the suffix, use a parsable exponent."""
        if self.canonical:
            return self.canonical
        if self.mantissa == 0:
            return "0"
        if self.format is QuantityFormat.BINARY_SI and self.exponent >= 0:
            whole = self.mantissa * 10**self.exponent
            if abs(whole) >= 1024:
                return _binary_text(whole)
        return _decimal_text(self.mantissa, self.exponent, self.format)


# --- parsing

_EXPRESSION = r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_FORMAT_WRONG = f"quantities must match the regular expression '{_EXPRESSION}'"
_NUMERIC_WRONG = "unable to parse numeric part of quantity"
_SUFFIX_WRONG = "unable to parse quantity's suffix"

# What quantity.go parses, which is more than the expression it documents: "m" and "." are zero. Possessive, so linear.
_SCANNED = lazy_pattern(r"(([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+)([eEinumkKMGTP]*+[-+]?[0-9]*+)")
_DECIMAL_EXPONENT = lazy_pattern(r"[eE](.+)")

_LONGEST = 4000
"""The maximum number of characters. kube-scheduler has no limit, but no amount needs more, and Python refuses longer
integers."""

_SHORT_DIGITS = 18  # decimal digits that upstream always stores as an int64 (maxInt64Factors in math.go)

# The characters of Go's strings.TrimSpace, which are fewer than those of str.strip.
GO_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


@lru_cache(maxsize=16384)
def parse_quantity(written: Written) -> Quantity:
    """Parse a manifest's quantity as Kubernetes does, ignoring spaces around it.

    Amounts are rounded away from zero to nano-units, and a binary amount beyond int64 is capped. Raises InputError with
    Kubernetes' message. Upstream: `ParseQuantity` in quantity.go.
    """
    text = _as_text(written)
    scanned = _SCANNED.fullmatch(text)
    if not text or scanned is None:
        raise _refusal(_FORMAT_WRONG, text)
    number, sign, whole, fraction, suffix = scanned[1], scanned[2], scanned[3] or "0", scanned[4] or "", scanned[5]
    if suffix in _BINARY_SUFFIXES:
        form, power = QuantityFormat.BINARY_SI, _BINARY_SUFFIXES[suffix]
        is_short = not fraction and len(whole) + power * 3 // 10 <= 14
        factor, exponent = 2**power, -len(fraction)
    elif suffix in DECIMAL_SUFFIXES:
        form, factor, exponent = QuantityFormat.DECIMAL_SI, 1, DECIMAL_SUFFIXES[suffix] - len(fraction)
        is_short = len(whole) + len(fraction) <= _SHORT_DIGITS and exponent >= _NANO
    else:
        form, factor, exponent = QuantityFormat.DECIMAL_EXPONENT, 1, _written_exponent(suffix, text) - len(fraction)
        is_short = len(whole) + len(fraction) <= _SHORT_DIGITS and exponent >= _NANO
    if not is_short and not number.strip("+-."):
        raise _refusal(_NUMERIC_WRONG, text)

    digits = whole + fraction
    mantissa = int(digits) * factor
    is_whole = is_short and exponent >= 0
    if is_short:
        canonical = text if _is_canonical(form, digits, exponent) else ""
    else:
        canonical = ""
        mantissa, exponent = _round_up_to_nano(mantissa, exponent)
        if form is QuantityFormat.BINARY_SI and mantissa > MAX_INT64 * 10**-exponent:
            mantissa, exponent = MAX_INT64, 0
        if form is QuantityFormat.BINARY_SI and 0 < mantissa < 10**-exponent:
            form = QuantityFormat.DECIMAL_SI
    mantissa, exponent = _without_factors_of_ten(-mantissa if sign == "-" else mantissa, exponent)
    return Quantity(
        mantissa=mantissa, exponent=exponent, format=form, is_big=not is_short, canonical=canonical, is_whole=is_whole
    )


@lru_cache(maxsize=16384)
def value(written: Written) -> int:
    """Cached `parse_quantity(written).value()`."""
    return parse_quantity(written).value()


@lru_cache(maxsize=16384)
def milli_value(written: Written) -> int:
    """Cached `parse_quantity(written).milli_value()`."""
    return parse_quantity(written).milli_value()


def resource_amount(resource: str, written: Written | Quantity | None) -> int:
    """Return an amount in the integers of plugins: milli-units of cpu, units of everything else; 0 for None."""
    if written is None:
        return 0
    if isinstance(written, Quantity):
        return written.milli_value() if resource == "cpu" else written.value()
    return milli_value(written) if resource == "cpu" else value(written)


def _as_text(written: Written) -> str:
    """Return the text that Kubernetes parses, after YAML is converted to JSON."""
    if isinstance(written, float):
        return str(int(written)) if written.is_integer() and abs(written) < 1e21 else repr(written)
    is_too_long = written.bit_length() > 3 * _LONGEST if isinstance(written, int) else len(written) > _LONGEST
    if is_too_long:
        raise InputError(f"a quantity of more than {_LONGEST} characters is not supported")
    return str(written).strip(GO_SPACE)


def _written_exponent(suffix: str, text: str) -> int:
    match = _DECIMAL_EXPONENT.fullmatch(suffix)
    exponent = parse_int64(match[1]) if match else None
    if exponent is None:
        raise _refusal(_SUFFIX_WRONG, text)
    return wrap_int32(exponent)


def _is_canonical(form: QuantityFormat, digits: str, exponent: int) -> bool:
    """Whether upstream prints the parsed text unchanged. Its test is approximate, so "1.500" and "+5" count too."""
    match form:
        case QuantityFormat.BINARY_SI:
            return int(digits) % 8 != 0
        case QuantityFormat.DECIMAL_SI | QuantityFormat.DECIMAL_EXPONENT:
            return exponent % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")
        case _:
            assert_never(form)


def _round_up_to_nano(mantissa: int, exponent: int) -> tuple[int, int]:
    if exponent >= _NANO:
        return mantissa, exponent
    return _divide_rounding_up(mantissa, _NANO - exponent), _NANO


def _divide_rounding_up(number: int, places: int) -> int:
    """Return `number / 10**places`, rounded away from zero; fast for any number of places."""
    # 2**(3 * places) < 10**places: every smaller number is a fraction.
    if number.bit_length() <= 3 * places:
        return (number > 0) - (number < 0)
    quotient: int = -(-abs(number) // 10**places)
    return quotient if number > 0 else -quotient


def _without_factors_of_ten(mantissa: int, exponent: int) -> tuple[int, int]:
    if mantissa == 0:
        return 0, 0
    digits = str(mantissa)
    bare = digits.rstrip("0")
    return int(bare), exponent + len(digits) - len(bare)


def _refusal(message: str, text: str) -> InputError:
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    likely = _suggest_quantity(text)
    return InputError(message, hint=f"found {shown!r}, did you mean {likely!r}?" if likely else f"found {shown!r}")


def _suggest_quantity(text: str) -> str:
    """Suggest a quantity for a suffix in the wrong case, after a space, or with a "B" for bytes: "5Gi" for "5 gib"."""
    match = re.fullmatch(r"([+-]?[0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z]{1,3})", text)
    if match is None:
        return ""
    wanted = match[2].lower().removesuffix("b")
    known = {suffix.lower(): suffix for suffix in (*DECIMAL_SUFFIXES, *_BINARY_SUFFIXES) if suffix != "m"}
    return match[1] + known[wanted] if wanted in known else ""


# --- formatting


def _binary_text(whole: int) -> str:
    power = 0
    while whole % 1024 == 0:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_SUFFIX_OF_1024_POWER[power]}"


def _decimal_text(mantissa: int, exponent: int, form: QuantityFormat) -> str:
    above = exponent % 3
    mantissa, exponent = mantissa * 10**above, exponent - above
    if exponent == 0:
        return str(mantissa)
    if form is not QuantityFormat.DECIMAL_EXPONENT and exponent in _SUFFIX_OF_EXPONENT:
        return f"{mantissa}{_SUFFIX_OF_EXPONENT[exponent]}"
    return f"{mantissa}e{exponent}"


@unique
class Unit(Enum):
    """The unit of a resource's integers in plugins."""

    MILLI = "m"
    BYTE = "bytes"
    COUNT = ""

    @classmethod
    def of(cls, resource: str) -> Unit:
        """Return thousandths for cpu, bytes for memory and storage, otherwise a plain count."""
        if resource == "cpu":
            return cls.MILLI
        if resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-"):
            return cls.BYTE
        return cls.COUNT


# Largest first. Decimal multiples too, since "2G" of memory is not a whole number of Mi.
_MULTIPLES_OF_BYTES = sorted(
    [(2**power, suffix) for suffix, power in _BINARY_SUFFIXES.items()]
    + [(10**power, suffix) for suffix, power in DECIMAL_SUFFIXES.items() if power >= 0],
    reverse=True,
)
_MULTIPLES = {Unit.MILLI: [(1000, ""), (1, "m")], Unit.BYTE: _MULTIPLES_OF_BYTES, Unit.COUNT: [(1, "")]}


def format_quantity(amount: int, unit: Unit) -> str:
    """Format a plugin's integer as Kubernetes would: 2500 milli is "2500m", 2000 is "2"; 2**30 bytes is "1Gi"."""
    return format_quantities((amount,), unit)[0]


def format_quantities(amounts: Iterable[int], unit: Unit) -> tuple[str, ...]:
    """Format the amounts in the largest unit that keeps all whole, so that sums and differences can be checked."""
    numbers = tuple(amounts)
    size, suffix = next((size, suffix) for size, suffix in _MULTIPLES[unit] if all(it % size == 0 for it in numbers))
    return tuple(f"{number // size}{suffix}" if number else "0" for number in numbers)
