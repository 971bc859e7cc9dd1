package org.example.shapes;

import java.util.*;

/** class Commented {} */
@SuppressWarnings({"unchecked", "class Hidden {"})
public abstract class Shapes<T extends Comparable<T>> extends Base<T> implements Iterable<T>, Runnable {
    public static final int MAX_SIDES = 12;
    private static final Map<String, Integer> NAMES = new HashMap<>() {{
        put("}", 1);
    }};
    private int count = 0;
    protected List<T> items = new ArrayList<>();
    static final String TEXT = """
        void quoted() {
        """;

    static {
        System.out.println("static {");
    }

    public Shapes(String name, int count) throws IOException {
        this.count = count;
    }

    @Override
    public Iterator<T> iterator() {
        return new Iterator<T>() {
            public boolean hasNext() { return false; }
            public T next() { return null; }
        };
    }

    @Override public void run() {
        Runnable r = () -> { count++; };
        for (int i = 0; i < 3; i++) { r.run(); }
        char c = '{';
    }

    public abstract double area(int depth);

    protected static <K, V extends Comparable<K>> Map<K, V> build(Map<? super K, V[]> from, final int... sizes) {
        return null;
    }

    synchronized int[] sizes() { return new int[]{1, 2}; }

    enum Color {
        RED("r"), GREEN("g") {
            @Override String code() { return "G"; }
        };

        private final String code;

        Color(String code) { this.code = code; }

        String code() { return code; }
    }

    interface Visitor<R> {
        int DEPTH = 3;
        R visit(Shapes<?> shape);
        default void done() {}
    }

    @interface Marked {
        String value() default "";
    }

    static class Point {
        final double x, y;
        Point(double x, double y) { this.x = x; this.y = y; }
        double length() {
            class Local {}
            return Math.sqrt(x * x + y * y);
        }
    }
}

class Helper {
    void help() {}
}
