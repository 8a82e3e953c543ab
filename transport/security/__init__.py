"""TLS and SASL for every wire: settings under Kafka's names, key stores, and the exchanges that authenticate."""
