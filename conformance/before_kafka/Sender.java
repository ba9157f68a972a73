import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer that goes on until SIGTERM: Sender TOPIC PARTITIONS NAME EVERY_MS NAME=VALUE ... The n-th value is NAME-n;
 * prints "acked VALUE PARTITION OFFSET MS" or "failed VALUE PROBLEM" for each.
 */
public final class Sender {
    private static volatile boolean stopping = false;

    public static void main(String[] given) throws Exception {
        String topic = given[0];
        int partitions = Integer.parseInt(given[1]);
        Properties settings = new Properties();
        for (int at = 4; at < given.length; at++) {
            String[] pair = given[at].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                main.join(60_000);
            } catch (InterruptedException ignored) {
                // The process ends anyway.
            }
        }));
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (int number = 0; !stopping; number++) {
                String value = given[2] + "-" + number;
                producer.send(new ProducerRecord<>(topic, number % partitions, null, value.getBytes()), (done, problem) -> {
                    if (problem == null) {
                        System.out.printf("acked %s %d %d %d%n", value, done.partition(), done.offset(), System.currentTimeMillis());
                    } else {
                        System.out.printf("failed %s %s%n", value, problem.getClass().getSimpleName());
                    }
                });
                Thread.sleep(Long.parseLong(given[3]));
            }
        }
    }
}
