"""Named formats: what a text has to be to be a name, a date, a URI.

Upstream: apiserver/pkg/cel/library/format.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kschedx.api import names
from kschedx.cel.functions import Run, single
from kschedx.cel.library.urls import request_uri_error
from kschedx.cel.types import FORMAT, STRING, list_of, optional_of
from kschedx.cel.values import NONE, Budget, Format, Optional, Value

_DNS_1035 = re.compile(r"[a-z](?:-*[a-z0-9]++)*+")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DNS_1035_TOLD = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def _dns_1035(value: str) -> Iterator[str]:
    if len(value.encode(errors="surrogatepass")) > 63:
        yield "must be no more than 63 characters"
    if not _DNS_1035.fullmatch(value):
        yield _DNS_1035_TOLD


def _of_prefix(errors: Callable[[str], Iterator[str]]) -> Callable[[str], Iterator[str]]:
    """A name that something follows may end in a dash."""
    return lambda value: errors(f"{value[:-1]}a" if len(value) > 1 and value.endswith("-") else value)


def _uri(value: str) -> Iterator[str]:
    told = request_uri_error(value)
    if told is not None:
        yield told


def _uuid(value: str) -> Iterator[str]:
    if not _UUID.fullmatch(value):
        yield "does not match the UUID format"


def _byte(value: str) -> Iterator[str]:
    from base64 import b64decode

    try:
        if value == "":
            raise ValueError
        b64decode(value, validate=True)
    except ValueError:
        yield "invalid base64"


def _date(value: str) -> Iterator[str]:
    from datetime import date

    try:
        if not _DATE.fullmatch(value):
            raise ValueError
        date.fromisoformat(value)
    except ValueError:
        yield "invalid date"


def _datetime(value: str) -> Iterator[str]:
    from kschedx.cel.library.times import timestamp_from_text

    if timestamp_from_text(value.upper()) is None:
        yield "invalid datetime"


_FORMATS: dict[str, tuple[str, int, Callable[[str], Iterator[str]]]] = {
    "dns1123Label": ("DNS1123Label", 30, names.dns_label_errors),
    "dns1123Subdomain": ("DNS1123Subdomain", 60, names.dns_subdomain_errors),
    "dns1035Label": ("DNS1035Label", 30, _dns_1035),
    "qualifiedName": ("QualifiedName", 60, names.label_key_errors),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", 30, _of_prefix(names.dns_label_errors)),
    "dns1123SubdomainPrefix": ("DNS1123SubdomainPrefix", 60, _of_prefix(names.dns_subdomain_errors)),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", 30, _of_prefix(_dns_1035)),
    "labelValue": ("LabelValue", 40, names.label_value_errors),
    "uri": ("URI", 1103, _uri),
    "uuid": ("uuid", 86, _uuid),
    "byte": ("byte", 84, _byte),
    "date": ("date", 137, _date),
    "datetime": ("datetime", 137, _datetime),
}
"""What a format is called inside, and how long a pattern its cost stands for."""


def _format(name: str) -> Format:
    inside, longest, errors = _FORMATS[name]
    return Format(inside, longest, lambda value: list(errors(value)))


def _named(_: Budget, name: str) -> Value:
    return Optional(_format(name)) if name in _FORMATS else NONE


def _constant(name: str) -> Run:
    return lambda _: _format(name)


def _validate(_: Budget, one: Format, text: str) -> Value:
    told = one.validate(text)
    return Optional(list(told)) if told else NONE


FUNCTIONS = (
    single("validate", "format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate),
    single("format.named", "format-named", (STRING,), optional_of(FORMAT), _named, is_member=False),
    *(single(f"format.{name}", f"format.{name}", (), FORMAT, _constant(name), is_member=False) for name in _FORMATS),
)
