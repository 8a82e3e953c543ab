"""Random runs: plans drawn from seeds, executed on simulated clusters, many of them at once."""
