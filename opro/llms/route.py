"""How to reach an endpoint: host, TLS, proxy."""

from __future__ import annotations

import base64
import ssl
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPSConnection

from opro.errors import ConfigError

_LOOPBACK = ("localhost", "127.", "::1")


@dataclass(frozen=True, kw_only=True)
class Route:
    """One address that requests are posted to; makes connections to it.

    Attributes:
        target: what stands in the request line.
        headers: what the way (not the endpoint) needs: the proxy's credentials.
        proxy: of the environment (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`), never for loopback.
    """

    host: str
    port: int
    target: str
    context: ssl.SSLContext | None = None
    proxy: urllib.parse.SplitResult | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def connection(self, timeout: float) -> HTTPConnection:
        """Return a connection that is not open yet; `timeout` in seconds, for opening it."""
        host, port = self.host, self.port
        if self.proxy is not None:
            host, port = self.proxy.hostname or "", self.proxy.port or 80
        if self.context is None:
            return HTTPConnection(host, port, timeout=timeout)
        secure = HTTPSConnection(host, port, timeout=timeout, context=self.context)
        if self.proxy is not None:
            secure.set_tunnel(self.host, self.port, headers=_proxy_headers(self.proxy))
        return secure


def check_base_url(base_url: str) -> str:
    """Return `base_url` without a slash at its end.

    Raises:
        ConfigError: it isn't a plain http(s) address. Credentials in it are refused, not used:
            configuration is logged, the environment isn't. The message doesn't repeat them.
    """
    try:
        parts = urllib.parse.urlsplit(base_url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"llm.base_url is not an address ({error})") from None
    if "@" in parts.netloc:
        raise ConfigError(
            f"llm.base_url for host {host!r} holds a user name or password; name an environment "
            "variable in llm.api_key_env (a bearer token) or llm.headers_env instead"
        )
    if parts.query or parts.fragment:
        raise ConfigError(f"llm.base_url for host {host!r} must end with its path: no '?', no '#'")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f"llm.base_url is {base_url!r}; it must be http://… or https://…")
    return base_url.rstrip("/")


def find_route(url: str) -> Route:
    """Return the way to `url`, by the environment's proxies and trusted certificates."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    proxy = _proxy(parts.scheme, host)
    plain_proxy = proxy is not None and not secure
    return Route(
        host=host,
        port=parts.port or (443 if secure else 80),
        target=url if plain_proxy else parts.path or "/",
        context=_context() if secure else None,
        proxy=proxy,
        headers=_proxy_headers(proxy) if proxy is not None and plain_proxy else {},
    )


def _proxy(scheme: str, host: str) -> urllib.parse.SplitResult | None:
    address = urllib.request.getproxies().get(scheme)
    if not address or host.startswith(_LOOPBACK) or urllib.request.proxy_bypass(host):
        return None
    return urllib.parse.urlsplit(address if "://" in address else f"http://{address}")


def _proxy_headers(proxy: urllib.parse.SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    user, password = (urllib.parse.unquote(part or "") for part in (proxy.username, proxy.password))
    token = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return {"Proxy-Authorization": f"Basic {token}"}


def _context() -> ssl.SSLContext:
    """Trust what the system trusts, and certifi's list where it is installed.

    Some builds of Python find no system certificates; certifi comes with most HTTP packages.
    """
    context = ssl.create_default_context()
    try:
        import certifi
    except ImportError:
        return context
    context.load_verify_locations(certifi.where())
    return context
