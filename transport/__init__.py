"""Everything that leaves the process: messages and their msgpack wire, and the metadata store.

No decisions are taken here. `transport.metadata` holds the values that both znodes and messages carry,
`transport.messages` the requests and responses, `transport.wire` their encoding, client and server,
`transport.store` the metadata store (ZooKeeper or memory), and `transport.host` the only access to the wall clock and
to randomness.
"""
