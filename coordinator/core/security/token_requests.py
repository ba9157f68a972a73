"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken and DescribeDelegationToken.

A client that has not logged in, or has by a token, is refused. Changes become records of the topics log.

Kafka: KafkaApis.allowTokenRequests, DelegationTokenControlManager.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, NamedTuple

from rejoin.coordinator.core.inputs import ANONYMOUS, Context, Millis, Token, TopicsRecords
from rejoin.coordinator.core.runtime.timers import TimerKey
from rejoin.coordinator.core.security.acl_requests import LONGEST_TEXT
from rejoin.coordinator.core.security.delegation_tokens import DelegationToken, SweepTimer, removal, stored
from rejoin.coordinator.core.security.resources import Operation, Resource
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.java import random_uuid
from rejoin.protocol.message import Response
from rejoin.protocol.messages.security.delegation_tokens import (
    NO_TIMESTAMP,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from rejoin.protocol.types import TopicPartition

_USER: Final = "User"
_LATEST: Final = 2**63 - 1
MOST_RENEWERS: Final = 100
"""Renewers of one token."""


_REMOVE: Final = TimerKey(SweepTimer.EXPIRED_TOKENS, TopicPartition("", -1))


class _Principal(NamedTuple):
    """A principal as requests name it."""

    type: str
    name: str

    @classmethod
    def of(cls, text: str) -> _Principal:
        kind, _, name = text.partition(":")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


class TokenRequests:
    """Answers requests about delegation tokens, changes them, and removes those that have expired."""

    def __init__(self, ctx: StepContext, changes: TopicChanges) -> None:
        self._ctx = ctx
        self._changes = changes
        self._tokens = ctx.security.tokens
        self._authorizer = ctx.security.authorizer

    def create(self, token: Token, request: CreateDelegationTokenRequest, context: Context) -> None:
        requester = _Principal.of(self._authorizer.principal(context))
        owner = requester
        if request.owner_principal_name:
            if request.owner_principal_type is None:
                # Kafka: a principal without a type is a NullPointerException.
                refused = request.error_response(context.api_version, ErrorCode.UNKNOWN_SERVER_ERROR)
                self._ctx.reply(token, refused)
                return
            owner = _Principal(request.owner_principal_type, request.owner_principal_name)
        wanted = _Wanted(request, owner, requester)
        error = self._creation_error(wanted, context)
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, _refused(wanted, error))
        else:
            self._changes.make(_Creation(self._ctx, token, wanted))

    def _creation_error(self, wanted: _Wanted, context: Context) -> ErrorCode:
        if not self._may_ask(context):
            return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        if wanted.owner != wanted.requester and not self._authorizer.allows(
            context, Operation.CREATE_TOKENS, Resource.USER, str(wanted.owner)
        ):
            return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        if any(each.principal_type != _USER for each in wanted.request.renewers):
            return ErrorCode.INVALID_PRINCIPAL_TYPE
        return ErrorCode.NONE

    def renew(self, token: Token, request: RenewDelegationTokenRequest, context: Context) -> None:
        if self._may_ask(context):
            self._changes.make(_Renewal(self._ctx, token, request, self._authorizer.principal(context)))
        else:
            error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            self._ctx.reply(token, RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=NO_TIMESTAMP))

    def expire(self, token: Token, request: ExpireDelegationTokenRequest, context: Context) -> None:
        if self._may_ask(context):
            self._changes.make(_Expiry(self._ctx, token, request, self._authorizer.principal(context)))
        else:
            error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            self._ctx.reply(token, ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=NO_TIMESTAMP))

    def describe(self, token: Token, request: DescribeDelegationTokenRequest, context: Context) -> None:
        error = ErrorCode.NONE
        if not self._may_ask(context):
            error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        elif not self._tokens.is_enabled:
            error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        if error is not ErrorCode.NONE:
            self._ctx.reply(token, DescribeDelegationTokenResponse(error_code=error))
            return
        owners = None
        if request.owners is not None:
            owners = {str(_Principal(each.principal_type, each.principal_name)) for each in request.owners}
        seen = [each for each in self._tokens.by_id.values() if self._is_shown(each, owners, context)]
        self._ctx.reply(token, DescribeDelegationTokenResponse(tokens=tuple(map(self._described, seen))))

    def _is_shown(self, token: DelegationToken, owners: set[str] | None, context: Context) -> bool:
        if owners is not None and not any(map(token.concerns, owners)):
            return False
        allows = self._authorizer.allows
        return (
            token.concerns(self._authorizer.principal(context))
            or allows(context, Operation.DESCRIBE, Resource.DELEGATION_TOKEN, token.token_id)
            or allows(context, Operation.DESCRIBE_TOKENS, Resource.USER, token.owner)
        )

    def _described(self, token: DelegationToken) -> DescribedDelegationToken:
        owner, requester = map(_Principal.of, (token.owner, token.requester))
        renewers = [
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in map(_Principal.of, token.renewers)
        ]
        return DescribedDelegationToken(
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp=token.issued_at,
            expiry_timestamp=token.expires_at,
            max_timestamp=token.max_at,
            token_id=token.token_id,
            hmac=self._tokens.hmac(token.token_id),
            renewers=tuple(renewers),
        )

    def _may_ask(self, context: Context) -> bool:
        """Whether the client has logged in, by something else than a token.

        Differs: a client of a plain listener may ask if it has a principal by ``emulator.principals``.
        """
        return not context.by_token and self._authorizer.principal(context) != ANONYMOUS

    # --- expiry

    def look_later(self) -> None:
        """See to it that tokens are removed after they have expired, while there are any."""
        if self._tokens.by_id and self._tokens.is_enabled and self._ctx.deadlines.at(_REMOVE) is None:
            at = self._ctx.now + self._ctx.settings.delegation_token_expiry_check_interval_ms
            self._ctx.deadlines.set(_REMOVE, at)

    def remove_expired(self) -> None:
        """Remove the tokens that have expired. Kafka: sweepExpiredDelegationTokens."""
        self._changes.make(_ExpiredRemoval(self._ctx))
        self.look_later()


