package operation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/migrate"
	"parley/cmd/parley/hometest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// A moving is a bot in a home, together with the Redis and the PostgreSQL to which it is migrated.
type moving struct {
	*parleytest.World
	fleet       *parleytest.World // the same bot after the migration
	redis, post string
	prefix      string

	log      map[string][]sessions.Entry // the entries, by session
	pairings []channels.Pairing
}

// newMoving makes a bot with a past: conversations, pairings, dead letters, and unanswered messages. Each of four chats
// has three unanswered messages, which two people send in turn, because several messages of one person in a row would
// be one turn.
func newMoving(t *testing.T) *moving {
	t.Helper()
	place := os.Getenv("PARLEY_TEST_REDIS_URL")
	if place == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	m := &moving{redis: place, post: sqldbtest.New(t), prefix: "test-" + rand.Text()}
	m.World = parleytest.New(t, parleytest.EchoModel, "\n[agents.defaults]\nqueue = \"followup\"\n")
	m.leadTo("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n", m.redis, m.prefix, m.post)
	p := m.Serve()
	for chat := int64(2); chat < 6; chat++ {
		m.Telegram.Say(chat, chat, "hello")
	}
	for chat := int64(2); chat < 6; chat++ {
		m.WaitSaid(chat, 1)
	}
	p.Stop()
	m.fill(hometest.Open(t, m.Home))
	return m
}

// leadTo writes the configuration of the bot after the migration: the home's configuration with the formatted text
// appended.
func (m *moving) leadTo(format string, args ...any) {
	m.T.Helper()
	text, err := os.ReadFile(m.File)
	if err != nil {
		m.T.Fatal(err)
	}
	there := *m.World
	there.File = filepath.Join(m.T.TempDir(), "fleet.toml")
	if err := os.WriteFile(there.File, fmt.Appendf(text, format, args...), 0o600); err != nil {
		m.T.Fatal(err)
	}
	m.fleet = &there
}

// fill adds conversations, pairings and messages to a home, and closes it.
func (m *moving) fill(h *hometest.Home) {
	m.T.Helper()
	ctx := m.T.Context()
	defer h.Close()
	h.Say("hopeless", "9", "9", "nobody can answer this")
	lease, err := h.Bus.Claim(ctx, bus.InboundTopic)
	parleytest.Must(m.T, err)
	mail, err := lease.Mail(ctx, 0)
	parleytest.Must(m.T, err)
	parleytest.Must(m.T, lease.Settle(ctx, bus.End{Dead: mail[0].Seq, Reason: "it was in vain"}))
	for n := range 3 {
		for chat := 2; chat < 6; chat++ {
			h.Say(fmt.Sprintf("old-%d-%d", chat, n), fmt.Sprint(chat+10*(n%2)), fmt.Sprint(chat), fmt.Sprintf("number %d", n))
		}
	}
	out := bus.Outbound{ID: "notice", To: bus.Address{Channel: "telegram", Chat: "7"}, Text: "by the way", At: time.Now()}
	body, err := out.Encode()
	parleytest.Must(m.T, err)
	parleytest.Must(m.T, h.Bus.Publish(ctx, bus.OutboundTopic("telegram"), bus.Message{ID: out.ID, Key: out.To.String(), Body: body}))
	_, err = h.Book.RequestPairing(ctx, "telegram:5000", "telegram:5000")
	parleytest.Must(m.T, err)
	m.pairings, err = h.Book.Pairings(ctx)
	parleytest.Must(m.T, err)
	m.log = readLogs(m.T, h.Store)
}

