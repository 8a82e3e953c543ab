"""What can go wrong between two ends of a wire, apart from what the other end answers (`transport.errors.ApiError`)."""

from __future__ import annotations


class WireError(Exception):
    """A request or a connection failed on its way: nobody answered it."""


class CodecError(WireError):
    """Bytes are not the message that they should be, or a message has a value that cannot be encoded."""


class FrameError(WireError):
    """A frame announces a length that no frame has."""


class FrameTooLarge(FrameError):
    """A frame announces more bytes than the reader takes."""


class ConnectionBroken(WireError):
    """The connection could not be made or is no longer usable; whether a request took effect is not known."""


class NotServed(ConnectionBroken):
    """No node of ours is at an address: there is no such host, nothing listens, or something else does."""


class RequestTimedOut(WireError):
    """No answer came in time; whether the request took effect is not known."""


class UnsupportedApi(WireError):
    """The other end does not offer the api in a version that we speak."""
