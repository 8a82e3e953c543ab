"""The actions on a simulated cluster: strikes happen at once, requests are awaited.

`Crash(1).on(cluster)`, `await AddPartitions({"orders": 6}).on(cluster)`; see docs/testing.md.
"""

from __future__ import annotations

from simulator.actions.network import BreakConnections, Heal, Isolate, SilenceConnections, Slow
from simulator.actions.processes import (
    ChangeEndpoint,
    Crash,
    CrashOnArrival,
    FailDisk,
    HoldQueue,
    KeepOutOfIsr,
    MendDisk,
    Pause,
    ReleaseQueue,
    Restart,
    ResumeFetching,
    Skew,
    Start,
    Stop,
    StopFetching,
    Wake,
)
from simulator.actions.requests import (
    AddPartitions,
    AlterTopic,
    CreateTopic,
    CreateTopics,
    DeleteTopic,
    Elect,
    Produce,
    Reassign,
)
from simulator.actions.scene import CannotBeDone, Request, Strike
from simulator.actions.sessions import AtCommit, Depose, Disconnect, Expire, Lag, Reconnect, SlowStore, lose_answer
from simulator.actions.znodes import (
    Damage,
    MarkForDeletion,
    NotifyIsrChange,
    NotifyLogDir,
    RewriteTopic,
    WriteElection,
    WriteRequests,
)

__all__ = [
    "AddPartitions",
    "AlterTopic",
    "AtCommit",
    "BreakConnections",
    "CannotBeDone",
    "ChangeEndpoint",
    "Crash",
    "CrashOnArrival",
    "CreateTopic",
    "CreateTopics",
    "Damage",
    "DeleteTopic",
    "Depose",
    "Disconnect",
    "Elect",
    "Expire",
    "FailDisk",
    "Heal",
    "HoldQueue",
    "Isolate",
    "KeepOutOfIsr",
    "Lag",
    "MarkForDeletion",
    "MendDisk",
    "NotifyIsrChange",
    "NotifyLogDir",
    "Pause",
    "Produce",
    "Reassign",
    "Reconnect",
    "ReleaseQueue",
    "Request",
    "Restart",
    "ResumeFetching",
    "RewriteTopic",
    "SilenceConnections",
    "Skew",
    "Slow",
    "SlowStore",
    "Start",
    "Stop",
    "StopFetching",
    "Strike",
    "Wake",
    "WriteElection",
    "WriteRequests",
    "lose_answer",
]
