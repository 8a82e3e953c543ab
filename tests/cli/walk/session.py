"""The calls of the walk, in an order in which each command has something to show: on a cluster, plans, and a handover.

`{name}` stands for a topic with a name of 249 characters. The files are those of `stage`, in the working directory.
"""

from __future__ import annotations

from typing import Final

from tests.cli.walk.stage import PROFILE, Step, deaf_broker_joins, one_replica_is_copied, rollout_is

SESSION: Final[tuple[str | Step, ...]] = (
    "topic create {name} --replica-assignment 1:2:3",
    "topic create {name}",
    f"topic create orders --partitions 2 --replication-factor 3 --dry-run --profile {PROFILE}",
    "topic create orders --replica-assignment 1:2,1:2,1:2,1:2",
    "topic add-partitions {name} --partitions 2 --replica-assignment 4:5:6 --dry-run",
    "topic add-partitions {name} --partitions 2 --replica-assignment 4:5:6",
    "produce {name}",
    "produce {name} -o json",
    "produce orders",
    "consume {name}",
    "topic list",
    "topic describe",
    "topic describe nothing",
    "cluster describe",
    "broker list",
    "top --once",
    "state dump --format jsonl",
    "config alter --entity-type topics --entity-name {name} --add-config min.insync.replicas=2 --dry-run",
    "config alter --entity-type topics --entity-name {name} --add-config min.insync.replicas=2",
    "config alter --entity-type brokers --entity-name 7 --add-config nothing=2",
    "config describe --entity-type topics --entity-name {name}",
    "log-dirs describe",
    "log-dirs describe --broker-list 1 --topic-list orders,{name}",
    "log-dirs describe --broker-list 8",
    "leader elect --election-type preferred --all-topic-partitions",
    "reassignment execute --reassignment-json-file move.json --dry-run",
    "reassignment execute --reassignment-json-file move.json",
    "reassignment verify --reassignment-json-file move.json",
    "leader elect --election-type preferred --topic {name} --partition 0 --dry-run",
    "leader elect --election-type preferred --topic {name} --partition 0",
    deaf_broker_joins,
    "reassignment execute --reassignment-json-file slow.json --throttle 1MB/s --no-wait",
    one_replica_is_copied,
    "reassignment list",
    "reassignment describe --topic orders",
    "reassignment verify --reassignment-json-file slow.json --preserve-throttles",
    "reassignment cancel --all --dry-run",
    "reassignment cancel --all",
    "reassignment list",
    "reassignment describe --topic orders",
    "rollout list",
    "rollout start monday.json --in-flight 1 --ignore-room --dry-run",
    "rollout start monday.json --in-flight 1 --ignore-room --throttle 1MB/s",
    rollout_is("monday", "running", in_flight=1, pending=2),
    "rollout list",
    "rollout status monday",
    "rollout status nothing",
    "rollout pause monday --dry-run",
    "rollout pause monday",
    "rollout set monday --in-flight 3 --dry-run",
    "rollout set monday --in-flight 3",
    "rollout resume monday --dry-run",
    "rollout resume monday",
    rollout_is("monday", "running", done=2),
    "rollout status monday",
    "rollout undo monday --dry-run",
    "rollout undo monday",
    rollout_is("monday", "undone"),
    "rollout status monday",
    "rollout remove monday --dry-run",
    "rollout remove monday",
    "rollout pause monday",
    "rollout start tuesday.json --throttle auto",
    rollout_is("tuesday", "running", in_flight=1),
    "rollout remove tuesday",
    "rollout abort tuesday --dry-run",
    "rollout abort tuesday",
    rollout_is("tuesday", "aborted"),
    "rollout list",
    "rollout run friday.json --dry-run",
    "rollout run friday.json",
    "rollout list .",
    "rollout status friday.json",
    "simulate move.yaml",
    "simulate missed.yaml",
    "topic delete {name} --dry-run",
    "topic delete {name}",
)
"""Words and arguments; each command of the walk occurs, and others more than once to show a refusal."""

_INPUT: Final = "--snapshot snapshot.json --loads loads.csv --tolerance 0.5"

PLANS: Final = (
    "plan generate-cluster --out generated --brokers 4 --racks 2 --topics 2 --partitions 4 --replication-factor 2",
    "plan generate-cluster --out generated",
    f"plan rebalance {_INPUT} --out rebalance",
    f"plan add-brokers --brokers 5 {_INPUT} --out add-brokers",
    f"plan remove-brokers --brokers 4 {_INPUT} --out remove-brokers",
    "plan remove-brokers --brokers 4",
    f"plan set-replication-factor --replication-factor 3 --topics orders {_INPUT} --out set-replication-factor",
    f"plan relieve --brokers 1 {_INPUT.replace('0.5', '1')} --out relieve",
    f"plan repair-racks {_INPUT} --out repair-racks",
    "plan leaders --snapshot snapshot.json",
    "plan leaders --snapshot snapshot.json --out leaders",
)
"""Plans for the cluster of a file, which need no cluster."""

CONTROLLER: Final = 9001
KAFKA: Final = 3

HANDOVER: Final = (
    f"controller check --kafka --id {KAFKA}",
    f"controller check --id {KAFKA}",
    "controller release --dry-run",
    "controller release",
    "controller take-over --dry-run",
    "controller take-over",
)
"""Calls on a ZooKeeper, where a controller of Klamm is active, and a broker of Kafka waits for its turn."""

CALLS: Final = tuple(step for step in (*SESSION, *PLANS, *HANDOVER) if isinstance(step, str))
