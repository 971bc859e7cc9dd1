package operation

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// keptTables says for each table what each operation does with it. Whoever adds a table adds a line here, and makes the
// line true. Backup and restore copy the files; migrate copies each table of the store and the book, and the bus's
// messages.
func keptTables() map[string]string {
	const (
		ids     = "forget, retention, export: it holds ids, times and numbers, nothing that somebody said"
		mail    = "forget: by sender and session; retention: dead letters alone; export: not in the log yet"
		sent    = "forget: by person and session; retention: by age; export: the log has what was said"
		words   = "forget and retention: by entry, in the same transaction; migrate: made anew; export: it holds hashes of words that the log has"
		parties = "forget: kept, revoke is for that; retention: kept, it is who may talk; export: it is no session's"
	)
	return map[string]string{
		"sessions.db message": mail, "sessions.db dead": mail, "sessions.db seen": ids, "sessions.db meta": ids, "sessions.db pause": ids,
		"sessions.db parley_schema": "none: it has the versions of the tables",
		"sessions.db sessions":      "forget and retention: by session; export: its key is what is exported",
		"sessions.db entries":       "forget: by session and person; retention: by age; export: every entry",
		"sessions.db audit":         "forget: arguments and person; retention: by age; export: GET /v1/audit",
		"sessions.db jobs":          "forget: by session and person; retention: by age; export: the log has their calls and ends",
		"sessions.db past_usage":    "forget, retention, export: numbers of what was erased, by day, agent and model",
		"sessions.db used_hours":    "forget and retention: loses what is erased, in the same transaction, which past_usage has then; migrate: made anew; export: sums by hour, agent and model",
		"sessions.db used_days":     "forget and retention: loses what is erased, and so the person, in the same transaction; migrate: made anew; export: sums by day, person, agent and model",
		"sessions.db used_until":    "none: it has a time",
		"sessions.db activity":      "forget and export: sums of all by hour, which name no person and no session; retention: they go after 90 days",
		"sessions.db rated_calls":   "forget: by person; retention: they go after a day; export: numbers of calls, whose ids the log has",
		"sessions.db counters":      "forget: by person and session; retention and export: sums of micro-dollars, which go after a week, and those of months after two",
		"sessions.db charges":       "forget: by person and session; retention and export: sums of micro-dollars that are set aside for calls under way, which go within an hour after a kill",
		"sessions.db spending":      "forget: loses the person; retention and export: sums of tokens",
		"sessions.db reservations":  "forget: loses the person and session; retention and export: sums of tokens",
		"sessions.db schedules":     "forget: by person and session; retention: kept until it is over or cancelled; export: those of the person",
		"sessions.db tasks":         "forget: by session and person, with the sessions of sub-agents; retention: by age; export: the logs have what was asked and reported",
		"sessions.db nodes":         "none: devices with their public keys, which no person is named in, and what they can do; backup: with the rest, so a restored home accepts nodes that were revoked later",
		"sessions.db node_codes":    ids,
		"sessions.db node_calls":    "forget: by session and person; retention: by age, once nobody waits for them; export: the log has what was asked and returned",
		"sessions.db node_waits":    "forget: by session and person; retention: once the time is over; export: the log has what is waited for",
		"sessions.db time_zones":    "forget: by session; retention and export: it holds a name of a zone",
		"sessions.db erased":        ids, "sessions.db graves": ids, "sessions.db purges": ids,
		"sessions.db entry_words": words, "sessions.db entry_words_data": words, "sessions.db entry_words_idx": words, "sessions.db entry_words_docsize": words,
		"sessions.db participants":        "forget and retention: by entry, in the same transaction; migrate: made anew; export: it says whose the entries are",
		"sessions.db participants_filled": "none: it has the number of a session",
		"sessions.db packs":               "forget and retention: by entry, in the same transaction; migrate: made anew; export: it is a copy of entries",
		"sessions.db entry_vectors":       words, "sessions.db vector_identity": "none: it has the name of the model that makes vectors",
		"sessions.db entry_words_config": "none: it has settings of the index", "sessions.db word_cut": "none: it has the version of the index",
		"sessions.db subscriptions":       "forget, retention, export: how programs do that events are posted to, without anybody's ids",
		"sessions.db subscription_events": "forget: by session; retention: by session, and they go after 3 days; export: it holds ids and states of what the log has",
		"sessions.db audit_archive":       ids, "sessions.db audit_files": ids,
		"sessions.db audit_lines": "forget: the keys of its pseudonyms; retention: a day's go once the day is archived; export: it names nobody",
		"sessions.db audit_keys":  "forget: by person and session; retention: by session, and by person once nothing else is left of them; export: they are random; backup: with the rest, so a backup still has keys that were dropped later",
		"sessions.db sends":       sent, "sessions.db parts": sent, "sessions.db posts": sent, "sessions.db post_keys": sent, "sessions.db subjects": sent, "sessions.db asks": sent,
		"sessions.db pairings": parties, "sessions.db offers": parties, "sessions.db chats": sent, "sessions.db cursors": ids,
		"sessions.db processes":       ids,
		"sessions.db ratings":         "forget: by person and session; retention: by age; export: with the session's log",
		"sessions.db memories":        "forget: by person, for all who are linked to them; what owners had an agent remember stays; retention: of persons, by the last change; export: with what the person said",
		"sessions.db proposals":       "forget: by person and session; retention: they expire after a week, and refused ones are remembered for a year; export: with what the person said",
		"sessions.db proposal_rounds": ids,
		"sessions.db links":           "forget: by person; retention: kept, it is who is who; export: it holds ids", "sessions.db link_codes": ids,
		"sessions.db sign_ins":      "forget: kept, parley ui end is for that; retention: they go 30 days after their last use; export: it holds hashes and the names of browsers; restore: those of the owner end, because the home has a new token",
		"sessions.db sign_in_codes": ids,
		"sessions.db notes":         "forget: by person; retention and export: it holds ids, times and words of the bot's own",
	}
}

