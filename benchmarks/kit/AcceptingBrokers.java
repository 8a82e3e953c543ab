import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.LeaderAndIsrRequestData;
import org.apache.kafka.common.message.LeaderAndIsrResponseData;
import org.apache.kafka.common.message.StopReplicaRequestData;
import org.apache.kafka.common.message.StopReplicaResponseData;
import org.apache.kafka.common.message.UpdateMetadataResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * Brokers of Apache Kafka, as a controller sees them: they accept each order at once, and remember when it came. Their
 * leaders let replicas that are being added join the ISR at once.
 *
 * <p>The argument is the number of brokers. The first line of output has the port for questions, then those of the
 * brokers. A line "since T" on the former, in microseconds since 1970, is answered by a line of JSON: for each api the
 * number of orders since then, of the partitions in them and of their bytes, and the time of the last answer. The
 * partitions of UpdateMetadata are not counted: reading them would take longer than all else here. A line
 * "controller PORT" has no answer: there the leaders ask for joins, and before it they ask nobody.
 */
public final class AcceptingBrokers {
    private static final List<ApiKeys> ORDERS =
            List.of(ApiKeys.LEADER_AND_ISR, ApiKeys.STOP_REPLICA, ApiKeys.UPDATE_METADATA);
    private static final int WARM_UP = 200;

    private static final Queue<Order> taken = new ConcurrentLinkedQueue<>();
    private static volatile int controllerPort;

    private record Order(long received, long answered, short api, int partitions, int bytes) {}

    private record Answer(Message body, int partitions) {}

    private interface Conversation {
        void hold(Socket socket) throws IOException;
    }

    public static void main(String[] arguments) throws Exception {
        warmUp();
        StringJoiner ports = new StringJoiner(" ");
        ports.add(Integer.toString(listen(AcceptingBrokers::answerQuestions)));
        for (int broker = 0; broker < Integer.parseInt(arguments[0]); broker++) {
            Leader leader = new Leader(broker);
            new Thread(leader::askForJoins).start();
            ports.add(Integer.toString(listen(socket -> takeOrders(leader, socket))));
        }
        System.out.println(ports);
        Thread.currentThread().join();
    }

    /** Accepts connections at any free port, each with a thread of its own; returns the port. */
    private static int listen(Conversation conversation) throws IOException {
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        new Thread(() -> {
            while (true) {
                try {
                    Socket socket = server.accept();
                    new Thread(() -> converse(conversation, socket)).start();
                } catch (IOException fault) {
                    throw new IllegalStateException(fault);
                }
            }
        }).start();
        return server.getLocalPort();
    }

