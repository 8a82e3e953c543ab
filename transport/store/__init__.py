"""The metadata store: ZooKeeper through kazoo, or the same semantics in memory, and fenced commits to either.

`protocol` is the interface of both, `zookeeper` and `memory` open one, `commit` writes under the controller's fence.
"""
