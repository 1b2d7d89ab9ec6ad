"""Strict headers for every answer: what a browser may do with it, which is as little as the pages need."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

NONCE = "tablesafe.nonce"
"""Where the guard leaves the number that marks our own scripts."""
STATIC = re.compile(r"/_nicegui/[^/]+/(static|libraries|components|esm|resources)/|/assets/")
"""Files of the program itself, the same for everybody: they may be kept for a while."""
DROPPED = re.compile(rb"access-control-.*|server|x-powered-by|x-nicegui-content|cache-control|etag|last-modified")

FIXED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "x-permitted-cross-domain-policies": "none",
    "x-dns-prefetch-control": "off",
    "permissions-policy": (
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), "
        "microphone=(), midi=(), payment=(), screen-wake-lock=(), serial=(), usb=(), browsing-topics=()"
    ),
}

REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; font-src data:; frame-ancestors 'none'"
)
"""For a report that is looked at in the browser: it is alone in there, and reaches nothing of the app."""


def page_policy(nonce: str, host: str) -> str:
    """What a page may load: only from this app. Scripts must carry the number of this answer or be files of the app.

    The framework builds its elements from templates in the browser ('unsafe-eval') and sets styles there
    ('unsafe-inline' for styles only).
    """
    return "; ".join([
        "default-src 'none'",
        f"script-src 'self' 'nonce-{nonce}' 'unsafe-eval'",
        "script-src-attr 'none'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        f"connect-src 'self' ws://{host}",
        "worker-src 'none'",
        "manifest-src 'none'",
        "object-src 'none'",
        "frame-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ])  # fmt: skip


def strict_headers(scope: MutableMapping[str, Any], headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with ours in place of whatever the framework says about the same."""
    given = {name.lower() for name, _ in headers}
    kept = [(name.lower(), value) for name, value in headers if not DROPPED.fullmatch(name.lower())]
    ours = dict(FIXED)
    if b"content-security-policy" not in given:
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        ours["content-security-policy"] = page_policy(scope[NONCE], host if _is_plain(host) else "localhost")
    static = STATIC.match(scope["path"]) is not None
    ours["cache-control"] = "private, max-age=86400, immutable" if static else "no-store"
    return [*((n, v) for n, v in kept if n.decode() not in ours), *((n.encode(), v.encode()) for n, v in ours.items())]


def _is_plain(host: str) -> bool:
    return re.fullmatch(r"[\w.:\[\]-]+", host) is not None
