"""The common interface of mechanisms: the two sides of an exchange of tokens, and how one fails."""

from __future__ import annotations

from typing import Final, Protocol

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"

MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER)


class AuthenticationFailed(Exception):
    """The exchange has failed. The text may be shown to the client. Kafka: SaslAuthenticationException."""


class InvalidCredentials(Exception):
    """The exchange has failed for a reason that the client is not shown. Kafka: SaslException."""


class UnreadableToken(Exception):
    """A token that Kafka has no answer to: it closes the connection."""


class SaslServer(Protocol):
    """The broker's side of one exchange."""

    is_complete: bool
    name: str
    """Who the client is, once the exchange is complete."""
    expires_at: int | None
    """When that ends, in milliseconds since 1970; none: it does not."""
    by_token: bool
    """Whether the client has logged in by a delegation token."""

    def evaluate(self, token: bytes) -> bytes:
        """The answer to a token of the client.

        Raises :class:`AuthenticationFailed`, :class:`InvalidCredentials` or :class:`UnreadableToken`.
        """


class SaslClient(Protocol):
    """The client's side of one exchange."""

    def first(self) -> bytes:
        """The token that begins it."""

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next token; none where the exchange is complete. Raises :class:`AuthenticationFailed`."""
