"""Whether the answers to administrators' requests can be explained by some sequential order of the requests.

`checker` is a general checker of histories; `partition` and `topic` are the sequential models that it tries; `history`
records what happens to a simulated cluster.
"""
