import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.*;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.junit.jupiter.api.Test;
import rejoin.Rejoin;
import rejoin.Rejoin.RejoinTest;

/** A consumer loses its session and comes back: no record is lost, and those after the commit come twice. */
class LostSessionTest {
    private final Set<String> values = new HashSet<>();
    private int duplicates;
    private int lost;

    @RejoinTest(topics = "orders:3", settings = "group.initial.rebalance.delay.ms=0")
    @Test
    void comesBackAfterItsSession(Rejoin rejoin) {
        rejoin.produce("orders", null, 10); // to each partition
        try (var consumer = consumer(rejoin)) {
            readUntil(consumer, () -> values.size() == 30);
            Map<TopicPartition, OffsetAndMetadata> six = new HashMap<>();
            consumer.assignment().forEach(partition -> six.put(partition, new OffsetAndMetadata(6)));
            consumer.commitSync(six);

            rejoin.expire("orders-app", Map.of("client_id", "one")); // as if no heartbeat had come for 45 seconds
            readUntil(consumer, () -> lost == 1);
            rejoin.produce("orders", null, 1);
            readUntil(consumer, () -> values.size() == 33);
        }
        assertEquals(12, duplicates); // four of each partition came after the commit
    }

    /** Its first attempts to join fail; it goes on trying, and the answers are in the requests that the broker has seen. */
    @RejoinTest(topics = "orders:3", settings = "group.initial.rebalance.delay.ms=0")
    @Test
    void joinsAlthoughTheCoordinatorIsNotAvailable(Rejoin rejoin) {
        rejoin.addFault(Map.of("keys", "JoinGroup", "error", "COORDINATOR_NOT_AVAILABLE", "count", 2));
        try (var consumer = consumer(rejoin)) {
            readUntil(consumer, () -> consumer.assignment().size() == 3);
            rejoin.waitForGroup("orders-app", Map.of("state", "Stable", "members", 1, "assigned", 3));
        }
        assertTrue(rejoin.requests(Map.of("api", "JoinGroup", "client_id", "one")).size() > 2);
    }

    /** The coordinator's 45 seconds pass at once. The consumer's own timers stay in real time. */
    @RejoinTest(clock = "virtual", topics = "orders:3")
    @Test
    void losesASessionOf45SecondsAtOnce(Rejoin rejoin) {
        try (var consumer = consumer(rejoin)) {
            join(rejoin, consumer);
            var silence = rejoin.addFault(Map.of("keys", "Heartbeat", "pause", true, "count", -1));
            silence.waitFor(1);
            rejoin.advance(Duration.ofSeconds(45));
            rejoin.waitForGroup("orders-app", "Empty", 0);
            silence.remove();
            readUntil(consumer, () -> lost == 1);
            join(rejoin, consumer);
        }
    }

    private void join(Rejoin rejoin, KafkaConsumer<String, String> consumer) {
        readUntil(consumer, () -> isWaiting(rejoin));
        rejoin.advance(Duration.ofSeconds(3)); // the initial rebalance delay
        readUntil(consumer, () -> consumer.assignment().size() == 3);
        rejoin.waitForGroup("orders-app", Map.of("state", "Stable", "members", 1, "assigned", 3));
    }

    private static boolean isWaiting(Rejoin rejoin) {
        try {
            rejoin.waitForGroup("orders-app", Map.of("waiting", 1, "timeout_ms", 0));
            return true;
        } catch (Rejoin.NotReached notYet) {
            return false;
        }
    }

    private KafkaConsumer<String, String> consumer(Rejoin rejoin) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", rejoin.bootstrapServers(), "group.id", "orders-app", "client.id", "one",
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "session.timeout.ms", 45_000,
            "heartbeat.interval.ms", 100);
        var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of("orders"), new Rebalances());
        return consumer;
    }

    private void readUntil(KafkaConsumer<String, String> consumer, BooleanSupplier condition) {
        long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!condition.getAsBoolean() && System.nanoTime() < end) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                if (!values.add(record.value())) {
                    duplicates++;
                }
            }
        }
        assertTrue(condition.getAsBoolean(), () -> values.size() + " records, lost " + lost + " times");
    }

    private final class Rebalances implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            lost++;
        }
    }
}
