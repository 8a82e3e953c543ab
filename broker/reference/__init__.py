"""The reference broker: small but complete, so that moves copy real bytes and a lost record is noticed."""
