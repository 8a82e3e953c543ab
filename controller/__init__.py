"""The controller of a partitioned, replicated cluster: its decisions, and the service that makes them.

Programs import `klamm`, which runs it. The controller's knowledge and decisions are pure (`controller.model`), events
are handled by generators of rounds (`controller.handlers`), and only `controller.node.round_runner` commits, applies
and publishes. `controller.channels` sends to brokers, `controller.admin` is the side of administrators, and
`controller.monitoring` exposes metrics, logs and state.
"""
