"""AlterUserScramCredentials and DescribeUserScramCredentials: checked, and turned into records of the topics log.

Kafka: ScramControlManager.alterCredentials, ScramImage.describe.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple, TypeAlias

from rejoin.coordinator.core.inputs import Context, Token, TopicsRecords
from rejoin.coordinator.core.runtime.admission import Admission
from rejoin.coordinator.core.security.acl_requests import LONGEST_TEXT
from rejoin.coordinator.core.security.resources import CLUSTER_NAME, Resource
from rejoin.coordinator.core.security.scram_credentials import CredentialKey, creation, removal
from rejoin.coordinator.core.step_context import StepContext
from rejoin.coordinator.core.topics.changes import TopicChange, TopicChanges
from rejoin.protocol.errors import ErrorCode
from rejoin.protocol.messages.security.scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialInfo,
    ScramCredentialUpsertion,
)
from rejoin.protocol.records.topics import AnyTopicsRecord
from rejoin.protocol.sasl.scram import ITERATIONS, MECHANISM_NUMBERS, MOST_ITERATIONS, ScramCredential

_MECHANISMS: Final = {number: mechanism for mechanism, number in MECHANISM_NUMBERS.items()}

_Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion


class _Refusal(NamedTuple):
    """Error for a user."""

    error: ErrorCode
    message: str


_TWICE: Final = _Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


class ScramRequests:
    """Answers requests about the users of SCRAM, and changes their credentials."""

    def __init__(self, ctx: StepContext, changes: TopicChanges, admission: Admission) -> None:
        self._ctx = ctx
        self._changes = changes
        self._admission = admission

    def alter_credentials(self, token: Token, request: AlterUserScramCredentialsRequest, context: Context) -> None:
        if not self._refuse(token, request, context):
            self._changes.make(_Alteration(self._ctx, token, request))

    def describe_credentials(
        self, token: Token, request: DescribeUserScramCredentialsRequest, context: Context
    ) -> None:
        if self._refuse(token, request, context):
            return
        table = self._ctx.security.scram
        asked = Counter([each.name for each in request.users or ()] or table.names())
        results = tuple([self._describe(name, times) for name, times in asked.items()])
        self._ctx.reply(token, DescribeUserScramCredentialsResponse(error_message="", results=results))

    def _describe(self, name: str, times: int) -> DescribeUserScramCredentialsResult:
        if times > 1:
            message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            error = ErrorCode.DUPLICATE_RESOURCE
            return DescribeUserScramCredentialsResult(user=name, error_code=error, error_message=message)
        found = self._ctx.security.scram.iterations(name)
        if not found:
            message = f"Attempt to describe a user credential that does not exist: {name}"
            error = ErrorCode.RESOURCE_NOT_FOUND
            return DescribeUserScramCredentialsResult(user=name, error_code=error, error_message=message)
        infos = [ScramCredentialInfo(mechanism=number, iterations=count) for number, count in found.items()]
        return DescribeUserScramCredentialsResult(user=name, error_message="", credential_infos=tuple(infos))

    def _refuse(
        self,
        token: Token,
        request: AlterUserScramCredentialsRequest | DescribeUserScramCredentialsRequest,
        context: Context,
    ) -> bool:
        """Answer a request of a client that may not do this."""
        error = self._admission.authorize(request, context, Resource.CLUSTER, CLUSTER_NAME)
        if error is ErrorCode.NONE:
            return False
        self._ctx.reply(token, request.error_response(context.api_version, error))
        return True


class _Alteration(TopicChange):
    """An AlterUserScramCredentials under way. A request changes one credential of a user at most."""

    def __init__(self, ctx: StepContext, token: Token, request: AlterUserScramCredentialsRequest) -> None:
        self._ctx = ctx
        self._token = token
        self._request = request
        self._refusals: dict[str, _Refusal | None] = {}
        self._has_no_key = False
        self._new = 0

    def decide(self) -> TopicsRecords:
        wanted: list[_Change] = [*self._request.deletions, *self._request.upsertions]
        refusals: dict[str, _Refusal | None] = {}
        self._new = 0
        for change in wanted:
            name = change.name
            if name not in refusals:
                refusals[name] = self._refusal(change)
            elif refusals[name] is None:
                refusals[name] = _TWICE
        self._refusals = refusals
        accepted = [change for change in wanted if refusals[change.name] is None]
        # Kafka: HMAC takes no empty key, so that the whole request fails.
        self._has_no_key = any(
            isinstance(change, ScramCredentialUpsertion) and not change.salted_password for change in accepted
        )
        return () if self._has_no_key else tuple(map(_record, accepted))

    def _refusal(self, change: _Change) -> _Refusal | None:
        if not change.name:
            return _Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        if change.mechanism not in _MECHANISMS:
            return _Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        table = self._ctx.security.scram
        is_there = change.mechanism in table.iterations(change.name)
        if isinstance(change, ScramCredentialDeletion):
            message = "Attempt to delete a user credential that does not exist"
            return None if is_there else _Refusal(ErrorCode.RESOURCE_NOT_FOUND, message)
        if change.iterations < ITERATIONS:
            return _Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if change.iterations > MOST_ITERATIONS:
            return _Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        return self._out_of_bounds(change, is_new=not is_there)

    def _out_of_bounds(self, change: ScramCredentialUpsertion, *, is_new: bool) -> _Refusal | None:
        # Differs: Kafka takes as much as a text of its protocol can have, and as many users as there is room for.
        longest = max(len(change.name), len(change.salt), len(change.salted_password))
        if longest > LONGEST_TEXT:
            message = f"the name, the salt or the salted password is longer than {LONGEST_TEXT:,}"
            return _Refusal(ErrorCode.POLICY_VIOLATION, message)
        if not is_new:
            return None
        most = self._ctx.settings.emulator_max_scram_credentials
        if self._new + self._ctx.security.scram.made >= most:
            message = f"there are {most:,} credentials already, as many as emulator.max.scram.credentials allows"
            return _Refusal(ErrorCode.POLICY_VIOLATION, message)
        self._new += 1
        return None

    def ended(self, error: ErrorCode) -> None:
        if self._has_no_key:
            refused = self._request.error_response(0, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._ctx.reply(self._token, refused)
            return
        results = [_result(name, refusal, error) for name, refusal in self._refusals.items()]
        self._ctx.reply(self._token, AlterUserScramCredentialsResponse(results=tuple(results)))


def _record(change: _Change) -> AnyTopicsRecord:
    key = CredentialKey(change.name, change.mechanism)
    if isinstance(change, ScramCredentialDeletion):
        return removal(key)
    mechanism = _MECHANISMS[change.mechanism]
    return creation(key, ScramCredential.of_salted(mechanism, change.salted_password, change.salt, change.iterations))


def _result(name: str, refusal: _Refusal | None, error: ErrorCode) -> AlterUserScramCredentialsResult:
    if refusal is None:
        return AlterUserScramCredentialsResult(user=name, error_code=error)
    return AlterUserScramCredentialsResult(user=name, error_code=refusal.error, error_message=refusal.message)
