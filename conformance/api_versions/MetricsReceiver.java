import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetryContext;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;

/** Takes the metrics of clients and drops them. A broker with it offers the requests of KIP-714. */
public class MetricsReceiver implements MetricsReporter, ClientTelemetryExporterProvider {
  @Override
  public ClientTelemetryExporter clientTelemetryExporter() {
    return new ClientTelemetryExporter() {
      @Override
      public void exportMetrics(ClientTelemetryContext context, ClientTelemetryPayload payload) {}
    };
  }

  @Override
  public void init(List<KafkaMetric> metrics) {}

  @Override
  public void metricChange(KafkaMetric metric) {}

  @Override
  public void metricRemoval(KafkaMetric metric) {}

  @Override
  public void close() {}

  @Override
  public void configure(Map<String, ?> configs) {}
}