class _Wanted(NamedTuple):
    """A token to make."""

    request: CreateDelegationTokenRequest
    owner: _Principal
    requester: _Principal


def _refused(wanted: _Wanted, error: ErrorCode, instant: Millis = NO_TIMESTAMP) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=wanted.owner.type,
        principal_name=wanted.owner.name,
        token_requester_principal_type=wanted.requester.type,
        token_requester_principal_name=wanted.requester.name,
        issue_timestamp_ms=instant,
        expiry_timestamp_ms=instant,
        max_timestamp_ms=instant,
    )


class _Creation(TopicChange):
    """A CreateDelegationToken under way."""

    def __init__(self, ctx: StepContext, token: Token, wanted: _Wanted) -> None:
        self._ctx = ctx
        self._token = token
        self._wanted = wanted
        self._decided: DelegationToken | ErrorCode = ErrorCode.NONE

    def decide(self) -> TopicsRecords:
        self._decided = decided = self._decide()
        return () if isinstance(decided, ErrorCode) else (stored(decided),)

    def _decide(self) -> DelegationToken | ErrorCode:
        ctx, wanted = self._ctx, self._wanted
        settings, tokens = ctx.settings, ctx.security.tokens
        if not tokens.is_enabled:
            return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        renewers = tuple([f"{each.principal_type}:{each.principal_name}" for each in wanted.request.renewers])
        # Differs: Kafka takes as much as a text of its protocol can have, and as many tokens as there is room for.
        longest = max(map(len, (str(wanted.owner), str(wanted.requester), *renewers)))
        is_full = len(tokens.by_id) >= settings.emulator_max_delegation_tokens
        if is_full or longest > LONGEST_TEXT or len(renewers) > MOST_RENEWERS:
            return ErrorCode.POLICY_VIOLATION
        lifetime_ms = settings.delegation_token_max_lifetime_ms
        if wanted.request.max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, wanted.request.max_lifetime_ms)
        max_at = _after(ctx.now, lifetime_ms)
        expires_at = min(max_at, _after(ctx.now, settings.delegation_token_expiry_time_ms))
        token_id = random_uuid(ctx.new_id)
        return DelegationToken(
            token_id, str(wanted.owner), str(wanted.requester), renewers, ctx.now, max_at, expires_at
        )

    def ended(self, error: ErrorCode) -> None:
        made = self._decided
        if isinstance(made, ErrorCode) or error is not ErrorCode.NONE:
            refusal = made if isinstance(made, ErrorCode) else error
            self._ctx.reply(self._token, _refused(self._wanted, refusal, 0))
            return
        response = CreateDelegationTokenResponse(
            principal_type=self._wanted.owner.type,
            principal_name=self._wanted.owner.name,
            token_requester_principal_type=self._wanted.requester.type,
            token_requester_principal_name=self._wanted.requester.name,
            issue_timestamp_ms=made.issued_at,
            expiry_timestamp_ms=made.expires_at,
            max_timestamp_ms=made.max_at,
            token_id=made.token_id,
            hmac=self._ctx.security.tokens.hmac(made.token_id),
        )
        self._ctx.reply(self._token, response)


