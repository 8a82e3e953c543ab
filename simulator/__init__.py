"""Real controllers and brokers in a simulated world: one thread, virtual time, replayable from a seed."""
