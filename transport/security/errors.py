"""Errors of security. Each message is one line, says what to do where that is known, and contains no secret."""

from __future__ import annotations


class SecurityError(Exception):
    """Two ends do not trust each other, or one of them is not set up to find out."""


class InvalidSecurity(SecurityError):
    """A setting or a file of the security settings cannot be used."""


class AuthenticationFailed(SecurityError):
    """One end did not prove who it is."""


class TokenUnavailable(SecurityError):
    """The place from which tokens come gives none for now; a login may succeed later."""


class EndpointBusy(TokenUnavailable):
    """The place from which tokens come answers that it has none for now; it may ask for a pause, in seconds."""

    def __init__(self, message: str, retry_after: float = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
