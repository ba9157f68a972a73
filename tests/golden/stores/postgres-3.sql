CREATE TABLE nodes (
    node_id integer PRIMARY KEY,
    incarnation uuid NOT NULL,
    host text NOT NULL,
    port integer NOT NULL,
    rack text,
    draining boolean NOT NULL DEFAULT false,
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE leases (
    partition integer PRIMARY KEY,
    epoch bigint NOT NULL,
    node_id integer,
    incarnation uuid,
    expires_at timestamptz
) WITH (fillfactor = 50);

-- A record is the JSON of its key and that of its value. No value: a tombstone. No key: the end of a transaction,
-- whose JSON is the value.
CREATE TABLE log (
    partition integer NOT NULL,
    position bigint NOT NULL,
    epoch bigint NOT NULL,
    producer_id bigint NOT NULL DEFAULT -1,
    checksum bigint NOT NULL,
    key text,
    value text,
    PRIMARY KEY (partition, position)
) WITH (autovacuum_vacuum_scale_factor = 0.1);

-- How many records the last compaction of a partition left.
CREATE TABLE compactions (
    partition integer PRIMARY KEY,
    alive bigint NOT NULL
);

-- Each connection that appends: a newer session ends those before it, and the number of the newest batch tells whether
-- one whose answer was lost had been written.
CREATE TABLE writers (
    writer uuid PRIMARY KEY,
    session bigint NOT NULL,
    batch bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE TABLE topics_log (
    version bigint PRIMARY KEY,
    record jsonb NOT NULL
);
-- How long the leader of a partition needed to load it.
ALTER TABLE leases ADD COLUMN load_ms integer;
CREATE TABLE schema_version (version integer NOT NULL, since timestamptz NOT NULL);
INSERT INTO schema_version (version, since) VALUES ('1', '2026-01-01T00:00:00Z');
INSERT INTO schema_version (version, since) VALUES ('2', '2026-01-01T00:00:00Z');
INSERT INTO schema_version (version, since) VALUES ('3', '2026-01-01T00:00:00Z');
INSERT INTO leases (partition, epoch, node_id, incarnation, expires_at, load_ms) VALUES ('0', '1', '1', NULL, NULL, NULL);
INSERT INTO leases (partition, epoch, node_id, incarnation, expires_at, load_ms) VALUES ('3', '1', '1', NULL, NULL, NULL);
INSERT INTO leases (partition, epoch, node_id, incarnation, expires_at, load_ms) VALUES ('49', '1', '1', NULL, NULL, NULL);
INSERT INTO leases (partition, epoch, node_id, incarnation, expires_at, load_ms) VALUES ('7', '0', '1', NULL, NULL, NULL);
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('0', '1', '1', '-1', '553235453', '{"version":2,"data":{"group":"g"}}', '{"version":3,"data":{"protocolType":"consumer","generation":1,"protocol":"range","leader":"m-0","currentStateTimestamp":7,"members":[{"memberId":"m-0","groupInstanceId":"static","clientId":"c","clientHost":"/127.0.0.1","rebalanceTimeout":60000,"sessionTimeout":45000,"subscription":"+//+AA==","assignment":""},{"memberId":"m-1","groupInstanceId":null,"clientId":"c","clientHost":"/127.0.0.1","rebalanceTimeout":60000,"sessionTimeout":45000,"subscription":"+//+AA==","assignment":"AA=="}]}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('0', '2', '1', '-1', '2635217456', '{"version":1,"data":{"group":"g","topic":"orders","partition":0}}', '{"version":3,"data":{"offset":1,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('0', '3', '1', '-1', '838991006', '{"version":1,"data":{"group":"g","topic":"orders","partition":1}}', '{"version":3,"data":{"offset":2,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('0', '4', '1', '9', '3243332693', '{"version":1,"data":{"group":"g","topic":"orders","partition":2}}', '{"version":3,"data":{"offset":3,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('0', '5', '1', '9', '647357137', NULL, '{"producerEpoch":0,"committed":true}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('0', '6', '1', '8', '2846196000', '{"version":1,"data":{"group":"g","topic":"orders","partition":3}}', '{"version":3,"data":{"offset":4,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('3', '1', '1', '-1', '2140666521', '{"version":1,"data":{"group":"g","topic":"orders","partition":0}}', '{"version":3,"data":{"offset":5,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('3', '2', '1', '-1', '2105081923', '{"version":1,"data":{"group":"g","topic":"orders","partition":0}}', '{"version":3,"data":{"offset":6,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('3', '3', '1', '-1', '18807474', '{"version":1,"data":{"group":"g","topic":"orders","partition":7}}', NULL);
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('3', '4', '1', '-1', '3052682504', '{"version":2,"data":{"group":"h"}}', '{"version":3,"data":{"protocolType":"consumer","generation":2,"protocol":"range","leader":"m-0","currentStateTimestamp":7,"members":[{"memberId":"m-0","groupInstanceId":"static","clientId":"c","clientHost":"/127.0.0.1","rebalanceTimeout":60000,"sessionTimeout":45000,"subscription":"+//+AA==","assignment":""}]}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '1', '1', '-1', '3369484696', '{"version":1,"data":{"group":"g","topic":"orders","partition":0}}', '{"version":3,"data":{"offset":0,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '10', '1', '-1', '102590861', '{"version":1,"data":{"group":"g","topic":"orders","partition":9}}', '{"version":3,"data":{"offset":9,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '11', '1', '-1', '1456258412', '{"version":1,"data":{"group":"g","topic":"orders","partition":10}}', '{"version":3,"data":{"offset":10,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '12', '1', '-1', '11295939', '{"version":1,"data":{"group":"g","topic":"orders","partition":11}}', '{"version":3,"data":{"offset":11,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '13', '1', '-1', '4195188274', '{"version":1,"data":{"group":"g","topic":"orders","partition":12}}', '{"version":3,"data":{"offset":12,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '14', '1', '-1', '2892865437', '{"version":1,"data":{"group":"g","topic":"orders","partition":13}}', '{"version":3,"data":{"offset":13,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '15', '1', '-1', '3560848785', '{"version":1,"data":{"group":"g","topic":"orders","partition":14}}', '{"version":3,"data":{"offset":14,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '16', '1', '-1', '2187254846', '{"version":1,"data":{"group":"g","topic":"orders","partition":15}}', '{"version":3,"data":{"offset":15,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '17', '1', '-1', '2030042831', '{"version":1,"data":{"group":"g","topic":"orders","partition":16}}', '{"version":3,"data":{"offset":16,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '18', '1', '-1', '782180192', '{"version":1,"data":{"group":"g","topic":"orders","partition":17}}', '{"version":3,"data":{"offset":17,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '19', '1', '-1', '2287516375', '{"version":1,"data":{"group":"g","topic":"orders","partition":18}}', '{"version":3,"data":{"offset":18,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '2', '1', '-1', '1687082074', '{"version":1,"data":{"group":"g","topic":"orders","partition":1}}', '{"version":3,"data":{"offset":1,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '20', '1', '-1', '3728235384', '{"version":1,"data":{"group":"g","topic":"orders","partition":19}}', '{"version":3,"data":{"offset":19,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '3', '1', '-1', '1259760733', '{"version":1,"data":{"group":"g","topic":"orders","partition":2}}', '{"version":3,"data":{"offset":2,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '4', '1', '-1', '3880712607', '{"version":1,"data":{"group":"g","topic":"orders","partition":3}}', '{"version":3,"data":{"offset":3,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '5', '1', '-1', '338107475', '{"version":1,"data":{"group":"g","topic":"orders","partition":4}}', '{"version":3,"data":{"offset":4,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '6', '1', '-1', '3095366033', '{"version":1,"data":{"group":"g","topic":"orders","partition":5}}', '{"version":3,"data":{"offset":5,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '7', '1', '-1', '2548511126', '{"version":1,"data":{"group":"g","topic":"orders","partition":6}}', '{"version":3,"data":{"offset":6,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '8', '1', '-1', '1002415188', '{"version":1,"data":{"group":"g","topic":"orders","partition":7}}', '{"version":3,"data":{"offset":7,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO log (partition, position, epoch, producer_id, checksum, key, value) VALUES ('49', '9', '1', '-1', '2856713295', '{"version":1,"data":{"group":"g","topic":"orders","partition":8}}', '{"version":3,"data":{"offset":8,"leaderEpoch":3,"metadata":"m","commitTimestamp":1}}');
INSERT INTO topics_log (version, record) VALUES ('1', '[{"data": {"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "recordsPerSecond": 0.0}, "type": "TOPIC_RECORD", "version": 0}, {"data": {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "startedAt": 1700000000000, "baseOffset": 0, "partitions": 3, "partitionId": 0}, "type": "PARTITION_RECORD", "version": 0}]');
