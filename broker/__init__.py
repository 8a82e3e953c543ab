"""The broker side: the kit that a service author builds on, and the reference broker on it.

`broker.kit.run_broker` runs a `broker.service.Service` as a broker of the cluster; `broker.reference` is such a
service, and `broker.client` produces to it and consumes from it.
"""
