"""The actions on a simulated cluster: one vocabulary for scenarios, random runs and tests.

An action is plain data. A strike happens at once: `Crash(1).on(cluster)`. A request waits for its answer:
`await Produce({"orders-0": 10}).on(cluster)`.
"""
