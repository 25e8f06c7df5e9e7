"""Which proxy a server is reached through, and how.

Upstream: golang.org/x/net/http/httpproxy for the environment; clientcmd for `proxy-url`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from kschedx.errors import InputError, Place

if TYPE_CHECKING:
    import urllib3

_SCHEMES = ("http", "https", "socks5")
_NOT_IN_URL = re.compile(r"[\x00-\x20\x7f<>\"\\^`{|}]")


def proxy_of_environment(url: str, environment: Mapping[str, str]) -> str:
    """As Go reads HTTPS_PROXY, HTTP_PROXY and NO_PROXY; empty where there is none for this server."""
    target = parts(url)
    if target is None:
        return ""
    name = "https_proxy" if target.scheme == "https" else "http_proxy"
    found = environment.get(name.upper()) or environment.get(name) or ""
    excepted = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not found or _is_direct(target, excepted):
        return ""
    return found if "://" in found else f"http://{found}"


def _is_direct(target: SplitResult, excepted: str) -> bool:
    host = (target.hostname or "").rstrip(".")
    port = str(target.port or {"https": 443}.get(target.scheme, 80))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_excepts(one.strip().lower(), host, port, address) for one in excepted.split(","))


def _excepts(one: str, host: str, port: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> bool:
    if not one:
        return False
    if one == "*":
        return True
    with contextlib.suppress(ValueError):
        network = ipaddress.ip_network(one, strict=False)
        return address is not None and address in network
    if one.count(":") == 1:
        one, _, only = one.partition(":")
        if only != port:
            return False
    if address is not None:
        return one == host
    if one.startswith("*."):
        one = one[1:]
    return host.endswith(one) if one.startswith(".") else host == one or host.endswith(f".{one}")


def split_credentials(url: str) -> tuple[str, str]:
    """The URL without user and password, and those as `user:password`; of what is no URL, what is before its last @."""
    at = parts(url)
    if at is None:
        scheme, separator, rest = url.partition("://") if "://" in url else ("", "", url)
        credentials, _, host = rest.rpartition("@")
        return f"{scheme}{separator}{host}", unquote(credentials)
    if "@" not in at.netloc:
        return url, ""
    credentials, _, host = at.netloc.rpartition("@")
    return urlunsplit(at._replace(netloc=host)), unquote(credentials)


def parts(url: str) -> SplitResult | None:
    """None for what is no URL of a host."""
    if _NOT_IN_URL.search(url):
        return None
    try:
        at = urlsplit(url)
        return at if at.hostname and (at.port is None or at.port) else None
    except ValueError:  # brackets that are no address, a port that is no number
        return None


def pool_through(proxy: str, place: Place, settings: Mapping[str, Any]) -> urllib3.PoolManager:
    """Connections through a proxy; its user and password go to it and to nobody else. Raises `InputError`."""
    import urllib3

    shown, credentials = split_credentials(proxy)
    at = parts(proxy)
    no_proxy = InputError(f'expected a URL with {", ".join(_SCHEMES)}, found "{shown}"', place=place)
    if at is None or at.scheme not in _SCHEMES:
        raise no_proxy
    scheme = at.scheme
    user, _, password = credentials.partition(":")
    if scheme != "socks5":
        headers = urllib3.make_headers(proxy_basic_auth=credentials) if credentials else None
        try:
            return urllib3.ProxyManager(shown, proxy_headers=headers, **settings)
        except urllib3.exceptions.LocationParseError:
            raise no_proxy from None
    try:
        with warnings.catch_warnings(action="ignore"):  # of what is missing, which the error says
            from urllib3.contrib.socks import SOCKSProxyManager
    except ImportError:
        message = f"the proxy {shown} needs the package PySocks (in a clone: pip install '.[socks]')"
        raise InputError(message, place=place) from None
    # the proxy looks up names, as it does for Go
    return SOCKSProxyManager(
        shown.replace("socks5://", "socks5h://", 1), username=user or None, password=password or None, **settings
    )
