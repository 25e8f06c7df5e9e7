"""URLs as they may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit


def without_password(url: str) -> str:
    """As Go shows a URL: in place of the password stands `xxxxx`."""
    try:
        at = urlsplit(url)
    except ValueError:
        return url
    if at.password is None:
        return url
    user, _, host = at.netloc.rpartition("@")
    return at._replace(netloc=f"{user.partition(':')[0]}:xxxxx@{host}").geturl()
