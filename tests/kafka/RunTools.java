import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs tools of Kafka's one after the other, which spares each of them the start of a JVM.
 *
 * A line of standard input is a command: the tool's class, what it reads, and its arguments, all but the first in
 * base64 after an equals sign. The answer is a line with its exit code, and what it has written, in base64.
 */
public class RunTools {
    /** What ends a tool where a process of its own would end. */
    static class Ended extends RuntimeException {
        Ended(int code) {
            super("exit " + code, null, false, false);
        }
    }

    /** The first exit code counts, and what is written before it: a tool may take its own end for a failure. */
    static Integer code;

    static ByteArrayOutputStream written;
    static byte[] said;

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        InputStream commands = System.in;
        Exit.setExitProcedure((status, message) -> end(status));
        Exit.setHaltProcedure((status, message) -> end(status));
        BufferedReader lines = new BufferedReader(new InputStreamReader(commands));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String[] arguments = new String[words.length - 2];
            for (int place = 0; place < arguments.length; place++) {
                arguments[place] = new String(decoded(words[place + 2]), StandardCharsets.UTF_8);
            }
            int status = run(Class.forName(words[0]), decoded(words[1]), arguments);
            answers.println(status + " =" + Base64.getEncoder().encodeToString(said));
            answers.flush();
        }
        // Threads of a tool's clients would keep the JVM.
        Runtime.getRuntime().halt(0);
    }

    static int run(Class<?> tool, byte[] input, String[] arguments) throws Exception {
        written = new ByteArrayOutputStream();
        PrintStream out = System.out, err = System.err, both = new PrintStream(written, true);
        InputStream in = System.in;
        Method main = tool.getMethod("main", String[].class);
        System.setOut(both);
        System.setErr(both);
        System.setIn(new ByteArrayInputStream(input));
        code = null;
        try {
            scala.Console.withOut(both, () -> scala.Console.withErr(both, () -> call(main, arguments)));
        } catch (Ended ended) {
            // Its code is known.
        } catch (Throwable thrown) {
            thrown.printStackTrace(both);
            take(1);
        } finally {
            System.setOut(out);
            System.setErr(err);
            System.setIn(in);
        }
        take(0);
        return code;
    }

    static Object call(Method main, String[] arguments) {
        try {
            return main.invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            throw RunTools.<RuntimeException>unchecked(thrown.getCause());
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    @SuppressWarnings("unchecked")
    static <T extends Throwable> T unchecked(Throwable thrown) throws T {
        throw (T) thrown;
    }

    static void end(int status) {
        take(status);
        throw new Ended(status);
    }

    static void take(int status) {
        if (code == null) {
            code = status;
            said = written.toByteArray();
        }
    }

    static byte[] decoded(String word) {
        return Base64.getDecoder().decode(word.substring(1));
    }
}