// keptNames says for each file and folder of a home what each operation does with it.
func keptNames() map[string]string {
	const process = "none: it is of the process that runs"
	return map[string]string{
		"sessions.db": "as its tables", "bus.db": "as its tables: it is there only if the store is on a server and the bus is not",
		// These are files of an older release; sessions.db contains all their data.
		"bus.db.before-1000":  "forget, retention: gone before anything is erased; backup, restore, migrate, export: left out",
		"book.db.before-1000": "forget, retention: gone before anything is erased; backup, restore, migrate, export: left out",
		// Besides the folders of sessions, workspaces contains ~outgoing, with the files that wait to be sent, and
		// ~undo, which records what turns have changed. .parley-agents.json says where the folders of agents are:
		// backup leaves it out, restore starts without it, and an operator who migrates copies it with the rest. These
		// folders contain the same as the root. Package aging lists what Parley puts into a session's folder.
		"workspaces":  "backup, restore, forget, retention: by session, and what came with a turn or of it with the turn; migrate: it stays where it is; ~outgoing: forget by session and message, retention: gone once sent, or swept; ~undo: backup and restore, forget: by session, and whole where a person or a file of a session is forgotten, retention: likewise, and by age; export: it holds files",
		"audit.jsonl": "forget: arguments and person; retention: [audit] days; backup and migrate: a copy of the table, left out",
		"token":       "none: it is a secret of this home", "parley.sock": process, "bus.db.lock": process, "lock": process, "terminals": process,
	}
}

// keptKeys says for each kind of key in Redis what forget does with it. The Redis server backs up the keys, and migrate
// writes them.
func keptKeys() []string {
	return []string{
		"state", "heads", "due", "leased", "mail", "dead", "graves", "seen", // mail: by sender and session
		"events", "feed", // events: by session
		"clock", "contact", "topics", "wake", "pause", "hold", "waiting", "nudge", "notes", "released", "forgotten", "shards", // contain nothing that people said
		"working", "begun", "counted", // ids of turns, by a hash of a person's id: forget leaves them, so that a forgotten person cannot exceed the limits; they expire after an hour
		"last",     // a process, by a hash of a session's key; expires after ten minutes
		"claimers", // a channel to which nothing is published
	}
}

