"""Makes the plan of a random run that fails smaller, and writes what is left as a scenario that still fails."""
