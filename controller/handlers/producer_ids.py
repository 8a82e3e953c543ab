"""Ids for idempotent producers, which brokers are given in blocks (KIP-730).

The last block stands in `/latest_producer_id_block`, which brokers of releases before 3.0 write themselves. Therefore
each write expects the version that was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.model import registrations
from controller.model.context import ControllerContext
from controller.model.rounds import Rounds, Step, commit, read, until_none_is_left
from transport.errors import ApiError, ErrorCode
from transport.messages import AllocateProducerIdsResponse
from transport.settings import LONG_MAX
from transport.store import paths
from transport.store.fields import UndecodableZnode
from transport.store.producer_ids import decode_producer_ids, encode_producer_ids
from transport.store.protocol import write_over

BLOCK: Final = 1_000
"""The number of ids in a block, as in Kafka."""


def allocate_producer_ids(
    context: ControllerContext, broker_id: int, broker_epoch: int
) -> Rounds[AllocateProducerIdsResponse]:
    """Give a broker the next block of ids. A block that cannot be recorded is not given.

    Raises ApiError unless the broker is registered under this epoch and the block is recorded.
    """
    _admit(context, broker_id, broker_epoch)
    given: list[range] = []

    def allocate(pending: list[int]) -> Rounds[list[int]]:
        [znode] = yield from read([paths.PRODUCER_IDS])
        last = _decode(b"" if znode is None else znode.data)
        ids = range(last.stop, last.stop + BLOCK)
        if ids.stop > LONG_MAX:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "all ids for producers have been given away")
        write = write_over(znode, paths.PRODUCER_IDS, encode_producer_ids(broker_id, ids))
        refused = yield from commit("producer ids", [Step(writes=(write,))], on_rejected=_refuse)
        given[:] = [] if refused else [ids]
        return pending if refused else []

    yield from until_none_is_left("producer ids", [broker_id], allocate)
    [ids] = given
    return AllocateProducerIdsResponse(ids.start, BLOCK)


def _refuse(_rejected: Sequence[Step]) -> None:
    text = f"{paths.PRODUCER_IDS} cannot be written: see the controller's log, and give the controller access to it"
    raise ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED, text)


def _admit(context: ControllerContext, broker_id: int, broker_epoch: int) -> None:
    if not registrations.is_alive(context, broker_id):
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered")
    if not registrations.may_ask(context, broker_id, broker_epoch):
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker_id} is registered under another epoch")


def _decode(data: bytes) -> range:
    try:
        return decode_producer_ids(data)
    except UndecodableZnode as fault:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{fault}: repair that znode") from fault