class _Decision(NamedTuple):
    """A change of a token. ``expires_at`` is what the client is answered."""

    error: ErrorCode
    expires_at: Millis = 0
    records: TopicsRecords = ()


class _TokenChange(TopicChange):
    """A change of a token that is there, under way."""

    def __init__(self, ctx: StepContext, token: Token, hmac: bytes, principal: str) -> None:
        self._ctx = ctx
        self._token = token
        self._hmac = hmac
        self._principal = principal
        self._decision = _Decision(ErrorCode.NONE)

    def decide(self) -> TopicsRecords:
        tokens = self._ctx.security.tokens
        found = tokens.with_hmac(self._hmac)
        if not tokens.is_enabled:
            self._decision = _Decision(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        elif found is None:
            self._decision = _Decision(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        else:
            self._decision = self._changed(found, self._ctx.now)
        return self._decision.records

    @abstractmethod
    def _changed(self, token: DelegationToken, now: Millis) -> _Decision: ...

    @abstractmethod
    def _response(self, error: ErrorCode, expires_at: Millis) -> Response: ...

    def ended(self, error: ErrorCode) -> None:
        decided = self._decision
        if error is not ErrorCode.NONE:
            decided = _Decision(error)
        self._ctx.reply(self._token, self._response(decided.error, decided.expires_at))


class _Renewal(_TokenChange):
    """A RenewDelegationToken under way."""

    def __init__(self, ctx: StepContext, token: Token, request: RenewDelegationTokenRequest, principal: str) -> None:
        super().__init__(ctx, token, request.hmac, principal)
        self._period_ms = request.renew_period_ms

    def _changed(self, token: DelegationToken, now: Millis) -> _Decision:
        if token.has_expired(now):
            return _Decision(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        if not token.may_be_renewed_by(self._principal):
            return _Decision(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        period_ms = self._ctx.settings.delegation_token_expiry_time_ms
        if self._period_ms > 0:
            period_ms = min(period_ms, self._period_ms)
        return _expiring(token, now, period_ms)

    def _response(self, error: ErrorCode, expires_at: Millis) -> Response:
        return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expires_at)


class _Expiry(_TokenChange):
    """An ExpireDelegationToken under way."""

    def __init__(self, ctx: StepContext, token: Token, request: ExpireDelegationTokenRequest, principal: str) -> None:
        super().__init__(ctx, token, request.hmac, principal)
        self._period_ms = request.expiry_time_period_ms

    def _changed(self, token: DelegationToken, now: Millis) -> _Decision:
        if not token.may_be_renewed_by(self._principal):
            return _Decision(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        if self._period_ms < 0:
            return _Decision(ErrorCode.NONE, now, (removal(token.token_id),))
        if token.has_expired(now):
            return _Decision(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return _expiring(token, now, self._period_ms)

    def _response(self, error: ErrorCode, expires_at: Millis) -> Response:
        return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=expires_at)


class _ExpiredRemoval(TopicChange):
    """The removal of expired tokens, by the node itself."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx

    def decide(self) -> TopicsRecords:
        now = self._ctx.now
        tokens = self._ctx.security.tokens.by_id.values()
        return tuple([removal(token.token_id) for token in tokens if token.has_expired(now)])


def _expiring(token: DelegationToken, now: Millis, period_ms: Millis) -> _Decision:
    expires_at = min(token.max_at, _after(now, period_ms))
    return _Decision(ErrorCode.NONE, expires_at, (stored(token._replace(expires_at=expires_at)),))


def _after(now: Millis, length_ms: Millis) -> Millis:
    return min(_LATEST, now + length_ms)
