import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Semaphore;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;

/** A client of the roles that client.py describes: Client ROLE BOOTSTRAP NUMBER NAME=VALUE ... */
public final class Client {
    private static final int ABORTED = 5;
    private static volatile boolean stopping = false;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[1]);
        for (int at = 3; at < arguments.length; at++) {
            String[] pair = arguments[at].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        int number = Integer.parseInt(arguments[2]);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                main.join(15000);
            } catch (InterruptedException ignored) {
                // The process ends anyway.
            }
        }));
        switch (arguments[0]) {
            case "produce" -> produce(settings, number);
            case "consume" -> consume(settings);
            default -> move(settings);
        }
    }

    private static synchronized void say(String what) {
        System.out.printf("{\"at\": %d, %s}%n", System.currentTimeMillis(), what);
        System.out.flush();
    }

    private static String text(Throwable problem) {
        return ("" + problem).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
    }

    private static void produce(Properties settings, int partition) throws InterruptedException {
        Semaphore unacknowledged = new Semaphore(20);
        try (KafkaProducer<String, String> producer = producer(settings)) {
            for (int next = 0; !stopping; next++) {
                int number = next;
                unacknowledged.acquire();
                producer.send(new ProducerRecord<>("numbers", partition, null, "" + number), (record, problem) -> {
                    unacknowledged.release();
                    if (problem == null) {
                        say("\"produced\": [%d, %d]".formatted(number, record.offset()));
                    } else {
                        say("\"problem\": \"%s\", \"number\": %d".formatted(text(problem), number));
                    }
                });
                Thread.sleep(10);
            }
        }
    }

    private static KafkaProducer<String, String> producer(Properties settings) {
        Properties own = new Properties();
        own.putAll(settings);
        own.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        own.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return new KafkaProducer<>(own);
    }

    private static KafkaConsumer<String, String> consumer(Properties settings, String role) {
        Properties own = new Properties();
        own.putAll(settings);
        own.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        own.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        own.put("group.id", role + "-java");
        own.put("session.timeout.ms", "20000");
        own.put("heartbeat.interval.ms", "1000");
        own.put("enable.auto.commit", "false");
        own.put("auto.offset.reset", "earliest");
        own.put("max.poll.records", "20");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(own);
        consumer.subscribe(List.of("numbers"));
        return consumer;
    }

    private static Map<TopicPartition, OffsetAndMetadata> ends(ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        for (ConsumerRecord<String, String> each : records) {
            ends.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
        }
        return ends;
    }

    private static void consume(Properties settings) {
        try (KafkaConsumer<String, String> consumer = consumer(settings, "consume")) {
            while (!stopping) {
                try {
                    Map<TopicPartition, OffsetAndMetadata> ends = ends(consumer.poll(Duration.ofMillis(200)));
                    if (!ends.isEmpty()) {
                        consumer.commitSync(ends);
                        ends.forEach((where, offset) ->
                            say("\"committed\": [%d, %d]".formatted(where.partition(), offset.offset())));
                    }
                } catch (KafkaException problem) {
                    say("\"problem\": \"%s\"".formatted(text(problem)));
                }
            }
        }
    }

    private static void move(Properties settings) {
        KafkaProducer<String, String> producer = transactional(settings);
        try (KafkaConsumer<String, String> consumer = consumer(settings, "move")) {
            for (int number = 1; !stopping; number++) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                try {
                    producer.beginTransaction();
                    for (ConsumerRecord<String, String> each : records) {
                        String value = "%d %d %d".formatted(number, each.partition(), each.offset());
                        producer.send(new ProducerRecord<>("moved-java", each.partition(), null, value));
                    }
                    producer.sendOffsetsToTransaction(ends(records), consumer.groupMetadata());
                    if (number % ABORTED != 0) {
                        finished(producer::commitTransaction);
                        String read = java.util.stream.StreamSupport.stream(records.spliterator(), false)
                            .map(each -> "[%d, %d]".formatted(each.partition(), each.offset()))
                            .collect(Collectors.joining(", "));
                        say("\"moved\": %d, \"records\": [%s]".formatted(number, read));
                        continue;
                    }
                    finished(producer::abortTransaction);
                    say("\"aborted\": %d".formatted(number));
                } catch (KafkaException problem) {
                    say("\"problem\": \"%s\"".formatted(text(problem)));
                    try {
                        finished(producer::abortTransaction);
                        say("\"aborted\": %d".formatted(number));
                    } catch (KafkaException fatal) {
                        say("\"replaced\": \"%s\"".formatted(text(fatal)));
                        producer.close(Duration.ZERO);
                        producer = transactional(settings);
                    }
                }
                rewind(consumer);
            }
        }
        producer.close(Duration.ofSeconds(5));
    }

    private static KafkaProducer<String, String> transactional(Properties settings) {
        Properties own = new Properties();
        own.putAll(settings);
        own.put("transactional.id", "move-java");
        own.put("transaction.timeout.ms", "60000");
        KafkaProducer<String, String> producer = producer(own);
        finished(producer::initTransactions);
        return producer;
    }

    /** Calls, again where it took too long: Java's producer then goes on with the same call. */
    private static void finished(Runnable call) {
        while (true) {
            try {
                call.run();
                return;
            } catch (TimeoutException problem) {
                say("\"problem\": \"%s\"".formatted(text(problem)));
                if (stopping) {
                    throw problem;
                }
            }
        }
    }

    private static void rewind(KafkaConsumer<String, String> consumer) {
        while (!stopping) {
            try {
                consumer.committed(consumer.assignment()).forEach((where, offset) ->
                    consumer.seek(where, offset == null ? 0 : offset.offset()));
                return;
            } catch (KafkaException problem) {
                say("\"problem\": \"%s\"".formatted(text(problem)));
            }
        }
    }
}