    private static void converse(Conversation conversation, Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            conversation.hold(socket);
        } catch (EOFException | SocketException end) {
            // The controller has gone.
        } catch (IOException fault) {
            fault.printStackTrace();
        }
    }

    // --- orders ------------------------------------------------------------------------------------------------

    private static void takeOrders(Leader leader, Socket socket) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 20));
        OutputStream out = socket.getOutputStream();
        while (true) {
            byte[] payload = new byte[in.readInt()];
            in.readFully(payload);
            long received = now();
            ByteBuffer rest = ByteBuffer.wrap(payload);
            RequestHeader header = RequestHeader.parse(rest);
            Answer answer = answer(leader, header, rest);
            out.write(frame(header, answer.body));
            out.flush();
            if (ORDERS.contains(header.apiKey())) {
                taken.add(new Order(received, now(), header.apiKey().id, answer.partitions, payload.length));
            }
        }
    }

    private static Answer answer(Leader leader, RequestHeader header, ByteBuffer rest) throws IOException {
        ByteBufferAccessor body = new ByteBufferAccessor(rest);
        return switch (header.apiKey()) {
            case LEADER_AND_ISR -> accept(leader, new LeaderAndIsrRequestData(body, header.apiVersion()));
            case STOP_REPLICA -> accept(new StopReplicaRequestData(body, header.apiVersion()));
            case UPDATE_METADATA -> new Answer(new UpdateMetadataResponseData(), 0);
            case API_VERSIONS -> new Answer(versions(), 0);
            default -> throw new IOException("nobody should ask a broker for " + header.apiKey());
        };
    }

    private static Answer accept(Leader leader, LeaderAndIsrRequestData order) {
        LeaderAndIsrResponseData answer = new LeaderAndIsrResponseData();
        int count = 0;
        for (var topic : order.topicStates()) {
            var accepted = new LeaderAndIsrResponseData.LeaderAndIsrTopicError().setTopicId(topic.topicId());
            for (var state : topic.partitionStates()) {
                accepted.partitionErrors().add(new LeaderAndIsrResponseData.LeaderAndIsrPartitionError()
                        .setPartitionIndex(state.partitionIndex()));
                leader.letJoin(order.brokerEpoch(), topic.topicId(), state);
            }
            count += topic.partitionStates().size();
            answer.topics().add(accepted);
        }
        return new Answer(answer, count);
    }

    private static Answer accept(StopReplicaRequestData order) {
        StopReplicaResponseData answer = new StopReplicaResponseData();
        for (var topic : order.topicStates()) {
            for (var state : topic.partitionStates()) {
                answer.partitionErrors().add(new StopReplicaResponseData.StopReplicaPartitionError()
                        .setTopicName(topic.topicName())
                        .setPartitionIndex(state.partitionIndex()));
            }
        }
        return new Answer(answer, answer.partitionErrors().size());
    }

    private static ApiVersionsResponseData versions() {
        ApiVersionsResponseData offer = new ApiVersionsResponseData();
        for (ApiKeys api : ORDERS) {
            offer.apiKeys().add(new ApiVersionsResponseData.ApiVersion()
                    .setApiKey(api.id)
                    .setMinVersion(api.oldestVersion())
                    .setMaxVersion(api.latestVersion()));
        }
        return offer;
    }

    private static byte[] frame(RequestHeader header, Message body) {
        short version = header.apiKey().responseHeaderVersion(header.apiVersion());
        ByteBuffer head = MessageUtil.toByteBuffer(header.toResponseHeader().data(), version);
        ByteBuffer rest = MessageUtil.toByteBuffer(body, header.apiVersion());
        return framed(head, rest);
    }

    private static byte[] framed(ByteBuffer head, ByteBuffer rest) {
        int size = head.remaining() + rest.remaining();
        return ByteBuffer.allocate(Integer.BYTES + size).putInt(size).put(head).put(rest).array();
    }

    /** Has the code compiled before it counts, as it is in a broker that has run for a while. */
    private static void warmUp() throws IOException {
        LeaderAndIsrRequestData order = new LeaderAndIsrRequestData();
        for (int number = 0; number < 40; number++) {
            var topic = new LeaderAndIsrRequestData.LeaderAndIsrTopicState().setTopicName("topic-" + number);
            for (int partition = 0; partition < 50; partition++) {
                topic.partitionStates().add(new LeaderAndIsrRequestData.LeaderAndIsrPartitionState()
                        .setPartitionIndex(partition)
                        .setIsr(List.of(0, 1, 2))
                        .setReplicas(List.of(0, 1, 2)));
            }
            order.topicStates().add(topic);
        }
        short version = ApiKeys.LEADER_AND_ISR.latestVersion();
        RequestHeader header = new RequestHeader(ApiKeys.LEADER_AND_ISR, version, "warm-up", 0);
        ByteBuffer packed = MessageUtil.toByteBuffer(order, version);
        for (int run = 0; run < WARM_UP; run++) {
            frame(header, answer(new Leader(-1), header, packed.duplicate()).body);
        }
    }

    // --- joins -------------------------------------------------------------------------------------------------

    /** The replicas of one partition that are in its ISR, or are to be. */
    private record Joined(
            long brokerEpoch, Uuid topicId, LeaderAndIsrRequestData.LeaderAndIsrPartitionState state, Set<Integer> isr) {}

    /** The leaders of one broker. As Kafka's do, they ask for all that waits in one request, and for one at a time. */
    private static final class Leader {
        private static final short VERSION = ApiKeys.ALTER_PARTITION.latestVersion();

        private final int broker;
        private final BlockingQueue<Joined> waiting = new LinkedBlockingQueue<>();
        private Socket socket;

        private Leader(int broker) {
            this.broker = broker;
        }

        private void letJoin(
                long brokerEpoch, Uuid topicId, LeaderAndIsrRequestData.LeaderAndIsrPartitionState state) {
            Set<Integer> isr = new LinkedHashSet<>(state.isr());
            if (state.leader() == broker && isr.addAll(state.addingReplicas()) && controllerPort > 0) {
                waiting.add(new Joined(brokerEpoch, topicId, state, isr));
            }
        }

        private void askForJoins() {
            List<Joined> batch = new ArrayList<>();
            try {
                while (true) {
                    batch.add(waiting.take());
                    waiting.drainTo(batch);
                    ask(request(batch));
                    batch.clear();
                }
            } catch (InterruptedException | IOException fault) {
                fault.printStackTrace();
                System.exit(1);
            }
        }

        private AlterPartitionRequestData request(List<Joined> batch) {
            Map<Uuid, AlterPartitionRequestData.TopicData> topics = new LinkedHashMap<>();
            for (Joined joined : batch) {
                var partition = new AlterPartitionRequestData.PartitionData()
                        .setPartitionIndex(joined.state.partitionIndex())
                        .setLeaderEpoch(joined.state.leaderEpoch())
                        .setPartitionEpoch(joined.state.partitionEpoch());
                for (int id : joined.isr) {
                    partition.newIsrWithEpochs().add(new AlterPartitionRequestData.BrokerState().setBrokerId(id));
                }
                topics.computeIfAbsent(joined.topicId, id -> new AlterPartitionRequestData.TopicData().setTopicId(id))
                        .partitions().add(partition);
            }
            return new AlterPartitionRequestData()
                    .setBrokerId(broker)
                    .setBrokerEpoch(batch.get(batch.size() - 1).brokerEpoch)
                    .setTopics(new ArrayList<>(topics.values()));
        }

        private void ask(AlterPartitionRequestData request) throws IOException {
            RequestHeader header = new RequestHeader(ApiKeys.ALTER_PARTITION, VERSION, "broker-" + broker, 0);
            byte[] frame = framed(
                    MessageUtil.toByteBuffer(header.data(), header.headerVersion()),
                    MessageUtil.toByteBuffer(request, VERSION));
            ByteBuffer answer;
            try {
                answer = exchange(frame);
            } catch (IOException end) {
                // The connection was to a controller that has ended since.
                socket = null;
                answer = exchange(frame);
            }
            ResponseHeader.parse(answer, ApiKeys.ALTER_PARTITION.responseHeaderVersion(VERSION));
            report(new AlterPartitionResponseData(new ByteBufferAccessor(answer), VERSION));
        }

        private ByteBuffer exchange(byte[] frame) throws IOException {
            if (socket == null) {
                socket = new Socket(InetAddress.getByName("127.0.0.1"), controllerPort);
                socket.setTcpNoDelay(true);
            }
            socket.getOutputStream().write(frame);
            DataInputStream in = new DataInputStream(socket.getInputStream());
            byte[] payload = new byte[in.readInt()];
            in.readFully(payload);
            return ByteBuffer.wrap(payload);
        }

        /** Writes refusals to the log. A leader that is told a later state asks again. */
        private void report(AlterPartitionResponseData answer) {
            Map<Short, Integer> errors = new TreeMap<>();
            errors.put(answer.errorCode(), 1);
            answer.topics().forEach(topic ->
                    topic.partitions().forEach(one -> errors.merge(one.errorCode(), 1, Integer::sum)));
            errors.remove((short) 0);
            if (!errors.isEmpty()) {
                System.err.println("broker " + broker + ": refused joins, by error: " + errors);
            }
        }
    }

    // --- questions ---------------------------------------------------------------------------------------------

    private static void answerQuestions(Socket socket) throws IOException {
        var in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] question = line.split(" ");
            if (question[0].equals("controller")) {
                controllerPort = Integer.parseInt(question[1]);
                continue;
            }
            String answer = sums(Long.parseLong(question[1])) + "\n";
            socket.getOutputStream().write(answer.getBytes(StandardCharsets.US_ASCII));
        }
    }

    private static String sums(long since) {
        var found = new TreeMap<Short, long[]>();
        for (Order order : taken) {
            if (order.received >= since) {
                long[] sums = found.computeIfAbsent(order.api, api -> new long[4]);
                sums[0]++;
                sums[1] += order.partitions;
                sums[2] += order.bytes;
                sums[3] = Math.max(sums[3], order.answered);
            }
        }
        StringJoiner members = new StringJoiner(",", "{", "}");
        found.forEach((api, sums) -> members.add("\"%d\":[%d,%d,%d,%d]".formatted(api, sums[0], sums[1], sums[2], sums[3])));
        return members.toString();
    }

    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }
}
