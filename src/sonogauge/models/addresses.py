"""Where requests go: only an address on this machine keeps images on it."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


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


def reached_through(url: str) -> str:
    """Return where a client that obeys the proxies of the environment sends its requests to `url`: a proxy, else `url`.

    Only asked for an address on this machine, which most clients do not spare. User and password are left out.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or not is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return url
    seen = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return f"{seen.scheme}://{seen.netloc.rpartition('@')[2]}"
