"""What the controller does about each event: generators of rounds, without I/O (see `controller.model.rounds`)."""
