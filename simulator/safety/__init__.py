"""The invariants of a simulation, one module for each kind of check.

Each check is notified of an event (a commit, an order, an acknowledgement, a change of a log) and yields a sentence for
each fault that it finds. It looks only at what the event touches, because a run has very many events.
"""
