import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import rejoin.Rejoin;
import rejoin.Rejoin.RejoinTest;

/**
 * Two instances of an application of Kafka Streams whose broker assigns the tasks (KIP-1071). The broker's clock stands still:
 * what takes time here are the heartbeats of the clients, every 100 ms.
 */
@RejoinTest(
    clock = "virtual",
    topics = {"lines:3", "counts:1"},
    settings = {
        "group.streams.initial.rebalance.delay.ms=0", "group.streams.assignment.interval.ms=0",
        "group.streams.min.heartbeat.interval.ms=100", "group.streams.heartbeat.interval.ms=100",
        "group.streams.num.standby.replicas=1"
    })
class CrashedInstanceTest {
    private static final Duration LONGEST = Duration.ofSeconds(60);
    private final List<KafkaStreams> instances = new ArrayList<>();
    @TempDir
    private Path folder;

    @AfterEach
    void close() {
        instances.forEach(each -> each.close(Duration.ofSeconds(10)));
    }

    /** One is gone without leaving: the other has its tasks, and the counts that its standbys kept. */
    @Test
    void tasksAndStateComeToTheOther(Rejoin rejoin) {
        KafkaStreams one = start(rejoin, "one");
        KafkaStreams two = start(rejoin, "two");
        all(rejoin, 2, 3);
        rejoin.produce("lines", null, List.of("a b", "b c", "b d", "a e", "f b", "g h"));
        until(() -> counted(one) + counted(two) == 12);
        assertTrue(counted(one) > 0 && counted(two) > 0);

        one.close(CloseOptions.groupMembershipOperation(GroupMembershipOperation.REMAIN_IN_GROUP));
        long virtual = rejoin.nowMs();
        rejoin.expire("words", Map.of("client_id", "one-StreamThread-1-consumer")); // as if 45 seconds had passed
        all(rejoin, 1, 0);
        until(() -> counted(two) == 12);
        assertEquals(virtual, rejoin.nowMs());
    }

    /** A member that is fenced joins again under its id, and gets its tasks back. */
    @Test
    void aMemberThatIsFencedComesBack(Rejoin rejoin) {
        start(rejoin, "one");
        start(rejoin, "two");
        all(rejoin, 2, 3);
        Map<String, Object> once = Map.of("keys", "StreamsGroupHeartbeat", "error", "FENCED_MEMBER_EPOCH", "count", 1);
        Map<String, Object> fence = new HashMap<>(once);
        fence.put("client_id", "one-StreamThread-1-consumer");
        rejoin.addFault(fence).waitFor(1);
        until(() -> rejoined(rejoin));
        all(rejoin, 2, 3);
    }

    /** Six tasks are run by so many members, with so many standbys. */
    private static void all(Rejoin rejoin, int members, int standbys) {
        rejoin.waitForStreamsGroup("words", Map.of(
            "state", "Stable", "members", members, "tasks", 6, "standbys", standbys, "timeout_ms", LONGEST.toMillis()));
    }

    private static boolean rejoined(Rejoin rejoin) {
        var query = Map.of("api", "StreamsGroupHeartbeat", "client_id", "one-StreamThread-1-consumer");
        long joins = rejoin.requests(query).stream()
            .filter(each -> ((Number) ((Map<?, ?>) each.get("request")).get("memberEpoch")).intValue() == 0).count();
        return joins > 1;
    }

    private KafkaStreams start(Rejoin rejoin, String name) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream().mapValues(String::valueOf).to("counts", Produced.with(Serdes.String(), Serdes.String()));
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "application.id", "words", "client.id", name, "bootstrap.servers", rejoin.bootstrapServers(),
            "group.protocol", "streams", "auto.offset.reset", "earliest", "commit.interval.ms", 100,
            "state.dir", folder.resolve(name).toString()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        instances.add(streams);
        streams.start();
        return streams;
    }

    /** How many words the tasks of an instance have counted. */
    private static long counted(KafkaStreams streams) {
        try {
            ReadOnlyKeyValueStore<String, Long> counts = streams.store(
                StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.keyValueStore()));
            long sum = 0;
            try (var all = counts.all()) {
                while (all.hasNext()) {
                    sum += all.next().value;
                }
            }
            return sum;
        } catch (InvalidStateStoreException notYet) {
            return 0;
        }
    }

    private static void until(BooleanSupplier condition) {
        long end = System.nanoTime() + LONGEST.toNanos();
        while (!condition.getAsBoolean() && System.nanoTime() < end) {
            LockSupport.parkNanos(5_000_000);
        }
        assertTrue(condition.getAsBoolean());
    }
}
