"""One call of each command on a small cluster, in an order in which each has something to show.

`{name}` stands for a topic with a name of 249 characters, `{files}` for a folder with the files of a move.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "a-name-of-249-characters-" + "x" * 224
MOVE: Final = {"version": 1, "partitions": [{"topic": NAME, "partition": 0, "replicas": [3, 2, 1]}]}

SCENARIO: Final = """\
cluster: {brokers: 3, controllers: 1}
topics: {orders: [[1, 2]]}
events:
  - reassign: {orders-0: [2, 3]}
expect:
  orders-0: {leader: 2}
"""

SESSION: Final = (
    "topic create {name} --replica-assignment 1:2:3",
    "topic create {name}",
    "topic create orders --partitions 2 --replication-factor 3 --dry-run",
    "topic add-partitions {name} --partitions 2 --replica-assignment 4:5:6",
    "topic list",
    "topic describe",
    "topic describe nothing",
    "cluster describe",
    "broker list",
    "top --once",
    "config alter --entity-type topics --entity-name {name} --add-config min.insync.replicas=2",
    "config alter --entity-type brokers --entity-name 7 --add-config nothing=2",
    "config describe --entity-type topics --entity-name {name}",
    "log-dirs describe --broker-list 9",
    "leader elect --election-type preferred --all-topic-partitions",
    "leader elect --election-type preferred --topic {name} --partition 0",
    "reassignment execute --reassignment-json-file {files}/move.json --dry-run",
    "reassignment execute --reassignment-json-file {files}/move.json",
    "reassignment list",
    "reassignment describe --topic {name}",
    "reassignment verify --reassignment-json-file {files}/move.json",
    "reassignment cancel --all",
    "rollout start {files}/back.json --name back --dry-run",
    "rollout list",
    "rollout status nothing",
    "rollout pause nothing",
    "rollout resume nothing",
    "rollout set nothing --in-flight 3",
    "rollout abort nothing",
    "rollout undo nothing",
    "rollout remove nothing",
    "rollout run {files}/back.json --dry-run",
    "controller check",
    "controller release --zookeeper 127.0.0.1:1",
    "controller take-over --zookeeper 127.0.0.1:1",
    "simulate {files}/move.yaml",
    "plan rebalance --out {files}/rebalance",
    "plan add-brokers --brokers 9",
    "plan remove-brokers --brokers 9",
    "plan set-replication-factor --replication-factor 9",
    "plan relieve --brokers 9",
    "plan repair-racks",
    "plan leaders",
    "topic delete {name} --dry-run",
    "topic delete {name}",
)
"""Words and arguments; each command of the walk occurs, and others more than once to show a refusal."""
