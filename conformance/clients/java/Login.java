import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.TimeUnit;
import java.util.regex.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** Logs in by each way that a file lists, produces a record and consumes one; a line of JSON for each. */
public final class Login {
    private static final Pattern OBJECT = Pattern.compile("\\{([^}]*)\\}");
    private static final Pattern FIELD = Pattern.compile("\"(\\w+)\": \"([^\"]*)\"");
    private static final String MODULES = "org.apache.kafka.common.security";
    private static final Duration PATIENCE = Duration.ofSeconds(20);

    public static void main(String[] arguments) throws Exception {
        Matcher objects = OBJECT.matcher(Files.readString(Path.of(arguments[0])));
        while (objects.find()) {
            Map<String, String> login = new HashMap<>();
            Matcher fields = FIELD.matcher(objects.group(1));
            while (fields.find()) login.put(fields.group(1), fields.group(2));
            String problem = "";
            try {
                live(login);
            } catch (Throwable thrown) {
                Throwable deepest = thrown;
                while (deepest.getCause() != null) deepest = deepest.getCause();
                problem = String.valueOf(deepest);
            }
            System.out.printf("{\"step\": \"%s\", \"problem\": \"%s\"}%n", login.get("name"), problem.replaceAll("[\"\\\\\\s]+", " "));
        }
        System.exit(0);
    }

    private static Map<String, Object> settings(Map<String, String> login) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", login.get("server"), "security.protocol", login.get("protocol"),
            "max.block.ms", "10000", "default.api.timeout.ms", "10000", "delivery.timeout.ms", "10000", "request.timeout.ms", "5000"));
        settings.put("linger.ms", "0");
        if (login.get("protocol").endsWith("SSL")) {
            settings.put("ssl.truststore.type", "PEM");
            settings.put("ssl.truststore.location", login.get("ca"));
        }
        if (!login.get("keystore").isEmpty()) {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.location", login.get("keystore"));
        }
        String mechanism = login.get("mechanism");
        if (!mechanism.isEmpty()) {
            settings.put("sasl.mechanism", mechanism);
            String user = String.format("username=\"%s\" password=\"%s\"", login.get("user"), login.get("password"));
            settings.put("sasl.jaas.config", switch (mechanism) {
                case "PLAIN" -> MODULES + ".plain.PlainLoginModule required " + user + ";";
                case "OAUTHBEARER" -> MODULES + ".oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"alice\";";
                default -> MODULES + ".scram.ScramLoginModule required " + user + ";";
            });
        }
        return settings;
    }

    private static void live(Map<String, String> login) throws Exception {
        Map<String, Object> settings = settings(login);
        try (Producer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("logins", 0, null, "value")).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        }
        settings.put("auto.offset.reset", "earliest");
        settings.keySet().removeAll(Set.of("max.block.ms", "delivery.timeout.ms", "linger.ms"));
        try (Consumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition("logins", 0)));
            if (consumer.poll(PATIENCE).isEmpty()) throw new IllegalStateException("no record came");
        }
    }
}
