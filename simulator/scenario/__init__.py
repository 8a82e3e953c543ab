"""Scenarios: a cluster, what happens to it, and what is expected of it, written down in YAML."""
