// SPDX-License-Identifier: Apache-2.0
// The Java client against a broker: produces with a codec and acks, reads back by assignment and compares.
//
// Usage: ClientCheck BOOTSTRAP TOPIC CODEC ACKS RECORDS [TEXT-FILE]. With a text file each record's value is one of its lines.
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class ClientCheck {
    static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static List<ProducerRecord<byte[], byte[]>> records(String topic, int count, String file) throws Exception {
        List<ProducerRecord<byte[], byte[]>> all = new ArrayList<>();
        List<String> lines = file == null ? null : Files.readAllLines(Path.of(file));
        for (int i = 0; i < count; i++) {
            byte[] key = lines != null || i % 7 == 0 ? null : i % 7 == 1 ? new byte[0] : bytes("key-" + i);
            byte[] value = lines != null ? bytes(lines.get(i % lines.size()))
                : i % 11 == 0 ? null : i % 11 == 1 ? new byte[0] : bytes("value-" + i + " ").clone();
            ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(topic, 0, key, value);
            if (lines == null && i % 13 == 0) {
                r.headers().add("h", bytes("" + i));
                r.headers().add("null", null);
            }
            all.add(r);
        }
        return all;
    }

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1], codec = args[2], acks = args[3];
        int count = Integer.parseInt(args[4]);
        List<ProducerRecord<byte[], byte[]>> sent = records(topic, count, args.length > 5 ? args[5] : null);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
        }
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("key.serializer", ByteArraySerializer.class);
        p.put("value.serializer", ByteArraySerializer.class);
        p.put("compression.type", codec);
        p.put("acks", acks);
        if (!acks.equals("all"))
            p.put("enable.idempotence", "false");
        AtomicReference<Exception> error = new AtomicReference<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p)) {
            for (ProducerRecord<byte[], byte[]> r : sent)
                producer.send(r, (m, e) -> {
                    if (e != null)
                        error.set(e);
                });
            producer.flush();
        }
        if (error.get() != null)
            throw error.get();
        Properties c = new Properties();
        c.put("bootstrap.servers", bootstrap);
        c.put("key.deserializer", ByteArrayDeserializer.class);
        c.put("value.deserializer", ByteArrayDeserializer.class);
        int seen = 0;
        long end = System.currentTimeMillis() + 60000;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(c)) {
            TopicPartition tp = new TopicPartition(topic, 0);
            consumer.assign(List.of(tp));
            consumer.seekToBeginning(List.of(tp));
            while (seen < count) {
                if (System.currentTimeMillis() > end)
                    throw new IllegalStateException("only " + seen + " of " + count + " records came back");
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofSeconds(1))) {
                    ProducerRecord<byte[], byte[]> want = sent.get(seen);
                    Header[] a = want.headers().toArray(), b = r.headers().toArray();
                    if (r.offset() != seen || !Arrays.equals(want.key(), r.key()) || !Arrays.equals(want.value(), r.value()) || !Objects.equals(Arrays.asList(a), Arrays.asList(b)))
                        throw new IllegalStateException("record " + seen + " differs");
                    seen++;
                }
            }
            if (consumer.endOffsets(List.of(tp)).get(tp) != count)
                throw new IllegalStateException("end offset is " + consumer.endOffsets(List.of(tp)));
        }
        System.out.println("equal " + seen);
    }
}
