"""Pages of operators, which are only asked whether they say yes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import trio

ANSWER_SECONDS: Final = 5.0
"""The time for a whole answer: a page could send byte after byte for ever."""

MAX_ASKED: Final = 4
"""The most pages that are asked at a time, so that those which never end keep no thread from anything else."""

_SLOTS: Final = trio.lowlevel.RunVar[trio.CapacityLimiter]("slots of pages")


async def page_fault(url: str) -> str | None:
    """Return why a page says no, None if GET is answered with 2xx, by its last redirect, within ANSWER_SECONDS."""
    with trio.move_on_after(ANSWER_SECONDS):
        return await trio.to_thread.run_sync(_fault_of, url, abandon_on_cancel=True, limiter=_slots())
    return "does not answer: timed out"


def shown(url: str) -> str:
    """Return a URL as people may see it: its user and its query may be secrets."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the page"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _slots() -> trio.CapacityLimiter:
    try:
        return _SLOTS.get()
    except LookupError:
        slots = trio.CapacityLimiter(MAX_ASKED)
        _SLOTS.set(slots)
        return slots


def _fault_of(url: str) -> str | None:
    if not url.startswith(("http://", "https://")):
        return "is not the URL of a page"
    # The client of HTTP takes a twentieth of the time in which a command starts, and few commands ask a page.
    from http.client import HTTPException  # noqa: PLC0415
    from urllib.error import HTTPError, URLError  # noqa: PLC0415
    from urllib.request import Request, urlopen  # noqa: PLC0415

    try:
        with urlopen(Request(url), timeout=ANSWER_SECONDS) as answer:  # noqa: S310  its scheme was checked
            status = answer.status
    except HTTPError as error:
        with error:
            status = error.code
    except URLError as error:
        return f"does not answer: {_words(error.reason)}"
    except HTTPException as error:
        # Its text may quote a part of the URL, or whatever was answered.
        return f"is no page that can be got: {type(error).__name__}"
    except (OSError, ValueError) as error:
        return f"does not answer: {_words(error)}"
    return None if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES else f"answers {status}"


def _words(reason: object) -> str:
    """Return a reason without the number of a system error."""
    return reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason)
