"""Random runs: plans drawn from seeds and executed on simulated clusters, many runs in parallel."""
