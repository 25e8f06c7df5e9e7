"""Connections with TLS, with the words of Go's crypto/tls and crypto/x509 where one is not trusted.

Upstream: TLSConfigFor in client-go/transport, as makeTransport in pkg/scheduler/extender.go fills it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place


class TLSError(Exception):
    """No trusted connection; `str()` is Go's word for it."""


class Identity(Struct, frozen=True, kw_only=True):
    """Whom to trust, and what to show; text is PEM, and takes the place of the file."""

    insecure: bool = False
    server_name: str = ""
    """In place of the URL's host."""
    ca_file: str = ""
    ca_data: bytes = b""
    cert_file: str = ""
    cert_data: bytes = b""
    key_file: str = ""
    key_data: bytes = b""
    place: str = ""
    """Where it is configured."""

    def without_certificate(self) -> Identity:
        return replace(self, cert_file="", cert_data=b"", key_file="", key_data=b"")


def secured_socket(plain: socket.socket, host: str, identity: Identity) -> ssl.SSLSocket:
    """The connection after the handshake. Raises `TLSError`, and `InputError` for files that cannot be used."""
    context = _context(identity)
    name = identity.server_name or host
    with socket.socket(fileno=os.dup(plain.fileno())) as beside:
        try:
            held = context.wrap_socket(plain, server_hostname=name)
        except ssl.SSLCertVerificationError as error:
            raise TLSError(f"tls: failed to verify certificate: x509: {_untrusted(error)}") from None
        except ssl.SSLError as error:
            raise TLSError(_no_tls(beside) if error.reason in _NO_RECORD else refused(error)) from None
    if not identity.insecure:
        complaint = _not_for(held.getpeercert() or {}, name)
        if complaint:
            held.close()
            raise TLSError(f"tls: failed to verify certificate: x509: {complaint}")
    return held


def _context(identity: Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DEFAULT@SECLEVEL=1")  # Go takes RSA keys of 1024 bits too
    context.check_hostname = False  # the name is compared afterwards, with Go's words
    if identity.insecure:
        context.verify_mode = ssl.CERT_NONE
    elif identity.ca_data or identity.ca_file:
        text = _text(identity.ca_data, identity.ca_file, "caFile", identity)
        try:
            context.load_verify_locations(cadata=text.decode("ascii", "replace"))
        except (ssl.SSLError, ValueError):
            field = "caData" if identity.ca_data else "caFile"
            raise _unusable(field, "holds no certificate in PEM", identity) from None
    else:
        context.load_default_certs()
    if (identity.cert_data or identity.cert_file) and (identity.key_data or identity.key_file):
        _show(context, identity)
    return context


def _show(context: ssl.SSLContext, identity: Identity) -> None:
    """A client certificate; Python takes it from files only."""
    pair = _text(identity.cert_data, identity.cert_file, "certFile", identity)
    pair += b"\n" + _text(identity.key_data, identity.key_file, "keyFile", identity)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # readable by its owner alone
        file.write(pair)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=b"")
        except (ssl.SSLError, ValueError):
            raise _unusable("certFile and keyFile", "hold no certificate with its key in PEM", identity) from None


def _text(data: bytes, file: str, field: str, identity: Identity) -> bytes:
    if data:
        return data
    try:
        return Path(file).read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        text = f"{file}: {reason} (it is a file of kube-scheduler's machine; copy it here)"
        raise _unusable(field, text, identity) from None


def _unusable(field: str, message: str, identity: Identity) -> InputError:
    return InputError(message, place=Place(field=f"{identity.place}.tlsConfig.{field}".lstrip(".")))


_UNTRUSTED = {
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    26: "certificate specifies an incompatible key usage",
}


def _untrusted(error: ssl.SSLCertVerificationError) -> str:
    return _UNTRUSTED.get(error.verify_code, "certificate signed by unknown authority")


_ALERTS = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "certificate required",
    "SSLV3_ALERT_BAD_CERTIFICATE": "bad certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "expired certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "unknown certificate",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "handshake failure",
    "TLSV1_ALERT_UNKNOWN_CA": "unknown certificate authority",
    "TLSV1_ALERT_PROTOCOL_VERSION": "protocol version not supported",
    "TLSV1_ALERT_INTERNAL_ERROR": "internal error",
    "TLSV1_UNRECOGNIZED_NAME": "unrecognized name",
}


_NO_RECORD = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


def _no_tls(held: socket.socket) -> str:
    """What answers without TLS; of its answer, OpenSSL has read what would be a record's header, five bytes."""
    held.setblocking(False)
    try:
        rest = held.recv(4)
    except OSError:
        rest = b""
    if re.fullmatch(rb"\d\.\d ", rest):  # of `HTTP/1.1 `
        return "http: server gave HTTP response to HTTPS client"
    return "tls: first record does not look like a TLS handshake"


def refused(error: ssl.SSLError) -> str:
    """The other side's alert, or what else ended the connection."""
    reason = error.reason or ""
    if reason in _ALERTS:
        return f"remote error: tls: {_ALERTS[reason]}"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "EOF"
    return f"tls: {reason.lower().replace('_', ' ') or 'handshake failed'}"


def _not_for(certificate: Mapping[str, object], host: str) -> str:
    """What x509 says of a certificate for other names; empty where it is for `host`."""
    names = certificate.get("subjectAltName", ())
    pairs = [(str(one[0]), str(one[1])) for one in names] if isinstance(names, tuple) else []
    addresses = [value for kind, value in pairs if kind == "IP Address"]
    domains = [value for kind, value in pairs if kind == "DNS"]
    try:
        wanted = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if any(_matches(domain.lower(), host.lower().rstrip(".")) for domain in domains):
            return ""
        if not pairs and _matches(_common_name(certificate).lower(), host.lower().rstrip(".")):
            return _LEGACY
        if not domains:
            return f"certificate is not valid for any names, but wanted to match {host}"
        if len(domains) > _MOST_NAMES:
            return f"certificate is valid for {len(domains)} names, but none matched {host}"
        return f"certificate is valid for {', '.join(domains)}, not {host}"
    if any(ipaddress.ip_address(address) == wanted for address in addresses):
        return ""
    if not pairs and _common_name(certificate) == host:
        return _LEGACY
    if not addresses:
        return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
    told = ", ".join(str(ipaddress.ip_address(address)) for address in addresses)
    return f"certificate is valid for {told}, not {host}"


_LEGACY = "certificate relies on legacy Common Name field, use SANs instead"
_MOST_NAMES = 100


def _common_name(certificate: Mapping[str, object]) -> str:
    subject = certificate.get("subject", ())
    fields = [field for parts in subject for field in parts] if isinstance(subject, tuple) else []
    return next((str(value) for key, value in fields if key == "commonName"), "")


def _matches(pattern: str, host: str) -> bool:
    first, _, rest = pattern.partition(".")
    if first == "*":
        label, _, parent = host.partition(".")
        return bool(label) and parent == rest and bool(rest)
    return pattern == host
