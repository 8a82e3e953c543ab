"""Twenty connections to a name of three addresses, of which the first is silent: `python -m tests.wire.twenty_names`.

Real sockets and a real clock. `make soak` prints how many connect within 10 s; `test_several_addresses` tests the order
of attempts without a clock.
"""

from __future__ import annotations

import sys

import trio

from tests.wire.test_several_addresses import ANSWER, HANDLERS, NAME, Three
from transport.messages import MetadataRequest
from transport.wire import open_connection, serve

COUNT = 20
SECONDS = 10.0


async def main() -> int:
    """Connect, and print the result; return the exit code."""
    network, took = Three(), list[float]()
    async with trio.open_nursery() as nursery:
        port = await nursery.start(serve, network, HANDLERS, "127.0.0.1", 0)
        [silent] = await trio.open_tcp_listeners(port, host="127.0.0.2")
        for _ in range(COUNT):
            begun = trio.current_time()
            with trio.move_on_after(SECONDS):
                async with open_connection(network, NAME, port, client_id="me") as connection:
                    if await connection.call(MetadataRequest()) == ANSWER:
                        took.append(trio.current_time() - begun)
        await silent.aclose()
        nursery.cancel_scope.cancel()
    slowest = f"; the slowest took {max(took):.2f} s" if took else ""
    print(f"a name with one silent address of three: {len(took)} of {COUNT} connect within {SECONDS:.0f} s{slowest}")
    return int(len(took) < COUNT)


if __name__ == "__main__":
    sys.exit(trio.run(main))