// readLogs reads the log of every session.
func readLogs(t *testing.T, s *sqlstore.Store) map[string][]sessions.Entry {
	t.Helper()
	list, err := s.List(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	logs := map[string][]sessions.Entry{}
	for _, one := range list {
		for e, err := range s.Read(t.Context(), one.Key, 0) {
			if err != nil {
				t.Fatal(err)
			}
			logs[one.Key] = append(logs[one.Key], e)
		}
	}
	return logs
}

func (m *moving) migrate(env ...string) (stdout, stderr string, code int) {
	m.T.Helper()
	cmd := m.Command("migrate", "--to", m.fleet.File)
	cmd.Env = append(cmd.Env, env...)
	var out, errs parleytest.SyncBuffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the exit code is returned below
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// refused checks that a command fails because of the configuration and prints these words.
func refused(t *testing.T, w *parleytest.World, words string, args ...string) {
	t.Helper()
	if _, stderr, code := w.Run(args...); code != parleytest.ExitConfig || !strings.Contains(stderr, words) {
		t.Errorf("%v: exit code %d, saying %q; want %d and %q", args, code, stderr, parleytest.ExitConfig, words)
	}
}

// arrived checks that the databases contain everything after the migration, and that the waiting messages are answered
// once, in order.
func (m *moving) arrived() {
	m.T.Helper()
	store, err := sqlstore.Open(m.T.Context(), m.post)
	if err != nil {
		m.T.Fatal(err)
	}
	defer store.Close()
	if got := readLogs(m.T, store); !reflect.DeepEqual(got, m.log) || len(got) == 0 {
		m.T.Errorf("the logs are not the same: %d sessions, and there were %d", len(got), len(m.log))
	}
	book, err := sqlbook.Open(m.T.Context(), m.post)
	if err != nil {
		m.T.Fatal(err)
	}
	defer book.Close()
	if got, err := book.Pairings(m.T.Context()); err != nil || !reflect.DeepEqual(got, m.pairings) || len(got) == 0 {
		m.T.Errorf("pairings are %+v, %v; want %+v", got, err, m.pairings)
	}
	m.bus(func(ctx context.Context, b *redisbus.Bus) {
		dead, err := b.DeadLetters(ctx, bus.InboundTopic, "", 10)
		if err != nil || len(dead) != 1 || dead[0].Message.ID != "hopeless" || dead[0].Reason != "it was in vain" {
			m.T.Errorf("dead letters are %+v, %v", dead, err)
		}
		// The platform delivers messages again that were already settled.
		key := hometest.Key(m.T, "9")
		if err := b.Publish(ctx, bus.InboundTopic, bus.Message{ID: "hopeless", Key: key, Body: []byte("{}")}); err != nil {
			m.T.Error(err)
		}
		if d, err := b.Depth(ctx, bus.InboundTopic); err != nil || d.Waiting != 12 || d.Leased != 0 {
			m.T.Errorf("there wait %+v, %v; want 12 messages", d, err)
		}
	})
	p := m.fleet.Serve()
	for chat := int64(2); chat < 6; chat++ {
		m.WaitSaid(chat, 4)
	}
	m.Telegram.Say(2, 2, "the last")
	m.WaitSaid(2, 5)
	m.WaitSaid(7, 1)
	m.bus(func(ctx context.Context, b *redisbus.Bus) {
		for _, topic := range []bus.Topic{bus.InboundTopic, bus.OutboundTopic("telegram")} {
			parleytest.WaitFor(m.T, "no mail to be left", func() bool {
				d, err := b.Depth(ctx, topic)
				return err == nil && d.Waiting+d.Leased == 0
			})
		}
	})
	p.Kill()
	for chat := int64(2); chat < 6; chat++ {
		want := []string{"you said hello", "you said number 0", "you said number 1", "you said number 2"}
		if chat == 2 {
			want = append(want, "you said the last")
		}
		if got := parleytest.Texts(m.Telegram.Sent(chat)); !slices.Equal(got, want) {
			m.T.Errorf("chat %d was told %q, want %q", chat, got, want)
		}
	}
	if got := parleytest.Texts(m.Telegram.Sent(7)); !slices.Equal(got, []string{"by the way"}) {
		m.T.Errorf("chat 7 was told %q", got)
	}
}

// bus opens the migrated bus and passes it to a function.
func (m *moving) bus(do func(context.Context, *redisbus.Bus)) {
	m.T.Helper()
	b, err := redisbus.Open(m.T.Context(), redisbus.Config{URL: m.redis, Prefix: m.prefix})
	if err != nil {
		m.T.Fatal(err)
	}
	do(m.T.Context(), b)
	if err := b.Close(); err != nil {
		m.T.Error(err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	refused(t, m.fleet, "parley migrate", "serve")
	stdout, stderr, code := m.migrate()
	if code != parleytest.ExitDone || !strings.Contains(stdout, "4 sessions") || !strings.Contains(stdout, "13 messages waiting in 5 mailboxes, 1 dead letters") {
		t.Fatalf("exit code %d, saying %s%s", code, stdout, stderr)
	}
	m.arrived()
	refused(t, m.World, "was moved to", "serve")
	if _, stderr, code := m.migrate(); code != parleytest.ExitFailed || !strings.Contains(stderr, "nothing to move") {
		t.Errorf("a second time: exit code %d, saying %q", code, stderr)
	}
}

func TestMigrateKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"noted", "before the store", "before the book", "message/8", "before the known ids", "before the mail is compared", "recorded",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t)
			if _, stderr, code := m.migrate("PARLEY_KILL_AT=" + at); code != -1 {
				t.Fatalf("it was not killed: exit code %d, saying %s", code, stderr)
			}
			refused(t, m.World, "isn't finished", "serve")
			if at == "message/8" {
				elsewhere := *m.fleet
				elsewhere.Home = t.TempDir()
				refused(t, &elsewhere, "hasn't finished moving", "serve")
			}
			if stdout, stderr, code := m.migrate(); code != parleytest.ExitDone {
				t.Fatalf("exit code %d, saying %s%s", code, stdout, stderr)
			}
			m.arrived()
		})
	}
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	p := m.Serve()
	parleytest.WaitFor(t, "serve to be up", func() bool { return strings.Contains(p.Stderr.String(), `"serving"`) })
	if _, stderr, code := m.migrate(); code != parleytest.ExitFailed || !strings.Contains(stderr, fmt.Sprintf("the folder %s is in use by process %d: stop it first", m.Home, p.Cmd.Process.Pid)) {
		t.Errorf("beside a server: exit code %d, saying %q", code, stderr)
	}
	p.Kill()
	refused(t, m.World, "store.url", "migrate", "--to", m.File)
	occupied := func(what, words string) {
		t.Helper()
		if _, stderr, code := m.migrate(); code != parleytest.ExitFailed || !strings.Contains(stderr, words) {
			t.Errorf("%s: exit code %d, saying %q", what, code, stderr)
		}
	}
	m.bus(func(ctx context.Context, b *redisbus.Bus) {
		occupied("beside a process of the fleet", "other processes")
		if err := b.Publish(ctx, bus.InboundTopic, bus.Message{ID: "m", Key: "k"}); err != nil {
			t.Error(err)
		}
	})
	occupied("where mail is", "its own [bus] prefix")
	store, err := sqlstore.Open(t.Context(), m.post)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Open(t.Context(), hometest.Key(t, "1"), 1); err != nil {
		t.Fatal(err)
	}
	occupied("where sessions are", "name an empty database")
	// None of these commands has changed the home.
	if _, err := os.Stat(filepath.Join(m.Home, "moved.json")); err == nil {
		t.Error("the home is noted as moved")
	}
	m.Serve()
	m.WaitSaid(2, 4)
}

