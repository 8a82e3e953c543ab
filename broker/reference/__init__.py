"""The reference broker: small and honest, so that a move moves real bytes and a lost record is noticed."""
