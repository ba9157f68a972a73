import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A consumer that transforms in transactions: Transformer NAME=VALUE ... It ends where its producer is fenced, and reads
 * again from the committed offsets after a transaction that it aborted.
 */
public final class Transformer {
    private static volatile boolean stopping = false;

    public static void main(String[] pairs) {
        Properties properties = new Properties();
        for (String pair : pairs) {
            String[] words = pair.split("=", 2);
            properties.put(words[0], words[1]);
        }
        properties.remove("processed");
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", properties.get("bootstrap.servers"),
            "transactional.id", properties.remove("transactional.id"));
        properties.put("enable.auto.commit", "false");
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stopping = true));
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(properties, bytes, bytes);
             var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(System.getenv("TOPIC")));
            while (!stopping) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (!records.isEmpty()) transform(consumer, producer, records);
            }
        }
    }

    private static void transform(
            KafkaConsumer<byte[], byte[]> consumer, KafkaProducer<byte[], byte[]> producer, ConsumerRecords<byte[], byte[]> records) {
        try {
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> each : records) {
                producer.send(new ProducerRecord<>(System.getenv("OUTPUT_TOPIC"), each.key(), each.value()));
                ends.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
            }
            producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            producer.commitTransaction();
        } catch (ProducerFencedException fenced) {
            throw fenced;
        } catch (KafkaException problem) {
            producer.abortTransaction();
            consumer.committed(consumer.assignment()).forEach((partition, committed) ->
                consumer.seek(partition, committed == null ? 0 : committed.offset()));
        }
    }
}
