"""The admin client in a program without an event loop."""

from __future__ import annotations

import inspect
import threading

import pytest
import trio

from controller.admin.active_controller import ClusterUnreachable
from controller.admin.client import AdminClient
from controller.admin.sync_client import SyncAdminClient, open_sync_admin
from tests.kit.service import Controllers
from transport.errors import ApiError, ErrorCode
from transport.messages import NewTopic
from transport.metadata import TopicPartition
from transport.store.protocol import StoreUnavailable


def script(port: int) -> tuple[int, ErrorCode]:
    """Do what a script would: no await anywhere."""
    with open_sync_admin(bootstrap=[("127.0.0.1", port)]) as admin:
        [outcome] = admin.create_topics([NewTopic("orders", 1, 1)]).topics
        return admin.read_metadata().controller_epoch, outcome.error


async def test_a_script_asks_and_leaves_no_thread_behind(controllers: Controllers) -> None:
    service = await controllers.start()
    outcome = await trio.to_thread.run_sync(script, service.endpoint.port)
    assert outcome == (1, ErrorCode.BROKER_NOT_AVAILABLE)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("klamm-admin")]


def asking_for_a_missing_partition(port: int) -> ErrorCode:
    """Return the error that a call raises in a script."""
    with open_sync_admin(bootstrap=[("127.0.0.1", port)]) as admin, pytest.raises(ApiError) as raised:
        admin.list_reassignments([TopicPartition("missing", 0)])
    return raised.value.code


async def test_what_a_call_raises_is_raised_in_the_script(controllers: Controllers) -> None:
    service = await controllers.start()
    code = await trio.to_thread.run_sync(asking_for_a_missing_partition, service.endpoint.port)
    assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_opening_raises_is_raised_in_the_script() -> None:
    with (
        pytest.raises(StoreUnavailable, match="nothing listens at 127"),
        open_sync_admin(zookeeper_connect="127.0.0.1:1"),
    ):
        pass
    with (
        pytest.raises(ClusterUnreachable, match=r"cannot connect to 127\.0\.0\.1:1: nothing listens there"),
        open_sync_admin(bootstrap=[("127.0.0.1", 1)], timeout=0.5),
    ):
        pass


def test_there_is_a_method_for_each_of_the_client_with_its_documentation() -> None:
    methods = {
        name: method
        for name, method in inspect.getmembers(AdminClient, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    blocking = {name: getattr(SyncAdminClient, name, None) for name in methods}
    assert {name: method and method.__doc__ for name, method in blocking.items()} == {
        name: method.__doc__ for name, method in methods.items()
    }