func TestMigrateAsJSON(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	stdout, stderr, code := m.Run("--json", "migrate", "--to", m.fleet.File)
	var r struct {
		*migrate.Report
		Next []string `json:"next"`
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != parleytest.ExitDone {
		t.Fatalf("exit code %d, saying %q %q: %v", code, stdout, stderr, err)
	}
	if r.Rows["sessions"] != 4 || r.Mail.Messages != 13 || r.Mail.Dead != 1 || r.Mail.Known < 14 || len(r.Next) == 0 {
		t.Errorf("it reports %+v", r)
	}
}

func TestMigrateInTwoSteps(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	step := func(words string) {
		t.Helper()
		if stdout, stderr, code := m.migrate(); code != parleytest.ExitDone || !strings.Contains(stdout, words) {
			t.Fatalf("exit code %d, saying %s%s, want %q", code, stdout, stderr, words)
		}
	}
	both := m.fleet
	m.leadTo("[store]\nurl = %q\n", m.post)
	step("delete sessions.db once")
	refused(t, m.World, "was moved to", "serve")
	m.fleet = both
	step("13 messages")
	m.arrived()
}

// If only the store and the book are migrated, the waiting messages move to a separate database for the bus, even if
// the process is killed at any step, and are answered once. The same holds for a home of the previous release.
func TestMigrateLeavesTheMailAtHome(t *testing.T) {
	t.Parallel()
	for at, older := range map[string]bool{
		"noted": false, "before the book": false, "before the mail is left": false, "split:copied": false, "split:removed": false, "recorded": false,
		"takeover:copied": true, "before the store": true,
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			m := newMovingAlone(t, older)
			if _, stderr, code := m.migrate("PARLEY_KILL_AT=" + at); code != -1 {
				t.Fatalf("it was not killed: exit code %d, saying %s", code, stderr)
			}
			if stdout, stderr, code := m.migrate(); code != parleytest.ExitDone {
				t.Fatalf("exit code %d, saying %s%s", code, stdout, stderr)
			}
			store, err := sqlstore.Open(t.Context(), m.post)
			parleytest.Must(t, err)
			defer store.Close()
			if got := readLogs(t, store); !reflect.DeepEqual(got, m.log) || len(got) == 0 {
				t.Errorf("the logs are not the same: %d sessions, and there were %d", len(got), len(m.log))
			}
			m.checkMailAnswered(m.fleet)
			refused(t, m.World, "was moved to", "serve")
			b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(m.Home, "bus.db")})
			parleytest.Must(t, err)
			defer b.Close()
			if d, err := b.Depth(t.Context(), bus.InboundTopic); err != nil || d.Waiting != 0 || d.Dead != 1 {
				t.Errorf("there are %+v, %v", d, err)
			}
		})
	}
}

