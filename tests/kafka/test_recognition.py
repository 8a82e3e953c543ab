"""The protocol of a server is found by its answer, and servers of ours do not warn of the question."""

from __future__ import annotations

import pytest
import structlog

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.recognition import Protocol, recognize
from tests.kafka.scripted_nodes import HOST, scripted_nodes
from tests.kit.service import Controllers
from transport.network import TcpNetwork
from transport.zookeeper_server import free_port


async def test_a_broker_of_kafkas_is_recognized_by_one_question() -> None:
    async with scripted_nodes(1) as cluster:
        assert await recognize(cluster.bootstrap, TcpNetwork()) is Protocol.KAFKA
        assert cluster.nodes[1].connections == 1


async def test_a_server_of_ours_is_recognized_and_warns_of_nothing(controllers: Controllers) -> None:
    service = await controllers.start_active()
    with structlog.testing.capture_logs() as lines:
        address = (service.endpoint.host, service.endpoint.port)
        assert await recognize([address], TcpNetwork()) is Protocol.KLAMM
    assert [line for line in lines if line["log_level"] == "warning"] == []


async def test_one_server_that_answers_is_enough() -> None:
    async with scripted_nodes(1) as cluster:
        assert await recognize([(HOST, free_port()), *cluster.bootstrap], TcpNetwork()) is Protocol.KAFKA


async def test_nothing_that_listens_is_no_server() -> None:
    port = free_port()
    with pytest.raises(ClusterUnreachable, match=f"cannot connect to {HOST}:{port}: nothing listens there: name"):
        await recognize([(HOST, port)], TcpNetwork())
