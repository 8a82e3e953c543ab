"""The handlers of events and requests: generators of rounds, without I/O (see `controller.model.rounds`)."""
