"""Kafka's clients cannot update features of a cluster in ZooKeeper mode, and are told so in Kafka's words."""

from __future__ import annotations

import pytest

from tests.kafka.test_kafka_node import KAFKA, asking
from tests.kit.service import Controllers
from transport.acls import Operation
from transport.kafka import messages as kafka
from transport.kafka.messages.update_features_request import FeatureUpdateKey

UNSUPPORTED = "Could not apply finalized feature update because the provided feature is not supported."
ABSENT = "Can not delete non-existing finalized feature."
LOW = "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the request."


@pytest.mark.parametrize("version", [0, 1])
async def test_no_feature_is_updated(controllers: Controllers, version: int) -> None:
    service = await controllers.start_active(**KAFKA)
    safe = {"upgrade_type": 2} if version else {"allow_downgrade": True}
    updates = [FeatureUpdateKey("metadata.version", 1), FeatureUpdateKey(""), FeatureUpdateKey("low", 0)]
    updates.append(FeatureUpdateKey("absent", 0, **safe))
    expected = {"metadata.version": UNSUPPORTED, "": "Feature name can not be empty.", "low": LOW, "absent": ABSENT}
    if version:
        updates.append(FeatureUpdateKey("odd", 1, upgrade_type=9))
        expected["odd"] = "Received unknown upgrade type."
    async with asking(service) as client:
        request = kafka.UpdateFeaturesRequest(feature_updates=tuple(updates))
        answer = await client.send(request, kafka.UpdateFeaturesResponse, version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert {row.feature: (row.error_code, row.error_message) for row in answer.results} == {
        name: (42, text) for name, text in expected.items()
    }


async def test_who_may_not_is_refused_and_sent_on_by_a_standby(controllers: Controllers) -> None:
    active = await controllers.start_active(**KAFKA, authorizer=lambda _, operation, __: operation != Operation.ALTER)
    standby = await controllers.start(1002, **KAFKA)
    told = []
    for service in (active, standby):
        async with asking(service) as client:
            answer = await client.send(kafka.UpdateFeaturesRequest(), kafka.UpdateFeaturesResponse, 1)
            told.append((answer.error_code, answer.error_message))
    assert told == [
        (31, "Cluster authorization failed."),
        (41, "This is not the correct controller for this cluster."),
    ]
