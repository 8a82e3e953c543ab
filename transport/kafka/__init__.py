"""Kafka's binary protocol: messages as Apache Kafka 2.7 to 3.9 speak them, and their encoding in every version."""
