"""A headless Chromium that tests drive over the pipe of its DevTools protocol: it needs no driver and no port."""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from subprocess import DEVNULL, Popen
from typing import Any, Final

import trio
from attrs import define, field

from tests.spark.report.chromium import FLAGS, chromium

COMMAND_SECONDS: Final = 30.0
UNTIL_SECONDS: Final = 20.0

_AS_3_AND_4: Final = """
import fcntl, os, sys
first, second = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(first, 3)
os.dup2(second, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

_KEYS: Final[dict[str, dict[str, Any]]] = {
    "Enter": {"text": "\r", "windowsVirtualKeyCode": 13},
    "Tab": {"windowsVirtualKeyCode": 9},
}


@define(eq=False)
class Tab:
    """A page that is open in a browser."""

    _call: Callable[[str, object], Awaitable[Any]]
    has_loaded: trio.Event = field(factory=trio.Event, init=False)
    console: list[str] = field(factory=list, init=False)
    """Errors of scripts, violations of the page's policy, and what scripts print."""

    def hear(self, message: dict[str, Any]) -> None:
        """Take what the browser says of the page."""
        self.console += _complaints(message)
        if message["method"] == "Page.loadEventFired":
            self.has_loaded.set()

    async def call(self, method: str, **params: object) -> Any:  # noqa: ANN401 - whatever the browser answers
        """Send a command and return its result."""
        return await self._call(method, params)

    async def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script gives
        """Return the value of an expression in the page."""
        done = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression in the page is true."""
        with trio.move_on_after(UNTIL_SECONDS):
            while not await self.run(script):
                await trio.sleep(0.02)
            return
        raise AssertionError(f"never true: {script}\n{await self.text()}")

    async def text(self) -> str:
        """Return the text that a reader sees."""
        return str(await self.run("document.body.innerText"))

    async def resize(self, width: int, height: int = 900) -> None:
        """Give the page another size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **size)

    async def prefer(self, scheme: str) -> None:
        """Ask for light or dark colours."""
        await self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def press(self, key: str) -> None:
        """Press a key: Tab or Enter."""
        more = _KEYS[key]
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    async def picture(self) -> bytes:
        """Return a PNG of the whole page."""
        taken = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(taken["data"])


@define(eq=False)
class Browser:
    """A browser that runs, for one page at a time."""

    _told: int
    """The descriptor of what it is told."""

    _said: int
    _numbers: count[int] = field(factory=lambda: count(1), init=False)
    _rest: bytes = field(default=b"", init=False)
    """The beginning of a message that has not been read to its end."""

    @asynccontextmanager
    async def opened(self, url: str, width: int = 1280) -> AsyncIterator[Tab]:
        """Open a page within the block, in a window that shares nothing with former ones."""
        writes, reads = (trio.lowlevel.FdStream(os.dup(end)) for end in (self._told, self._said))
        async with writes, reads, trio.open_nursery() as nursery:
            answers: dict[int, trio.MemorySendChannel[Any]] = {}
            tabs: dict[str, Tab] = {}
            call = partial(_call, writes, answers, self._numbers)
            nursery.start_soon(self._listen, reads, answers, tabs)
            context = await call("Target.createBrowserContext", {"disposeOnDetach": True})
            made = await call("Target.createTarget", {"url": "about:blank", **context})
            target = {"targetId": made["targetId"], "flatten": True}
            session = (await call("Target.attachToTarget", target))["sessionId"]
            tab = tabs[session] = Tab(partial(call, session=session))
            for domain in ("Page", "Runtime", "Log"):
                await tab.call(f"{domain}.enable")
            await tab.resize(width)
            await tab.call("Page.navigate", url=url)
            with trio.fail_after(COMMAND_SECONDS):
                await tab.has_loaded.wait()
            yield tab
            await call("Target.disposeBrowserContext", context)
            nursery.cancel_scope.cancel()

    async def _listen(
        self, reads: trio.lowlevel.FdStream, answers: dict[int, trio.MemorySendChannel[Any]], tabs: dict[str, Tab]
    ) -> None:
        while chunk := await reads.receive_some(1 << 16):
            *messages, self._rest = (self._rest + chunk).split(b"\0")
            for message in map(json.loads, messages):
                # What was asked for by a test that failed meanwhile is not in the list.
                waiting = answers.pop(message.get("id", 0), None)
                if waiting is not None:
                    waiting.send_nowait(message)
                elif (tab := tabs.get(message.get("sessionId", ""))) is not None and "method" in message:
                    tab.hear(message)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Run a browser within the block; it reads descriptor 3 and writes descriptor 4."""
    binary = chromium()
    assert binary is not None
    its_input, told = os.pipe()
    said, its_output = os.pipe()
    with tempfile.TemporaryDirectory(prefix="klamm-browser-", ignore_cleanup_errors=True) as profile:
        own = (f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank")
        command = [sys.executable, "-c", _AS_3_AND_4, str(its_input), str(its_output), binary, *FLAGS, *own]
        with Popen(command, stdout=DEVNULL, stderr=DEVNULL, pass_fds=(its_input, its_output)) as process:
            os.close(its_input)
            os.close(its_output)
            try:
                yield Browser(told, said)
            finally:
                process.terminate()
                os.close(told)
                os.close(said)


async def _call(
    writes: trio.lowlevel.FdStream,
    answers: dict[int, trio.MemorySendChannel[Any]],
    numbers: count[int],
    method: str,
    params: object,
    session: str | None = None,
) -> Any:  # noqa: ANN401 - whatever the browser answers
    send, receive = trio.open_memory_channel[Any](1)
    number = next(numbers)
    answers[number] = send
    message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
    with trio.fail_after(COMMAND_SECONDS):
        await writes.send_all(json.dumps(message).encode() + b"\0")
        answer = await receive.receive()
    assert "error" not in answer, answer
    return answer["result"]


def _complaints(message: dict[str, Any]) -> list[str]:
    params = message.get("params", {})
    match message["method"]:
        case "Runtime.exceptionThrown":
            return [str(params["exceptionDetails"])]
        case "Runtime.consoleAPICalled":
            return [str(params["args"])]
        case "Log.entryAdded":
            return [params["entry"]["text"]]
        case _:
            return []
