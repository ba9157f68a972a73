import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One member. Arguments: the commit mode, topics with commas or "~" and a pattern, then settings as name=value.
 * Lines on standard input are commands: "hang MS" or "close".
 */
public final class Member {
    public static void main(String[] given) throws Exception {
        String mode = given[0];
        Properties settings = new Properties();
        for (String pair : Arrays.asList(given).subList(2, given.length)) {
            int at = pair.indexOf('=');
            settings.put(pair.substring(0, at), pair.substring(at + 1));
        }
        ConcurrentLinkedQueue<String> commands = new ConcurrentLinkedQueue<>();
        Thread reading = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    commands.add(line);
                }
            } catch (Exception ended) {
                commands.add("close");
            }
        });
        reading.setDaemon(true);
        reading.start();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        // Since 4.1 the setting is an option of close.
        boolean leaves = !"false".equals(settings.remove("internal.leave.group.on.close"));
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes);
        try {
            ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    say("revoked", partitions);
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    say("assigned", partitions);
                }

                @Override
                public void onPartitionsLost(Collection<TopicPartition> partitions) {
                    say("lost", partitions);
                }
            };
            if (given[1].startsWith("~")) {
                consumer.subscribe(Pattern.compile(given[1].substring(1)), listener);
            } else if (given[1].startsWith("^")) {
                consumer.subscribe(new SubscriptionPattern(given[1].substring(1)), listener);
            } else {
                consumer.subscribe(Arrays.asList(given[1].split(",")), listener);
            }
            while (true) {
                String command = commands.poll();
                if ("close".equals(command)) {
                    break;
                }
                if (command != null && command.startsWith("hang ")) {
                    Thread.sleep(Long.parseLong(command.substring(5)));
                }
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (!records.isEmpty() && mode.equals("sync")) {
                    consumer.commitSync();
                } else if (!records.isEmpty() && mode.equals("async")) {
                    consumer.commitAsync();
                }
            }
        } finally {
            if (leaves) {
                consumer.close();
            } else {
                consumer.close(CloseOptions.groupMembershipOperation(
                    CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
            }
        }
    }

    private static void say(String kind, Collection<TopicPartition> partitions) {
        List<String> names = new ArrayList<>();
        partitions.forEach(partition -> names.add(partition.toString()));
        names.sort(null);
        System.out.println(kind + " " + String.join(" ", names));
        System.out.flush();
    }
}
