"""Messages within a controller: updates of features, which only Kafka's clients ask for."""

from __future__ import annotations

from transport.messages.common import Message, Request


class UpdateFeaturesResponse(Message, frozen=True):
    """The controller is in office; there are no features that it could update."""


class UpdateFeaturesRequest(Request[UpdateFeaturesResponse], frozen=True):
    """Update features."""
