"""The security state of the cluster: one object for each kind, in one table, and what is decided by them."""

from __future__ import annotations

from rejoin.coordinator.config import Settings
from rejoin.coordinator.core.inputs import TopicsRecords
from rejoin.coordinator.core.security.acls import AclTable
from rejoin.coordinator.core.security.authorizer import Authorizer
from rejoin.coordinator.core.security.client_quotas import ClientQuotaTable
from rejoin.coordinator.core.security.delegation_tokens import DelegationTokens
from rejoin.coordinator.core.security.recorded_state import RecordedState
from rejoin.coordinator.core.security.scram_credentials import NO_USERS, FileUsers, ScramCredentials
from rejoin.protocol.message import Struct


class SecurityState:
    """All that records of the topics log say beside topics and features. A new kind is a class and a line here."""

    def __init__(self, settings: Settings, file_users: FileUsers = NO_USERS) -> None:
        self.acls = AclTable()
        self.client_quotas = ClientQuotaTable()
        self.scram = ScramCredentials(file_users)
        self.tokens = DelegationTokens(settings.delegation_token_secret_key.get_secret_value())
        self._kinds: tuple[RecordedState, ...] = (self.acls, self.client_quotas, self.scram, self.tokens)
        self._by_record: dict[type[Struct], RecordedState] = {
            record: kind for kind in self._kinds for record in kind.RECORDS
        }
        self.authorizer = Authorizer(settings, self.acls)

    def replay(self, record: Struct) -> None:
        """Apply a record, which is stored."""
        self._by_record[type(record)].replay(record)

    def records(self) -> TopicsRecords:
        """Records that restore the current state of every kind."""
        return tuple([record for kind in self._kinds for record in kind.records()])

    def clear(self) -> None:
        """Forget everything: the log is read again from its beginning."""
        for kind in self._kinds:
            kind.clear()
