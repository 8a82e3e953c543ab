"""Bugs in what is between our controllers and Apache Kafka's brokers, which runs with such brokers reveal."""

from __future__ import annotations

import pytest

from tests.simulation.planted.edits import edit


def a_version_above_the_brokers(patch: pytest.MonkeyPatch) -> None:
    """Send requests in the highest version that we have, whatever the broker has."""
    edit(
        patch,
        "transport.kafka.client:KafkaConnection.version_of",
        ("highest = min(ours.last, theirs.last, ", "highest = min(ours.last, "),
    )


def the_broker_epoch_is_that_before(patch: pytest.MonkeyPatch) -> None:
    """Send LeaderAndIsr under a broker epoch that is one too low."""
    edit(
        patch,
        "transport.kafka.orders:leader_and_isr",
        ("broker_epoch=request.broker_epoch,", "broker_epoch=request.broker_epoch - 1,"),
    )


def orders_have_no_topic_ids(patch: pytest.MonkeyPatch) -> None:
    """Send LeaderAndIsr without the ids of topics."""
    edit(
        patch,
        "transport.kafka.packed_states:packed_orders",
        ("_topics(topics, ", '_topics({(name, ""): of for (name, _), of in topics.items()}, '),
    )


def the_controller_is_not_announced(patch: pytest.MonkeyPatch) -> None:
    """Leave the controller out of the live brokers, where brokers look for its address."""
    edit(
        patch,
        "controller.channels.broker_channels:BrokerChannels.nodes",
        ("return nodes if self.node is None else [*nodes, self.node]", "return nodes"),
    )


def the_live_brokers_are_not_all(patch: pytest.MonkeyPatch) -> None:
    """Leave a broker out of the live brokers of an UpdateMetadata, which replace all that were sent before."""
    edit(
        patch,
        "transport.kafka.orders:update_metadata",
        ("live_brokers=tuple(map(_live_broker, nodes)),", "live_brokers=tuple(map(_live_broker, nodes[1:])),"),
    )


def stops_delete_nothing(patch: pytest.MonkeyPatch) -> None:
    """Send StopReplica without its request to delete the log."""
    edit(
        patch,
        "transport.kafka.packed_states:_stop",
        ("stop.leader_epoch, stop.delete)", "stop.leader_epoch, False)"),
    )


def a_deletion_has_no_epoch_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """Send a leader epoch that brokers refuse in place of the one that stands for the deletion of a topic."""
    edit(
        patch,
        "transport.kafka.packed_states:_stop",
        ("stop.leader_epoch, stop.delete)", "max(stop.leader_epoch, 0), stop.delete)"),
    )


def every_replica_is_new(patch: pytest.MonkeyPatch) -> None:
    """Let brokers create an empty log for each replica that they do not find."""
    edit(
        patch,
        "transport.kafka.packed_states:_order",
        ("state, is_new = order.state, order.is_new", "state, is_new = order.state, True"),
    )


def no_replica_is_new(patch: pytest.MonkeyPatch) -> None:
    """Do not let brokers with a failed directory create logs."""
    edit(
        patch,
        "transport.kafka.packed_states:_order",
        ("state, is_new = order.state, order.is_new", "state, is_new = order.state, False"),
    )


def the_isr_is_sorted(patch: pytest.MonkeyPatch) -> None:
    """Send an ISR in the order of ids, in which it is another one than the leader's."""
    edit(
        patch,
        "transport.kafka.packed_states:_order",
        ("_ids(state.isr)", "_ids(tuple(sorted(state.isr)))"),
    )


def offline_replicas_are_not_sent(patch: pytest.MonkeyPatch) -> None:
    """Leave the offline replicas out of UpdateMetadata."""
    edit(
        patch,
        "transport.kafka.packed_states:_metadata",
        ("_ids(state.offline_replicas)", "_ids(())"),
    )


def deleted_topics_are_not_announced(patch: pytest.MonkeyPatch) -> None:
    """Leave out of UpdateMetadata the partitions that brokers are to forget."""
    edit(
        patch,
        "transport.kafka.packed_states:packed_metadata",
        (
            "    if not isinstance(states, SharedRows):\n",
            "    states = [s for s in states if s.leader != -2]\n    if not isinstance(states, SharedRows):\n",
        ),
    )


