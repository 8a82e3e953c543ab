"""Scenarios: a cluster, its events, and the expectations about it, written in YAML."""
