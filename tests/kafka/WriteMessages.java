import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Writes messages by the classes of Kafka's clients, one after the other, which spares each of them the start of a JVM.
 *
 * A line of standard input is a message: its name, its version, and its fields in JSON. The answer is a line with its
 * bytes in base64.
 */
public class WriteMessages {
    public static void main(String[] none) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        ObjectMapper mapper = new ObjectMapper();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", 3);
            short version = Short.parseShort(words[1]);
            byte[] written = bytes(message(words[0], mapper.readTree(words[2]), version), version);
            System.out.println(Base64.getEncoder().encodeToString(written));
        }
    }

    static Message message(String name, JsonNode fields, short version) throws Exception {
        Class<?> converter = Class.forName("org.apache.kafka.common.message." + name + "DataJsonConverter");
        return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, fields, version);
    }

    static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MessageSizeAccumulator size = new MessageSizeAccumulator();
        message.addSize(size, cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size.totalSize());
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }
}
