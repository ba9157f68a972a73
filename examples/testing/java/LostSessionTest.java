import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.*;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A consumer loses its session and comes back: no record is lost, and those after the commit come twice. */
class LostSessionTest {
    private static final String BOOTSTRAP = System.getenv("BOOTSTRAP_SERVERS");
    private static final String CONTROL = System.getenv("CONTROL_URL");
    private static final int PARTITIONS = 3;

    private final Set<String> values = new HashSet<>();
    private int duplicates;
    private int lost;

    @BeforeAll
    static void isConfigured() {
        if (BOOTSTRAP == null || CONTROL == null) {
            fail("set BOOTSTRAP_SERVERS=127.0.0.1:9092 and CONTROL_URL=http://127.0.0.1:9095");
        }
    }

    @Test
    void comesBackAfterItsSession() throws Exception {
        try (var admin = Admin.create(Map.<String, Object>of("bootstrap.servers", BOOTSTRAP))) {
            admin.createTopics(List.of(new NewTopic("orders", PARTITIONS, (short) 1))).all().get();
        }
        produce(0, 10); // of each partition
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", BOOTSTRAP, "group.id", "orders-app", "client.id", "one", "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "session.timeout.ms", 45_000, "heartbeat.interval.ms", 100);
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("orders"), new Rebalances());
            readUntil(consumer, () -> values.size() == 30);
            Map<TopicPartition, OffsetAndMetadata> six = new HashMap<>();
            consumer.assignment().forEach(partition -> six.put(partition, new OffsetAndMetadata(6)));
            consumer.commitSync(six);

            expire("orders-app", "one"); // as if no heartbeat had come for 45 seconds
            readUntil(consumer, () -> lost == 1);
            produce(10, 11);
            readUntil(consumer, () -> values.size() == 33);
        }
        assertEquals(12, duplicates); // four of each partition came after the commit
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
        assertTrue(condition.getAsBoolean(), values.size() + " records, lost " + lost + " times");
    }

    private static void produce(int first, int end) {
        Map<String, Object> settings = Map.of("bootstrap.servers", BOOTSTRAP);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                for (int number = first; number < end; number++) {
                    producer.send(new ProducerRecord<>("orders", partition, null, partition + "/" + number));
                }
            }
        }
    }

    private static void expire(String group, String clientId) throws Exception {
        String body = "{\"group\": \"%s\", \"client_id\": \"%s\"}".formatted(group, clientId);
        var request = HttpRequest.newBuilder(URI.create(CONTROL + "/control/groups/expire"))
            .header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
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
