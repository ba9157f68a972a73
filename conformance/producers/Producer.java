import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One producer. Arguments: the topic, then settings as name=value. Lines on standard input are commands; each is
 * answered by a line when it has ended: "done", or the simple name of an exception.
 */
public final class Producer {
    private static final String GROUP = "readers";

    public static void main(String[] given) throws Exception {
        String topic = given[0];
        Properties settings = new Properties();
        for (int i = 1; i < given.length; i++) {
            int at = given[i].indexOf('=');
            settings.put(given[i].substring(0, at), given[i].substring(at + 1));
        }
        ByteArraySerializer bytes = new ByteArraySerializer();
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes);
        List<Future<?>> sent = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String outcome = "done";
            try {
                switch (words[0]) {
                    case "send" -> {
                        for (int i = 0; i < Integer.parseInt(words[2]); i++) {
                            byte[] value = ("value " + i).getBytes();
                            sent.add(producer.send(
                                new ProducerRecord<>(topic, Integer.valueOf(words[1]), null, value)));
                        }
                    }
                    case "flush" -> {
                        producer.flush();
                        outcome = outcomeOf(sent);
                    }
                    case "init" -> producer.initTransactions();
                    case "begin" -> producer.beginTransaction();
                    case "offsets" -> producer.sendOffsetsToTransaction(
                        Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(Long.parseLong(words[1]))),
                        new ConsumerGroupMetadata(GROUP));
                    case "commit" -> {
                        producer.commitTransaction();
                        outcome = outcomeOf(sent);
                    }
                    case "abort" -> {
                        producer.abortTransaction();
                        sent.clear();
                    }
                    case "close" -> producer.close();
                    default -> throw new IllegalArgumentException(line);
                }
            } catch (Exception problem) {
                outcome = problem.getClass().getSimpleName();
            }
            System.out.println(outcome);
            System.out.flush();
            if (words[0].equals("close")) {
                return;
            }
        }
    }

    /** The first failure of the records that were sent. */
    private static String outcomeOf(List<Future<?>> sent) throws InterruptedException {
        String outcome = "done";
        for (Future<?> each : sent) {
            try {
                each.get();
            } catch (ExecutionException problem) {
                outcome = problem.getCause().getClass().getSimpleName();
                break;
            }
        }
        sent.clear();
        return outcome;
    }
}
