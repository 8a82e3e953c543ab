"""The policy of rollouts: which moves of a large plan begin next, and why the others wait. Nothing here does I/O."""
