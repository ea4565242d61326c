// SPDX-License-Identifier: Apache-2.0
// The Java client at the command of a test: one process writes and reads topics as lines on standard input say.
//
// Usage: ClientPeer BOOTSTRAP, then a line a command:
//   write TOPIC FORM FILE NAME=VALUE...    sends the records of FILE with these producer properties; "ok COUNT"
//   read TOPIC FORM FILE COUNT             reads COUNT records from the beginning of partition 0 into FILE; "ok END-OFFSET"
// FORM text: a record a line, its value. FORM records: "KEY VALUE HEADER=VALUE..." a line, all in hex, "-" for null.
// Offsets must be dense from 0. An answer that does not begin with "ok" is an error.
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class ClientPeer {
    static final HexFormat HEX = HexFormat.of();

    static byte[] unhex(String s) {
        return s.equals("-") ? null : HEX.parseHex(s);
    }

    static String hex(byte[] b) {
        return b == null ? "-" : HEX.formatHex(b);
    }

    static byte[] line(InputStream in, ByteArrayOutputStream buffer) throws Exception {
        buffer.reset();
        int c = in.read();
        if (c < 0)
            return null;
        for (; c >= 0 && c != '\n'; c = in.read())
            buffer.write(c);
        return buffer.toByteArray();
    }

    static ProducerRecord<byte[], byte[]> record(String topic, boolean text, byte[] line) {
        if (text)
            return new ProducerRecord<>(topic, 0, null, line);
        String[] words = new String(line, StandardCharsets.US_ASCII).split(" ", -1);
        ProducerRecord<byte[], byte[]> r = new ProducerRecord<>(topic, 0, unhex(words[0]), unhex(words[1]));
        for (int i = 2; i < words.length; i++) {
            String[] h = words[i].split("=", 2);
            r.headers().add(new String(unhex(h[0]), StandardCharsets.UTF_8), unhex(h[1]));
        }
        return r;
    }

    static long write(String bootstrap, String[] words) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("key.serializer", ByteArraySerializer.class);
        p.put("value.serializer", ByteArraySerializer.class);
        for (int i = 4; i < words.length; i++)
            p.put(words[i].split("=", 2)[0], words[i].split("=", 2)[1]);
        AtomicReference<Exception> error = new AtomicReference<>();
        long count = 0;
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p);
             InputStream in = new BufferedInputStream(Files.newInputStream(Path.of(words[3])), 1 << 20)) {
            ByteArrayOutputStream buffer = new ByteArrayOutputStream();
            for (byte[] line; (line = line(in, buffer)) != null; count++)
                producer.send(record(words[1], words[2].equals("text"), line), (m, e) -> {
                    if (e != null)
                        error.set(e);
                });
            producer.flush();
        }
        if (error.get() != null)
            throw error.get();
        return count;
    }

    static long read(String bootstrap, String[] words) throws Exception {
        Properties c = new Properties();
        c.put("bootstrap.servers", bootstrap);
        c.put("key.deserializer", ByteArrayDeserializer.class);
        c.put("value.deserializer", ByteArrayDeserializer.class);
        boolean text = words[2].equals("text");
        long count = Long.parseLong(words[4]), seen = 0, end = System.currentTimeMillis() + 60000;
        TopicPartition tp = new TopicPartition(words[1], 0);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(c);
             OutputStream out = new BufferedOutputStream(Files.newOutputStream(Path.of(words[3])), 1 << 20)) {
            consumer.assign(List.of(tp));
            consumer.seekToBeginning(List.of(tp));
            while (seen < count) {
                if (System.currentTimeMillis() > end)
                    throw new IllegalStateException("only " + seen + " of " + count + " records came");
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofSeconds(1))) {
                    if (r.offset() != seen)
                        throw new IllegalStateException("record " + seen + " has offset " + r.offset());
                    if (text) {
                        out.write(r.value());
                    } else {
                        StringBuilder line = new StringBuilder(hex(r.key())).append(' ').append(hex(r.value()));
                        for (Header h : r.headers())
                            line.append(' ').append(hex(h.key().getBytes(StandardCharsets.UTF_8))).append('=').append(hex(h.value()));
                        out.write(line.toString().getBytes(StandardCharsets.US_ASCII));
                    }
                    out.write('\n');
                    seen++;
                }
            }
            return consumer.endOffsets(List.of(tp)).get(tp);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            String[] words = line.split("\t");
            String answer;
            try {
                answer = "ok " + (words[0].equals("write") ? write(args[0], words) : read(args[0], words));
            } catch (Exception e) {
                answer = e.toString().replace('\n', ' ');
            }
            System.out.println("> " + answer);
        }
    }
}
