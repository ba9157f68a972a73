import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words: a topic of lines, a repartition topic, a store with its changelog, and a topic of counts. Arguments are
 * settings, NAME=VALUE; own ones are source and sink (topics), repartition (the name of the step between) and poison (a line at
 * which the whole application is shut down). Prints each change of state; ends on SIGTERM.
 */
public class WordCount {
    private static String taken(Properties settings, String name, String otherwise) {
        Object given = settings.remove(name);
        return given == null ? otherwise : (String) given;
    }

    private static List<String> words(String line, String poison) {
        if (line.equals(poison)) {
            throw new IllegalStateException("poison");
        }
        return Arrays.asList(line.toLowerCase(Locale.ROOT).split(" "));
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        String source = taken(settings, "source", "lines");
        String sink = taken(settings, "sink", "counts");
        String repartition = taken(settings, "repartition", "words");
        String poison = taken(settings, "poison", "");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> words(line, poison))
            .groupBy((key, word) -> word, Grouped.with(repartition, Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.persistentKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(String::valueOf)
            .to(sink, Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        CountDownLatch ended = new CountDownLatch(1);
        if (!poison.isEmpty()) {
            streams.setUncaughtExceptionHandler(problem -> StreamThreadExceptionResponse.SHUTDOWN_APPLICATION);
        }
        streams.setStateListener((now, before) -> {
            System.out.println("state " + now);
            System.out.flush();
            if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
                ended.countDown();
            }
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(10));
            System.out.println("closed");
            System.out.flush();
        }));
        streams.start();
        ended.await();
    }
}
