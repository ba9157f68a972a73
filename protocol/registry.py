"""The table of APIs: one entry for each, from which routes, clients, logs, faults and tests are made.

A new API is a file of messages, an entry here, and a handler in the coordinator. An API without a handler is defined
and not registered: its messages can be read and written, but no client is offered them. The messages of an API are
loaded when they are first asked for: a process needs few of them, and starts without.
"""

from __future__ import annotations

from collections.abc import ValuesView
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

from rejoin.protocol.message import Request, Response


@cache
def _message(module: str, name: str) -> Any:
    return getattr(import_module(module, "rejoin.protocol.messages"), name)


@dataclass(frozen=True, slots=True)
class Api:
    """One of Kafka's requests: ``key`` is its number, versions are inclusive, ``path`` is where HTTP serves it.

    The versions are all whose messages are known; a node offers those of them that a release of Kafka has.

    Versions from ``flexible_from`` on have compact lengths and tagged fields on the wire; none: no version has.
    ``module`` has its messages; one that begins with a dot is below ``rejoin.protocol.messages``.
    """

    name: str
    key: int
    min_version: int
    max_version: int
    flexible_from: int | None
    module: str
    path: str

    @property
    def request(self) -> type[Request]:
        """The class of requests."""
        request: type[Request] = _message(self.module, f"{self.name}Request")
        return request

    @property
    def response(self) -> type[Response]:
        """The class of responses."""
        response: type[Response] = _message(self.module, f"{self.name}Response")
        return response

    @property
    def default_version(self) -> int:
        """The version of a request that names none: the newest, or the last in which topics have names."""
        return _LAST_WITH_NAMES.get(self.key, self.max_version)

    def supports(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


_LAST_WITH_NAMES: Final = {8: 9, 9: 9}
"""The last versions of OffsetCommit and OffsetFetch that name topics; their newest have ids only."""


class _ByRequest(dict[type[Request], Api]):
    """The APIs by their requests: an entry is made when it is first looked up. A client may ask what no node offers."""

    def __missing__(self, request: type[Request]) -> Api:
        name = request.__name__.removesuffix("Request")
        api = BY_NAME.get(name) or next((each for each in DEFINED.values() if each.name == name), None)
        if api is None or api.request is not request:
            raise KeyError(request)
        self[request] = api
        return api


DEFINED: Final[dict[int, Api]] = {}
"""Every API whose messages are known, by key: those that are offered, and those that are not yet."""

BY_KEY: Final[dict[int, Api]] = {}
BY_NAME: Final[dict[str, Api]] = {}
BY_PATH: Final[dict[str, Api]] = {}
BY_REQUEST: Final = _ByRequest()
"""Look an entry up with ``[]``: there are no others yet than those that were asked for."""

APIS: Final[ValuesView[Api]] = BY_KEY.values()
"""Every API that is offered, by key."""


def define(key: int, versions: tuple[int, int], flexible_from: int | None, name: str, module: str) -> Api:
    """Add the messages of an API: ``NameRequest`` and ``NameResponse`` in ``module``. Its name gives its path."""
    dashed = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
    api = DEFINED[key] = Api(name, key, *versions, flexible_from, module, f"/v1/{dashed}")
    return api


def register(key: int, versions: tuple[int, int], flexible_from: int | None, name: str, module: str) -> Api:
    """Add an API that nodes serve."""
    api = define(key, versions, flexible_from, name, module)
    BY_KEY[key] = BY_NAME[name] = BY_PATH[api.path] = api
    return api


def api_named(text: str) -> Api | None:
    """An API that is offered, by its name in any spelling: JoinGroup, joingroup or JOIN_GROUP."""
    folded = text.replace("_", "").lower()
    return next((api for name, api in BY_NAME.items() if name.lower() == folded), None)


PRODUCE: Final = register(0, (3, 13), 9, "Produce", ".records.produce")
FETCH: Final = register(1, (4, 18), 12, "Fetch", ".records.fetch")
LIST_OFFSETS: Final = register(2, (0, 11), 6, "ListOffsets", ".records.list_offsets")
METADATA: Final = register(3, (0, 13), 9, "Metadata", ".cluster.metadata")
OFFSET_COMMIT: Final = register(8, (0, 10), 8, "OffsetCommit", ".offsets.offset_commit")
OFFSET_FETCH: Final = register(9, (0, 10), 6, "OffsetFetch", ".offsets.offset_fetch")
FIND_COORDINATOR: Final = register(10, (0, 6), 3, "FindCoordinator", ".cluster.find_coordinator")
JOIN_GROUP: Final = register(11, (0, 9), 6, "JoinGroup", ".groups.join_group")
HEARTBEAT: Final = register(12, (0, 4), 4, "Heartbeat", ".groups.heartbeat")
LEAVE_GROUP: Final = register(13, (0, 5), 4, "LeaveGroup", ".groups.leave_group")
SYNC_GROUP: Final = register(14, (0, 5), 4, "SyncGroup", ".groups.sync_group")
DESCRIBE_GROUPS: Final = register(15, (0, 6), 5, "DescribeGroups", ".groups.describe_groups")
LIST_GROUPS: Final = register(16, (0, 5), 3, "ListGroups", ".groups.list_groups")
SASL_HANDSHAKE: Final = register(17, (0, 1), None, "SaslHandshake", ".cluster.sasl")
API_VERSIONS: Final = register(18, (0, 5), 3, "ApiVersions", ".cluster.api_versions")
CREATE_TOPICS: Final = register(19, (0, 7), 5, "CreateTopics", ".topics.create_topics")
DELETE_TOPICS: Final = register(20, (0, 6), 4, "DeleteTopics", ".topics.delete_topics")
DELETE_RECORDS: Final = register(21, (0, 2), 2, "DeleteRecords", ".records.delete_records")
INIT_PRODUCER_ID: Final = register(22, (0, 5), 2, "InitProducerId", ".transactions.init_producer_id")
OFFSET_FOR_LEADER_EPOCH: Final = register(23, (0, 4), 4, "OffsetForLeaderEpoch", ".records.offset_for_leader_epoch")
ADD_PARTITIONS_TO_TXN: Final = register(24, (0, 5), 3, "AddPartitionsToTxn", ".transactions.add_partitions_to_txn")
ADD_OFFSETS_TO_TXN: Final = register(25, (0, 4), 3, "AddOffsetsToTxn", ".transactions.add_offsets_to_txn")
END_TXN: Final = register(26, (0, 5), 3, "EndTxn", ".transactions.end_txn")
WRITE_TXN_MARKERS: Final = register(27, (0, 2), 1, "WriteTxnMarkers", ".transactions.write_txn_markers")
TXN_OFFSET_COMMIT: Final = register(28, (0, 6), 3, "TxnOffsetCommit", ".transactions.txn_offset_commit")
DESCRIBE_ACLS: Final = register(29, (0, 3), 2, "DescribeAcls", ".security.acls")
CREATE_ACLS: Final = register(30, (0, 3), 2, "CreateAcls", ".security.acls")
DELETE_ACLS: Final = register(31, (0, 3), 2, "DeleteAcls", ".security.acls")
DESCRIBE_CONFIGS: Final = register(32, (1, 4), 4, "DescribeConfigs", ".cluster.describe_configs")
ALTER_CONFIGS: Final = register(33, (0, 2), 2, "AlterConfigs", ".cluster.alter_configs")
ALTER_REPLICA_LOG_DIRS: Final = register(34, (0, 2), 2, "AlterReplicaLogDirs", ".replication.alter_replica_log_dirs")
DESCRIBE_LOG_DIRS: Final = register(35, (0, 5), 2, "DescribeLogDirs", ".cluster.describe_log_dirs")
SASL_AUTHENTICATE: Final = register(36, (0, 2), 2, "SaslAuthenticate", ".cluster.sasl")
CREATE_PARTITIONS: Final = register(37, (0, 3), 2, "CreatePartitions", ".topics.create_partitions")
CREATE_DELEGATION_TOKEN: Final = register(38, (0, 3), 2, "CreateDelegationToken", ".security.delegation_tokens")
RENEW_DELEGATION_TOKEN: Final = register(39, (0, 2), 2, "RenewDelegationToken", ".security.delegation_tokens")
EXPIRE_DELEGATION_TOKEN: Final = register(40, (0, 2), 2, "ExpireDelegationToken", ".security.delegation_tokens")
DESCRIBE_DELEGATION_TOKEN: Final = register(41, (0, 3), 2, "DescribeDelegationToken", ".security.delegation_tokens")
DELETE_GROUPS: Final = register(42, (0, 3), 2, "DeleteGroups", ".groups.delete_groups")
ELECT_LEADERS: Final = register(43, (0, 2), 2, "ElectLeaders", ".replication.elect_leaders")
INCREMENTAL_ALTER_CONFIGS: Final = register(44, (0, 1), 1, "IncrementalAlterConfigs", ".cluster.alter_configs")
ALTER_PARTITION_REASSIGNMENTS: Final = register(
    45, (0, 1), 0, "AlterPartitionReassignments", ".replication.partition_reassignments"
)
LIST_PARTITION_REASSIGNMENTS: Final = register(
    46, (0, 0), 0, "ListPartitionReassignments", ".replication.partition_reassignments"
)
OFFSET_DELETE: Final = register(47, (0, 0), None, "OffsetDelete", ".offsets.offset_delete")
DESCRIBE_CLIENT_QUOTAS: Final = register(48, (0, 1), 1, "DescribeClientQuotas", ".security.client_quotas")
ALTER_CLIENT_QUOTAS: Final = register(49, (0, 1), 1, "AlterClientQuotas", ".security.client_quotas")
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = register(
    50, (0, 0), 0, "DescribeUserScramCredentials", ".security.scram_credentials"
)
ALTER_USER_SCRAM_CREDENTIALS: Final = register(
    51, (0, 0), 0, "AlterUserScramCredentials", ".security.scram_credentials"
)
DESCRIBE_QUORUM: Final = register(55, (0, 2), 0, "DescribeQuorum", ".replication.describe_quorum")
UPDATE_FEATURES: Final = register(57, (0, 2), 0, "UpdateFeatures", ".cluster.update_features")
DESCRIBE_CLUSTER: Final = register(60, (0, 2), 0, "DescribeCluster", ".cluster.describe_cluster")
DESCRIBE_PRODUCERS: Final = register(61, (0, 0), 0, "DescribeProducers", ".records.describe_producers")
UNREGISTER_BROKER: Final = register(64, (0, 0), 0, "UnregisterBroker", ".replication.quorum_changes")
DESCRIBE_TRANSACTIONS: Final = register(65, (0, 0), 0, "DescribeTransactions", ".transactions.describe_transactions")
LIST_TRANSACTIONS: Final = register(66, (0, 2), 0, "ListTransactions", ".transactions.list_transactions")
CONSUMER_GROUP_HEARTBEAT: Final = register(68, (0, 1), 0, "ConsumerGroupHeartbeat", ".groups.consumer_group_heartbeat")
CONSUMER_GROUP_DESCRIBE: Final = register(69, (0, 1), 0, "ConsumerGroupDescribe", ".groups.consumer_group_describe")
GET_TELEMETRY_SUBSCRIPTIONS: Final = define(71, (0, 0), 0, "GetTelemetrySubscriptions", ".cluster.telemetry")
PUSH_TELEMETRY: Final = define(72, (0, 0), 0, "PushTelemetry", ".cluster.telemetry")
LIST_CONFIG_RESOURCES: Final = register(74, (0, 1), 0, "ListConfigResources", ".cluster.list_config_resources")
DESCRIBE_TOPIC_PARTITIONS: Final = register(
    75, (0, 0), 0, "DescribeTopicPartitions", ".topics.describe_topic_partitions"
)
SHARE_GROUP_HEARTBEAT: Final = register(76, (1, 1), 0, "ShareGroupHeartbeat", ".share.share_group_heartbeat")
SHARE_GROUP_DESCRIBE: Final = register(77, (1, 1), 0, "ShareGroupDescribe", ".share.share_group_describe")
SHARE_FETCH: Final = register(78, (1, 2), 0, "ShareFetch", ".share.share_fetch")
SHARE_ACKNOWLEDGE: Final = register(79, (1, 2), 0, "ShareAcknowledge", ".share.share_acknowledge")
ADD_RAFT_VOTER: Final = register(80, (0, 1), 0, "AddRaftVoter", ".replication.quorum_changes")
REMOVE_RAFT_VOTER: Final = register(81, (0, 0), 0, "RemoveRaftVoter", ".replication.quorum_changes")
INITIALIZE_SHARE_GROUP_STATE: Final = register(83, (0, 0), 0, "InitializeShareGroupState", ".share.share_group_state")
READ_SHARE_GROUP_STATE: Final = register(84, (0, 0), 0, "ReadShareGroupState", ".share.share_group_state")
WRITE_SHARE_GROUP_STATE: Final = register(85, (0, 1), 0, "WriteShareGroupState", ".share.share_group_state")
DELETE_SHARE_GROUP_STATE: Final = register(86, (0, 0), 0, "DeleteShareGroupState", ".share.share_group_state")
READ_SHARE_GROUP_STATE_SUMMARY: Final = register(
    87, (0, 1), 0, "ReadShareGroupStateSummary", ".share.share_group_state"
)
STREAMS_GROUP_HEARTBEAT: Final = register(88, (0, 1), 0, "StreamsGroupHeartbeat", ".streams.streams_group_heartbeat")
STREAMS_GROUP_DESCRIBE: Final = register(89, (0, 1), 0, "StreamsGroupDescribe", ".streams.streams_group_describe")
DESCRIBE_SHARE_GROUP_OFFSETS: Final = register(90, (0, 1), 0, "DescribeShareGroupOffsets", ".share.share_group_offsets")
ALTER_SHARE_GROUP_OFFSETS: Final = register(91, (0, 0), 0, "AlterShareGroupOffsets", ".share.share_group_offsets")
DELETE_SHARE_GROUP_OFFSETS: Final = register(92, (0, 0), 0, "DeleteShareGroupOffsets", ".share.share_group_offsets")
STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Final = register(
    93, (0, 0), 0, "StreamsGroupTopologyDescriptionUpdate", ".streams.streams_group_topology_description_update"
)
UNREGISTER_CONTROLLER: Final = register(94, (0, 0), 0, "UnregisterController", ".replication.quorum_changes")

TELEMETRY: Final = (GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY)
"""APIs that nodes list only where metrics of clients are taken; they answer them all the same."""
