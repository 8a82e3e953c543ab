"""The table of Kafka's apis: clients know newer versions than a controller answers, and no message comes too early."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.kafka.test_kafka_node import KAFKA
from tests.kit.service import Controllers
from transport.kafka import messages as kafka
from transport.kafka.apis import KAFKA_APIS
from transport.kafka.codec import decode, encode
from transport.kafka.connecting import open_kafka_connection
from transport.kafka.header import RequestHeader, pack_request, unpack_response
from transport.kafka.schema import Message
from transport.kafka.server import KafkaRequest, serve_stream
from transport.network import TcpNetwork
from transport.wire.frame_stream import FrameStream
from transport.wire.frames import frame

OFFERED = {
    "AllocateProducerIds": (0, 0),
    "AlterPartition": (0, 3),
    "AlterPartitionReassignments": (0, 0),
    "AlterUserScramCredentials": (0, 0),
    "ApiVersions": (0, 4),
    "ControlledShutdown": (0, 3),
    "CreatePartitions": (0, 3),
    "CreateTopics": (0, 7),
    "DeleteTopics": (0, 6),
    "DescribeCluster": (0, 1),
    "ElectLeaders": (0, 2),
    "ListPartitionReassignments": (0, 0),
    "Metadata": (0, 12),
    "UpdateFeatures": (0, 1),
}
"""The versions that a controller among Kafka brokers answers: those of 3.9."""


async def test_a_controller_offers_the_versions_that_it_answers(controllers: Controllers) -> None:
    service = await controllers.start(**KAFKA)
    assert service.node is not None
    [at] = service.node.listeners
    async with open_kafka_connection(TcpNetwork(), at.host, at.port, client_id="client") as client:
        offered = {KAFKA_APIS[key].name: (each.first, each.last) for key, each in client.offered.items()}
    assert offered == OFFERED


async def answer_to(request: Message, version: int) -> bytes | None:
    """Return the answer of a server of Metadata; None if it ends the connection."""

    async def metadata(_request: KafkaRequest) -> Message:
        await trio.lowlevel.checkpoint()
        return kafka.MetadataResponse()

    ours, theirs = memory_stream_pair()
    header = RequestHeader(request.api_key, version, 1, "client")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve_stream, theirs, {kafka.MetadataRequest: metadata}))
        await ours.send_all(frame(pack_request(type(request), header, encode(request, version))))
        answer = await FrameStream(ours).receive()
        await ours.aclose()
    return answer


@pytest.mark.parametrize(("version", "is_answered"), [(12, True), (13, False)])
async def test_a_version_that_only_clients_know_is_not_answered(version: int, *, is_answered: bool) -> None:
    assert (await answer_to(kafka.MetadataRequest(), version) is not None) is is_answered


async def test_a_client_that_names_its_node_learns_that_this_is_not_checked() -> None:
    """Version 5 of ApiVersions has the ids of cluster and node; a server that does not check them must not take it."""
    payload = await answer_to(kafka.ApiVersionsRequest("client", "1", "cluster", 7), 5)
    assert payload is not None
    _, body = unpack_response(kafka.ApiVersionsResponse, 0, payload)
    answer = decode(kafka.ApiVersionsResponse, 0, body)
    assert answer.error_code == 35
    assert {each.api_key: each.max_version for each in answer.api_keys} == {3: 12, 18: 4}


def test_the_key_of_each_api_is_that_of_its_messages() -> None:
    for key, api in KAFKA_APIS.items():
        assert api.request.api_key == api.response.api_key == key
        assert api.request.versions == api.response.versions


def test_a_message_is_imported_when_it_is_used_first() -> None:
    program = (
        "import sys; from transport.kafka.apis import KAFKA_APIS;"
        "names = lambda: [n for n in sys.modules if n.startswith('transport.kafka.messages.')];"
        "print(names()); KAFKA_APIS[3].request; print(names())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['transport.kafka.messages.metadata_request']"]


def test_what_is_no_message_is_not_found() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'ProduceRequest'"):
        getattr(kafka, "ProduceRequest")  # noqa: B009  mypy knows that it is not there
