"""What must hold at every moment of a simulation, one module for each kind of check.

The checks are told what happened (a commit, an order, an acknowledgement, a change of a log) and answer with sentences
that say what is wrong with it. They look at what it touches and no further, for a run has a great many of them.
"""
