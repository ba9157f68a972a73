import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A consumer that polls at uneven times, then prints its own metrics, and closes. */
public final class MeasuringConsumer {
    private static final List<String> GROUPS =
            List.of("consumer-metrics", "consumer-coordinator-metrics", "consumer-fetch-manager-metrics");

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", "measured-java");
        settings.put("client.id", "java");
        settings.put("auto.offset.reset", "earliest");
        settings.put("auto.commit.interval.ms", "200");
        String deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        settings.put("key.deserializer", deserializer);
        settings.put("value.deserializer", deserializer);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of("orders"));
            consumer.clientInstanceId(Duration.ofSeconds(20));
            for (long end = System.nanoTime() + 9_000_000_000L; System.nanoTime() < end; ) {
                consumer.poll(Duration.ofMillis(100));
                Thread.sleep(System.nanoTime() + 2_000_000_000L > end ? 700 : 50);
            }
            TreeMap<String, Object> values = new TreeMap<>();
            consumer.metrics().forEach((name, metric) -> {
                if (GROUPS.contains(name.group()) && name.tags().size() == 1) {
                    values.put((name.group().replace("-metrics", "") + "." + name.name()).replace('-', '.'),
                            metric.metricValue());
                }
            });
            values.forEach((name, value) -> System.out.println(name + "=" + value));
        }
    }
}
