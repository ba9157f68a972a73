import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Produces as fast as the broker lets it: each second a line with the bytes of all values that are stored so far. */
public class ThrottledProducer {
  public static void main(String[] args) throws Exception {
    String topic = args[1];
    int seconds = Integer.parseInt(args[2]);
    Map<String, Object> config = Map.of(
        "bootstrap.servers", args[0],
        "client.id", args[3],
        "buffer.memory", 4_000_000,
        "acks", "1",
        "enable.idempotence", false,
        "delivery.timeout.ms", 600_000,
        "max.block.ms", 600_000);
    AtomicLong stored = new AtomicLong();
    KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    byte[] value = new byte[1_000];
    Thread sender = new Thread(() -> {
      while (true) {
        producer.send(new ProducerRecord<>(topic, value), (metadata, error) -> {
          if (error == null) {
            stored.addAndGet(value.length);
          }
        });
      }
    });
    sender.setDaemon(true);
    sender.start();
    long began = System.nanoTime();
    for (int second = 1; second <= seconds; second++) {
      Thread.sleep(Math.max(0, second * 1_000L - (System.nanoTime() - began) / 1_000_000));
      double longest = producer.metrics().values().stream()
          .filter(metric -> metric.metricName().name().equals("produce-throttle-time-max"))
          .mapToDouble(metric -> (double) metric.metricValue())
          .filter(each -> !Double.isNaN(each))
          .max().orElse(0);
      double at = (System.nanoTime() - began) / 1e9;
      System.out.println("{\"at\": " + at + ", \"stored\": " + stored.get() + ", \"throttle_ms\": " + longest + "}");
    }
    Runtime.getRuntime().halt(0);
  }
}
