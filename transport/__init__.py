"""All that leaves the process: messages and their msgpack wire, and the metadata store.

Nothing in here takes a decision. `transport.metadata` has the values that both znodes and messages carry,
`transport.messages` the requests and responses, `transport.wire` their encoding, client and server,
`transport.store` the metadata store (ZooKeeper or memory), and `transport.host` the one door to the
wall clock and to randomness.
"""
