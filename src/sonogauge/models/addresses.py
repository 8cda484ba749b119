"""Where requests go: only an address on this machine keeps images on it."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether an address lies on this machine; names are not looked up, only `localhost` is known.

    >>> is_loopback("http://127.0.0.1:8000/v1"), is_loopback("http://[::1]:80"), is_loopback("http://localhost")
    (True, True, True)
    >>> is_loopback("http://10.0.0.7:8000"), is_loopback("http://localhost.example.org"), is_loopback("anthropic")
    (False, False, False)
    """
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
