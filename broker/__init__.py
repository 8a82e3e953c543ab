"""The broker side: the kit for authors of services, and the reference broker that is built on it.

`broker.kit.run_broker` runs a `broker.service.Service` as a broker of the cluster. `broker.reference` is such a
service, and `broker.client` produces to it and consumes from it.
"""
