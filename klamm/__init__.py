"""The face of Klamm: the names that programs import.

`run` runs a controller in a trio nursery, `run_asyncio` in an asyncio program. `AdminClient` asks a cluster what an
administrator asks, `SyncAdminClient` does so without async. `run_broker` runs a service as a broker of the cluster.
`klamm.testing` puts a whole cluster into a test.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing `typing` takes time in which Ctrl-C is not handled yet
if TYPE_CHECKING:
    from broker.config import BrokerConfig
    from broker.kit import run_broker
    from broker.service import Service
    from controller.admin.active_controller import ClusterUnreachable, OutcomeUnknown
    from controller.admin.client import AdminClient
    from controller.admin.kafka_admin import KafkaAdmin
    from controller.admin.opening import open_admin
    from controller.admin.plan_ids import OtherCluster, PlanIds, PlanMismatch, TopicsCreatedAgain
    from controller.admin.planning import compute_plan
    from controller.admin.sync_client import SyncAdminClient, open_sync_admin
    from controller.asyncio_host import run_asyncio
    from controller.config import ControllerConfig
    from controller.embedding import ControllerIdInUse, run
    from controller.node.admission import Authorizer
    from controller.node.service import ControllerService
    from controller.observation.observer import CommittedRound, DecidedRound, Observer, PublishedRound
    from spark_bridge.errors import PlanError
    from spark_bridge.inputs.sources import Sources
    from spark_bridge.model.goal import Goal, GoalKind
    from spark_bridge.model.summary import Summary
    from spark_bridge.process.request import PlanRequest
    from transport.acls import Operation, Resource, ResourceType
    from transport.errors import ApiError, ErrorCode
    from transport.wire import UnsupportedApi

_HOMES = {
    "AdminClient": "controller.admin.client",
    "ApiError": "transport.errors",
    "Authorizer": "controller.node.admission",
    "BrokerConfig": "broker.config",
    "ClusterUnreachable": "controller.admin.active_controller",
    "CommittedRound": "controller.observation.observer",
    "ControllerConfig": "controller.config",
    "ControllerIdInUse": "controller.embedding",
    "ControllerService": "controller.node.service",
    "DecidedRound": "controller.observation.observer",
    "ErrorCode": "transport.errors",
    "Goal": "spark_bridge.model.goal",
    "GoalKind": "spark_bridge.model.goal",
    "KafkaAdmin": "controller.admin.kafka_admin",
    "Observer": "controller.observation.observer",
    "Operation": "transport.acls",
    "OtherCluster": "controller.admin.plan_ids",
    "OutcomeUnknown": "controller.admin.active_controller",
    "PlanError": "spark_bridge.errors",
    "PlanIds": "controller.admin.plan_ids",
    "PlanMismatch": "controller.admin.plan_ids",
    "PlanRequest": "spark_bridge.process.request",
    "PublishedRound": "controller.observation.observer",
    "Resource": "transport.acls",
    "ResourceType": "transport.acls",
    "Service": "broker.service",
    "Sources": "spark_bridge.inputs.sources",
    "Summary": "spark_bridge.model.summary",
    "SyncAdminClient": "controller.admin.sync_client",
    "TopicsCreatedAgain": "controller.admin.plan_ids",
    "UnsupportedApi": "transport.wire",
    "compute_plan": "controller.admin.planning",
    "open_admin": "controller.admin.opening",
    "open_sync_admin": "controller.admin.sync_client",
    "run": "controller.embedding",
    "run_asyncio": "controller.asyncio_host",
    "run_broker": "broker.kit",
}

__all__ = [
    "AdminClient",
    "ApiError",
    "Authorizer",
    "BrokerConfig",
    "ClusterUnreachable",
    "CommittedRound",
    "ControllerConfig",
    "ControllerIdInUse",
    "ControllerService",
    "DecidedRound",
    "ErrorCode",
    "Goal",
    "GoalKind",
    "KafkaAdmin",
    "Observer",
    "Operation",
    "OtherCluster",
    "OutcomeUnknown",
    "PlanError",
    "PlanIds",
    "PlanMismatch",
    "PlanRequest",
    "PublishedRound",
    "Resource",
    "ResourceType",
    "Service",
    "Sources",
    "Summary",
    "SyncAdminClient",
    "TopicsCreatedAgain",
    "UnsupportedApi",
    "compute_plan",
    "open_admin",
    "open_sync_admin",
    "run",
    "run_asyncio",
    "run_broker",
]


def __getattr__(name: str) -> object:
    # Lazily, so that the command's help does not wait for trio and kazoo.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
