import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;

/** Reads records of the offsets topic as JSON, one a line, and adds the bytes of their keys and values. */
public class RecordBytes {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode record = (ObjectNode) json.readTree(line);
            short type = record.get("type").shortValue();
            ApiMessage key = CoordinatorRecordJsonConverters.readRecordKeyFromJson(record.get("key"), type);
            record.put("keyBytes", text(MessageUtil.toCoordinatorTypePrefixedBytes(key)));
            JsonNode value = record.get("value");
            if (!value.isNull()) {
                short version = record.get("version").shortValue();
                ApiMessage read = CoordinatorRecordJsonConverters.readRecordValueFromJson(value, type, version);
                record.set("value", CoordinatorRecordJsonConverters.writeRecordValueAsJson(read, version));
                record.put("valueBytes", text(MessageUtil.toVersionPrefixedBytes(version, read)));
            }
            System.out.println(record);
        }
    }

    private static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