func tablesOf(t *testing.T, file string) (tables map[string]int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	parleytest.Must(t, err)
	defer db.Close()
	rows, err := db.Query("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	parleytest.Must(t, err)
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		parleytest.Must(t, rows.Scan(&name))
		names = append(names, name)
	}
	parleytest.Must(t, rows.Err())
	tables = map[string]int{}
	for _, name := range names {
		var n int
		parleytest.Must(t, db.QueryRow(fmt.Sprintf("SELECT count(*) FROM %q", name)).Scan(&n))
		tables[filepath.Base(file)+" "+name] = n
	}
	return tables
}

// Each table, key, file and folder that a home or a Redis keeps has a line here that says what backup, restore,
// migrate, forget, [retention] and the exports do with it.
func TestEverythingThatIsKeptIsKnown(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"a.txt","content":"xyzzyplugh"}`})
		}
		return agenttest.Reply("xyzzyplugh")
	}, "")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, fmt.Appendf(text, "[audit]\nfile = %q\n", filepath.Join(w.Home, "audit.jsonl")), 0o600))
	serving := w.Serve()
	w.Telegram.Say(2, 2, "write xyzzyplugh")
	w.WaitSaid(2, 1)
	serving.Stop()

	entries, err := os.ReadDir(w.Home)
	parleytest.Must(t, err)
	for _, e := range entries {
		name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), "-wal"), "-shm")
		if _, known := keptNames()[name]; !known {
			t.Errorf("the home has %s: keptNames is to say what backup, restore, migrate, forget, [retention] and exports do with it", e.Name())
		}
	}
	there := tablesOf(t, filepath.Join(w.Home, "sessions.db"))
	for table := range there {
		if _, known := keptTables()[table]; !known {
			t.Errorf("there is a table %s: keptTables is to say what backup, restore, migrate, forget, [retention] and exports do with it", table)
		}
	}
	for table := range keptTables() {
		if _, exists := there[table]; !exists {
			t.Errorf("keptTables tells of a table %s that there is not", table)
		}
	}
	source := parleytest.ReadSource(t, "bus/redisbus/keys.go")
	for _, m := range regexp.MustCompile(`\.(?:prefix|channels) ?\+ ?"([a-z]+)`).FindAllStringSubmatch(source, -1) {
		if !slices.Contains(keptKeys(), m[1]) {
			t.Errorf("Redis has keys %s: keptKeys is to have them, and forget to know them", m[1])
		}
	}

	file := filepath.Join(t.TempDir(), "backup")
	if _, errs, code := w.Run("backup", file); code != 0 {
		t.Fatalf("backup: %d %s", code, errs)
	}
	home := w.Home
	w.Home = filepath.Join(t.TempDir(), "restored")
	if _, errs, code := w.Run("restore", file); code != 0 {
		t.Fatalf("restore: %d %s", code, errs)
	}
	for table, n := range there {
		db, _, _ := strings.Cut(table, " ")
		if got := tablesOf(t, filepath.Join(w.Home, db))[table]; got != n && table != "sessions.db meta" {
			t.Errorf("the table %s had %d rows, and has %d after backup and restore", table, n, got)
		}
	}
	for _, dir := range []string{home, w.Home} {
		w.Home = dir
		if _, errs, code := w.Run("forget", "--yes", "--user", "telegram:2"); code != 0 {
			t.Errorf("forget: %d %s", code, errs)
		}
		if found := parleytest.FilesWith(t, dir, "xyzzyplugh"); len(found) > 0 {
			t.Errorf("what was said is left in %v", found)
		}
	}
}
