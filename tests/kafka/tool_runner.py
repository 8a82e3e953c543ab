"""Kafka's command-line tools, run one after the other in one JVM."""

from __future__ import annotations

import subprocess
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from transport.zookeeper_server import find_java

TOOLS: Final = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}
CONFIG_OPTIONS: Final = {
    "kafka-console-consumer": "--consumer.config",
    "kafka-console-producer": "--producer.config",
    "kafka-leader-election": "--admin.config",
}
"""The options for a file of settings that are not named --command-config."""

LIMIT_SECONDS: Final = 120

_PROGRAM: Final = Path(__file__).with_name("RunTools.java")
_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SILENT: Final = "log4j.rootLogger=OFF\n"


@define(eq=False)
class ToolRunner:
    """The JVM, and the servers that each tool is given, with a file of its settings perhaps."""

    bootstrap: str
    _process: trio.Process
    _config: Path | None = None
    _unread: bytes = field(default=b"", init=False)

    async def run(self, tool: str, *arguments: str, stdin: bytes = b"") -> tuple[int, str]:
        """Run a tool, and return its exit code and what it has written."""
        option = CONFIG_OPTIONS.get(tool, "--command-config")
        if self._config is not None and option not in arguments:
            arguments = (option, str(self._config), *arguments)
        words = [stdin, b"--bootstrap-server", self.bootstrap.encode(), *(word.encode() for word in arguments)]
        command = " ".join([TOOLS[tool], *(f"={b64encode(word).decode()}" for word in words)])
        assert self._process.stdin is not None
        with trio.fail_after(LIMIT_SECONDS):
            await self._process.stdin.send_all(f"{command}\n".encode())
            code, _, written = (await self._line()).partition(b" =")
        return int(code), b64decode(written).decode()

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            received = await self._process.stdout.receive_some()
            if not received:
                raise EOFError("the JVM of the tools has ended")
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line


@asynccontextmanager
async def running_tools(
    jars: Path, bootstrap: str, directory: Path, config: Path | None = None
) -> AsyncIterator[ToolRunner]:
    """Run a JVM for tools until the end of the block. Java compiles the program, which needs a JDK."""
    logging = directory / "tools.properties"
    logging.write_text(_SILENT)
    options = (*_OPTIONS, f"-Dlog4j.configuration=file:{logging}", "-cp", f"{jars}/*")
    process = await trio.lowlevel.open_process(
        [find_java(), *options, str(_PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield ToolRunner(bootstrap, process, config)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
