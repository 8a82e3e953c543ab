"""Simulated brokers of Apache Kafka's: the reference broker's replicas behind Kafka's protocol, rules and znodes."""
