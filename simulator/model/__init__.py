"""The model: a plain sequential controller, written from the specification and not from the controller's code.

It has no memory, no store and no channels. A rule takes a row of the store and what the controller knows, and returns
the rows that a decision may leave. `simulator.safety.decisions` compares it with what controllers write.
"""
