"""UpdateFeatures of Kafka's clients, answered as by Kafka's controllers in ZooKeeper mode, which support no feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from transport.errors import ApiError, ErrorCode
from transport.kafka import messages as kafka
from transport.kafka.messages.update_features_request import FeatureUpdateKey
from transport.kafka.messages.update_features_response import UpdatableFeatureResult

_HAS_TYPES: Final = 1
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_WORDS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.NOT_CONTROLLER: "This is not the correct controller for this cluster.",
}


def update_features_answer(
    request: kafka.UpdateFeaturesRequest, version: int, refusal: ApiError | None
) -> kafka.UpdateFeaturesResponse:
    """Return why each update is refused, or why all are."""
    if refusal is not None:
        text = _WORDS.get(refusal.code, refusal.message)
        return kafka.UpdateFeaturesResponse(error_code=refusal.code, error_message=text)
    faults = {update.feature: _fault(update, version) for update in request.feature_updates}
    results = [UpdatableFeatureResult(name, ErrorCode.INVALID_REQUEST, text) for name, text in faults.items()]
    return kafka.UpdateFeaturesResponse(error_message=None, results=tuple(results))


def _fault(update: FeatureUpdateKey, version: int) -> str:
    kind = update.upgrade_type
    if version < _HAS_TYPES:
        kind = _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
    level = update.max_version_level
    if not update.feature:
        return "Feature name can not be empty."
    if kind not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        return "Received unknown upgrade type."
    if level < 1 and kind != _UPGRADE:
        return "Can not delete non-existing finalized feature."
    if level < 1:
        return (
            f"Can not provide versionLevel: {level} less than 1 without setting the SAFE downgradeType in the request."
        )
    return "Could not apply finalized feature update because the provided feature is not supported."
