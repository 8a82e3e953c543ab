"""Errors between two ends of a wire, apart from those that the other end answers (`transport.errors.ApiError`)."""

from __future__ import annotations


class WireError(Exception):
    """A request was not answered, or a connection failed."""


class CodecError(WireError):
    """Bytes are not the expected message, or a message has a value that cannot be encoded."""


class FrameError(WireError):
    """A frame announces an impossible length."""


class FrameTooLarge(FrameError):
    """A frame exceeds the reader's limit."""


class UnexpectedTls(FrameTooLarge):
    """What should be the length of a frame is the beginning of an alert of TLS."""


class ConnectionBroken(WireError):
    """The connection could not be opened, or broke. It is unknown whether a request took effect."""


class NotServed(ConnectionBroken):
    """No node of ours is at an address: the host is unknown, nothing listens there, or something else does."""


class Untrusted(NotServed):
    """TLS or SASL failed, or one end expects them and the other does not: a setting has to change."""


class NoToken(ConnectionBroken):
    """A login needs a token, and the place from which tokens come does not answer for now."""


class RequestTimedOut(WireError):
    """No answer arrived in time. It is unknown whether the request took effect."""


class UnsupportedApi(WireError):
    """The other end does not offer the api in a version that is supported here."""
