"""Kafka's own command-line tools, from the jars of a release."""

from __future__ import annotations

import subprocess
from pathlib import Path

import trio
from attrs import frozen

from tests.kafka.tool_runner import LIMIT_SECONDS, TOOLS
from transport.zookeeper_server import find_java


@frozen
class KafkaTools:
    """The tools, and the brokers that they are given."""

    jars: Path
    bootstrap: str

    async def run(self, tool: str, *arguments: str) -> tuple[int, str]:
        """Run a tool, and return its exit code and what it has written."""
        java = [find_java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self.jars}/*"]
        command = [*java, TOOLS[tool], "--bootstrap-server", self.bootstrap, *arguments]
        with trio.fail_after(LIMIT_SECONDS):
            ran = await trio.run_process(command, capture_stdout=True, stderr=subprocess.STDOUT, check=False)
        # What a tool logs beside has nowhere to go, of which log4j warns.
        lines = [line for line in ran.stdout.decode().splitlines() if not line.startswith("log4j:")]
        return ran.returncode, "\n".join(lines)
