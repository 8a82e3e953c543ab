"""A cluster in one thread on virtual time, replayable from a seed: real controllers and brokers, simulated world."""
