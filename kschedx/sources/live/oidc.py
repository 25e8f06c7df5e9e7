"""The login of `auth-provider: oidc`: an ID token, renewed at the identity provider once it has expired.

The new tokens are used and not written back: kschedx changes no kubeconfig.

Upstream: client-go's plugin/pkg/client/auth/oidc.
"""

from __future__ import annotations

import base64
import binascii
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from kschedx.errors import InputError, Place

_EARLY = 10.0
"""Seconds before its end from which a token is no longer used."""
_LONGEST = 1 << 20
"""Bytes of an answer."""


class _Claims(Struct, frozen=True):
    exp: float = 0.0


class _Discovery(Struct, frozen=True):
    token_endpoint: str = ""


class _Tokens(Struct, frozen=True):
    id_token: str = ""


def id_token(config: Mapping[str, str], place: Place, *, timeout: float) -> str:
    """The token that the API server takes. Raises `InputError`."""
    token = config.get("id-token", "")
    if token and _is_fresh(token):
        return token
    for needed in ("idp-issuer-url", "client-id", "refresh-token"):
        if not config.get(needed):
            raise InputError(f"the ID token has expired, and without {needed} there is no new one", place=place)
    return _renewed(config, place, timeout)


def _is_fresh(token: str) -> bool:
    parts = token.split(".")
    if len(parts) != 3:
        return False
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=="), type=_Claims)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return False
    return claims.exp - _EARLY > time.time()


def _renewed(config: Mapping[str, str], place: Place, timeout: float) -> str:
    import urllib3

    issuer = config["idp-issuer-url"].rstrip("/")
    if not issuer.startswith("https://"):
        raise InputError("idp-issuer-url: expected a URL with https://", place=place)
    pool = urllib3.PoolManager(ssl_context=_trust(config, place))

    def answer(method: str, url: str, body: str | None = None) -> bytes:
        if not url.startswith("https://"):
            raise InputError(f"the identity provider {issuer} has a token endpoint without https://", place=place)
        try:
            response = pool.request(
                method,
                url,
                body=body,
                headers={"Content-Type": "application/x-www-form-urlencoded"} if body else {},
                preload_content=False,
                redirect=False,
                retries=False,
                timeout=timeout,
            )
            with response:
                read = response.read(_LONGEST)
        except urllib3.exceptions.SSLError:
            message = f"the identity provider {issuer} has a certificate that nobody vouches for"
            hint = "idp-certificate-authority says whom to trust"
            raise InputError(message, place=place, hint=hint) from None
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            raise InputError(f"the identity provider {issuer} cannot be reached", place=place) from None
        if response.status != 200:
            message = f"the identity provider {issuer} answers {response.status} {response.reason or ''}".rstrip()
            raise InputError(message, place=place, hint="log in again")
        return read

    try:
        found = msgspec.json.decode(answer("GET", f"{issuer}/.well-known/openid-configuration"), type=_Discovery)
        form = {
            "grant_type": "refresh_token",
            "refresh_token": config["refresh-token"],
            "client_id": config["client-id"],
            "client_secret": config.get("client-secret", ""),
        }
        tokens = msgspec.json.decode(answer("POST", found.token_endpoint, urlencode(form)), type=_Tokens)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InputError(f"the identity provider {issuer} answers what is not understood", place=place) from None
    if not tokens.id_token:
        raise InputError(f"the identity provider {issuer} gives no ID token", place=place, hint="log in again")
    return tokens.id_token


def _trust(config: Mapping[str, str], place: Place) -> ssl.SSLContext:
    try:
        data = config.get("idp-certificate-authority-data", "")
        if data:
            return ssl.create_default_context(cadata=base64.b64decode(data, validate=True).decode("ascii"))
        return ssl.create_default_context(cafile=config.get("idp-certificate-authority") or None)
    except (binascii.Error, OSError, ValueError):
        raise InputError("idp-certificate-authority cannot be used", place=place) from None