// If such a migration is given up, the home still has all its messages.
func TestMigrationGivenUpLosesNoMail(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"split:copied", "split:removed"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			m := newMovingAlone(t, false)
			if _, stderr, code := m.migrate("PARLEY_KILL_AT=" + at); code != -1 {
				t.Fatalf("it was not killed: exit code %d, saying %s", code, stderr)
			}
			parleytest.Must(t, os.Remove(filepath.Join(m.Home, "moved.json")))
			m.checkMailAnswered(m.World)
			if n := m.Count("sessions.db", "SELECT count(*) FROM dead"); n != 1 {
				t.Errorf("there are %d dead letters", n)
			}
		})
	}
}

// newMovingAlone makes a bot with a past, whose store and book are migrated to PostgreSQL without its messages.
func newMovingAlone(t *testing.T, older bool) *moving {
	t.Helper()
	m := newHomeBefore(t)
	m.post = sqldbtest.New(t)
	m.leadTo("[store]\nurl = %q\n", m.post)
	if !older {
		hometest.Open(t, m.Home).Close()
	}
	return m
}

// checkMailAnswered runs the bot and checks that the waiting messages are answered once, in order.
func (m *moving) checkMailAnswered(w *parleytest.World) {
	m.T.Helper()
	p := w.Serve()
	for chat := int64(2); chat < 6; chat++ {
		m.WaitSaid(chat, 3)
	}
	m.WaitSaid(7, 1)
	m.Telegram.Say(2, 2, "the last")
	m.WaitSaid(2, 4)
	p.Stop()
	for chat := int64(2); chat < 6; chat++ {
		want := []string{"you said number 0", "you said number 1", "you said number 2"}
		if chat == 2 {
			want = append(want, "you said the last")
		}
		if got := parleytest.Texts(m.Telegram.Sent(chat)); !slices.Equal(got, want) {
			m.T.Errorf("chat %d was told %q, want %q", chat, got, want)
		}
	}
	if got := parleytest.Texts(m.Telegram.Sent(7)); !slices.Equal(got, []string{"by the way"}) {
		m.T.Errorf("chat 7 was told %q", got)
	}
}

// If the Compose file for one process is used with the volumes of a fleet, it starts no second bot: serve exits with
// the code for a wrong configuration, and names the right file.
func TestServeInAFleetsHome(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	raw, err := json.Marshal(map[string]string{"store": "postgres://postgres:5432/parley", "bus": "redis://redis:6379", "config": w.File})
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(filepath.Join(w.Home, "fleet.json"), raw, 0o600))
	if _, stderr, code := w.Run("serve"); code != parleytest.ExitConfig || !strings.Contains(stderr, "compose.fleet.yaml") || !strings.Contains(stderr, "postgres://postgres:5432/parley") {
		t.Errorf("code %d: %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(w.Home, "sessions.db")); err == nil {
		t.Error("it has begun data of its own")
	}
}
