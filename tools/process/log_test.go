package process

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/tools/testlog"
)

// A Log holds the newest lines in so many bytes, and says when some of those that are asked for are gone.
func TestLogIsBounded(t *testing.T) {
	l := NewLog(10 << 10)
	log := slog.New(l.Beside(slog.NewTextHandler(new(testlog.Buffer), nil)))
	_, begin, _ := l.Newest(slog.LevelDebug, 0, 1)
	for i := range 1000 {
		log.Info("line", slog.Int("n", i), slog.String("padding", strings.Repeat("x", 100)))
	}
	lines, last, more := l.Newest(slog.LevelDebug, 0, 10_000)
	size := 0
	for i, line := range lines {
		if size += line.size(); i > 0 && line.ID != lines[i-1].ID+1 {
			t.Errorf("line %d comes after line %d", line.ID, lines[i-1].ID)
		}
	}
	if size > 10<<10 || size < 9<<10 || more || last != begin+1000 || !strings.Contains(string(lines[len(lines)-1].Fields), `"n":999,`) {
		t.Errorf("%d lines with %d bytes, the newest %d after %d; %t", len(lines), size, last, begin, more)
	}
	oldest := lines[0].ID
	if _, _, _, ok := l.After(oldest-2, slog.LevelDebug, 1); ok {
		t.Error("what is gone is said to be held")
	}
	if _, _, _, ok := l.After(last+1, slog.LevelDebug, 1); ok {
		t.Error("what has not come is said to be held")
	}
	if got, _, _, ok := l.After(oldest-1, slog.LevelDebug, 2); !ok || len(got) != 2 || got[0].ID != oldest {
		t.Errorf("the oldest are %+v, %t", got, ok)
	}
	if got, _, more := l.Newest(slog.LevelDebug, oldest+2, 1); len(got) != 1 || got[0].ID != oldest+1 || !more {
		t.Errorf("the one before is %+v, %t", got, more)
	}
	long := slog.NewRecord(time.Now(), slog.LevelWarn, strings.Repeat("ä", longestMessage), 0)
	long.AddAttrs(slog.String("long", strings.Repeat("x", longestFields)))
	if err := log.Handler().Handle(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := l.Newest(slog.LevelWarn, 0, 1); len(got) != 1 || got[0].size() > longestMessage+lineOverhead+8 || string(got[0].Fields) != "{}" {
		t.Errorf("a long line is %.300v", got)
	}
	log.Info("short", slog.String("long", strings.Repeat("x", 1<<20)))
	if held := l.form.Cap(); held > 4*longestFields {
		t.Errorf("%d bytes are held for the next line", held)
	}
}

// Lines have the fields of their loggers, are of the levels that are logged, and wake whoever waits for them.
func TestLogHasWhatIsLogged(t *testing.T) {
	l := NewLog(1 << 20)
	log := slog.New(l.Beside(slog.NewTextHandler(new(testlog.Buffer), nil)))
	_, begin, _ := l.Newest(slog.LevelDebug, 0, 1)
	_, _, fresh, ok := l.After(begin, slog.LevelDebug, 9)
	log.Debug("not logged")
	select {
	case <-fresh:
		t.Error("a line that is not logged has come")
	default:
	}
	log.With(slog.String("a", "1")).WithGroup("g").Warn("hear", slog.Duration("took", time.Second), slog.Int("n", 2))
	<-fresh
	log.Info("more")
	got, last, _, more := l.After(begin, slog.LevelWarn, 9)
	if !ok || !more || len(got) != 1 || got[0].Message != "hear" || string(got[0].Fields) != `{"a":"1","g":{"took":"1s","n":2}}` || last != begin+2 {
		t.Errorf("held are %+v up to %d after %d", got, last, begin)
	}
}
