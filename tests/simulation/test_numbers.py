"""Every order to a broker has a number of its own."""

from __future__ import annotations

from msgspec.structs import replace

from simulator.safety.numbers import Numbers
from transport.messages import StopReplicaRequest
from transport.messages.control import UNNUMBERED

ORDER = StopReplicaRequest(101, 1, 7, (), 0)


def faults(*orders: StopReplicaRequest) -> list[str]:
    """Return the faults found in orders to one broker."""
    numbers = Numbers()
    return [fault for order in orders for fault in numbers.ordered(3, order)]


def test_numbers_of_their_own_and_copies_are_in_order() -> None:
    assert faults(ORDER, replace(ORDER, number=1), ORDER) == []


def test_a_number_is_missing() -> None:
    assert faults(replace(ORDER, number=UNNUMBERED)) == ["broker 3 was sent StopReplicaRequest without a number"]


def test_two_orders_have_one_number() -> None:
    [fault] = faults(ORDER, replace(ORDER, controller_id=102))
    assert "under the number 0 of another order" in fault


def test_a_new_controller_and_a_new_incarnation_count_anew() -> None:
    assert faults(ORDER, replace(ORDER, controller_id=102, controller_epoch=2)) == []
    assert faults(ORDER, replace(ORDER, broker_epoch=8, controller_id=102)) == []


def test_orders_of_an_earlier_controller_are_not_compared() -> None:
    later = replace(ORDER, controller_epoch=2)
    assert faults(later, ORDER, replace(ORDER, controller_id=102)) == []


def test_few_orders_are_remembered() -> None:
    many = [replace(ORDER, number=number) for number in range(100)]
    assert faults(*many, replace(ORDER, controller_id=102)) == []