def an_epoch_that_is_known_counts_as_an_error(patch: pytest.MonkeyPatch) -> None:
    """Take a broker's answer that it knows a leader epoch already for one that it cannot use the log."""
    edit(
        patch,
        "transport.kafka.orders:_outcome",
        ("return ErrorCode.NONE if", "return ErrorCode.KAFKA_STORAGE_ERROR if"),
    )


def an_old_version_freezes_a_leader(patch: pytest.MonkeyPatch) -> None:
    """Leave a leader alone that has proposed an ISR on the basis of an older state."""
    edit(
        patch,
        "controller.handlers.leader_epochs:_frozen",
        ("is_frozen = error is ErrorCode.INVALID_UPDATE_VERSION or (", "is_frozen = ("),
    )


def members_without_an_epoch_are_left_out(patch: pytest.MonkeyPatch) -> None:
    """Leave out of a proposed ISR the members whose broker epoch is -1, as in ZooKeeper mode all have."""
    edit(
        patch,
        "transport.kafka.questions:_item",
        (
            "for member in partition.new_isr_with_epochs)",
            "for member in partition.new_isr_with_epochs if member.broker_epoch >= 0)",
        ),
    )


def proposals_are_answered_without_topic_ids(patch: pytest.MonkeyPatch) -> None:
    """Answer AlterPartition by names alone."""
    edit(
        patch,
        "transport.kafka.questions:alter_partition_answer",
        ("answers.TopicData(topic.topic_name, topic.topic_id, tuple", 'answers.TopicData(topic.topic_name, "", tuple'),
    )


def a_controller_that_loads_knows_no_topic(patch: pytest.MonkeyPatch) -> None:
    """Answer that a topic is unknown while the cluster is being loaded."""
    edit(
        patch,
        "controller.node.kafka_node:KafkaNode._alter_partition",
        (
            "return kafka.AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)",
            "return questions.alter_partition_answer(message, version, str, messages.AlterPartitionResponse(()))",
        ),
    )


def a_standby_grants_controlled_shutdowns(patch: pytest.MonkeyPatch) -> None:
    """Answer a broker that stops that it leads nothing any more, without being in office."""
    edit(
        patch,
        "controller.node.kafka_node:KafkaNode._controlled_shutdown",
        (
            "epoch = None if context is None",
            "if context is None: return kafka.ControlledShutdownResponse()\n        epoch = None if context is None",
        ),
    )


def a_controller_keeps_replicas_among_others(patch: pytest.MonkeyPatch) -> None:
    """Replace only those replicas on controllers that are the only ones of their partitions."""
    edit(
        patch,
        "controller.handlers.own_replicas:replaced",
        ("if not controllers.isdisjoint(assignment.replicas)", "if controllers.issuperset(assignment.replicas)"),
    )


def namesakes_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """Start a replica on a broker that may be ordered again to delete the log of an earlier topic of that name."""
    edit(
        patch,
        "controller.model.context:ControllerContext.has_namesake",
        ("!= stray.topic_id", "!= stray.topic_id and False"),
    )


def a_broker_without_the_listener_is_dead(patch: pytest.MonkeyPatch) -> None:
    """Take a broker for dead that lacks the listener which the controller is set to use."""
    edit(
        patch,
        "controller.handlers.brokers:_read_registrations",
        ("            found.unusable.append(_unusable(id_, znode, str(fault)))", "            del fault"),
    )


def an_unaddressable_leader_gets_epochs(patch: pytest.MonkeyPatch) -> None:
    """Begin leader epochs that the leader cannot be sent."""
    edit(
        patch,
        "controller.model.registrations:is_held",
        ("return bool(context.unusable) and", "return False and"),
    )


BUGS = (
    a_version_above_the_brokers,
    the_broker_epoch_is_that_before,
    orders_have_no_topic_ids,
    the_controller_is_not_announced,
    the_live_brokers_are_not_all,
    stops_delete_nothing,
    a_deletion_has_no_epoch_of_its_own,
    every_replica_is_new,
    no_replica_is_new,
    the_isr_is_sorted,
    offline_replicas_are_not_sent,
    deleted_topics_are_not_announced,
    an_epoch_that_is_known_counts_as_an_error,
    an_old_version_freezes_a_leader,
    members_without_an_epoch_are_left_out,
    proposals_are_answered_without_topic_ids,
    a_controller_that_loads_knows_no_topic,
    a_standby_grants_controlled_shutdowns,
    a_controller_keeps_replicas_among_others,
    namesakes_do_not_wait,
    a_broker_without_the_listener_is_dead,
    an_unaddressable_leader_gets_epochs,
)
