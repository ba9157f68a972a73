import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A consumer that polls; lines on standard input make its handler slow ("sleep 20") or change its topics. Without
 * auto commit it commits what it got before it polls again. With "processed=true" it prints each record, as
 * rejoin conform-client reads it.
 */
public final class Member {
    private static final Logger LOG = LoggerFactory.getLogger("com.example.Handler");
    private static volatile boolean stopping = false;

    public static void main(String[] settings) throws Exception {
        Properties properties = new Properties();
        List<String> topics = List.of(settings[0].split(","));
        for (int at = 1; at < settings.length; at++) {
            String[] pair = settings[at].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        properties.put("key.deserializer", bytes);
        properties.put("value.deserializer", bytes);
        boolean prints = "true".equals(properties.remove("processed"));
        boolean commits = "false".equals(properties.get("enable.auto.commit"));
        ConcurrentLinkedQueue<String[]> asked = new ConcurrentLinkedQueue<>();
        Thread reader = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    asked.add(line.split(" "));
                }
            } catch (java.io.IOException problem) {
                stopping = true;
            }
        });
        reader.setDaemon(true);
        reader.start();
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                main.join(8000);
            } catch (InterruptedException ignored) {
                // The process ends anyway.
            }
        }));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
            consumer.subscribe(topics);
            while (!stopping) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (prints) {
                    records.forEach(each ->
                        System.out.printf("processed %s %d %d%n", each.topic(), each.partition(), each.offset()));
                }
                for (String[] words = asked.poll(); words != null; words = asked.poll()) {
                    if (words[0].equals("sleep")) {
                        Thread.sleep(Long.parseLong(words[1]) * 1000);
                    } else {
                        consumer.subscribe(List.of(words[1].split(",")));
                    }
                }
                if (commits && !records.isEmpty()) {
                    commit(consumer);
                }
            }
        }
    }

    private static void commit(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            consumer.commitSync();
        } catch (FencedInstanceIdException problem) {
            throw problem;
        } catch (KafkaException problem) {
            LOG.error("cannot commit", problem);
        }
    }
}
