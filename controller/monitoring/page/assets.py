"""The files of the page, and the headers that keep a browser to them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from transport.http import Headers, Page

_FILES: Final = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

HEADERS: Final[Headers] = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
"""Only the page's own files run in it or can be asked by it, nothing may frame it, and no text becomes markup."""


@cache
def assets() -> dict[str, Page]:
    """Return the files by path."""
    folder = files("controller.monitoring.page") / "static"
    return {
        path: Page((folder / name).read_bytes(), content_type=content_type, headers=HEADERS)
        for path, (name, content_type) in _FILES.items()
    }
