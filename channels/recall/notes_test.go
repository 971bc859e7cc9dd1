package recall_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"parley/channels"
	"parley/channels/recall"
	"parley/sessions"
	"parley/tools"
	recalltool "parley/tools/recall"
)

// passageLines returns the passages of an answer, each as ORIGIN WHERE: TEXT.
func passageLines(a recalltool.Answer) (all []string) {
	for _, p := range a.Found {
		mark := ""
		if p.Untrusted {
			mark = "!"
		}
		all = append(all, mark+p.Origin+", "+p.Where+": "+p.Text)
	}
	return all
}

// Memories are found where the agent may read them, marked if strangers may have written them. The operator's
// folder is found everywhere.
func TestMemoriesAreFound(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	s.recordChat("s", "G", "")
	written := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	knowledge := fstest.MapFS{
		"ops/deploy.md": {Data: []byte("# Deploys\n\nnothing of it\n\nThe kraken is released on Mondays.\r\n\r\nThe kraken sleeps, and the kraken wakes up on Mondays"), ModTime: written},
		"picture.png":   {Data: []byte("kraken\x00\x01"), ModTime: written},
		"long.md":       {Data: []byte(strings.Repeat("word ", 1000) + "kraken " + strings.Repeat("ö", 2000)), ModTime: written},
	}
	s.Finder = recall.New(recall.Config{
		Index: s.Store.Words(), Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler),
		Files: func(session string) (fs.FS, error) {
			if session != "main:s:D1" {
				return nil, fs.ErrNotExist
			}
			return fstest.MapFS{"MEMORY.md": {Data: []byte("one\n\nthe kraken is here\n\nthree")}}, nil
		},
		Knowledge: func(session string) fs.FS {
			if session == "blind:s:D1" {
				return nil
			}
			return knowledge
		},
		Page: func() *url.URL { return &url.URL{Scheme: "https", Host: "bot.example"} },
	})
	for scope, owner := range map[string]string{channels.ScopePerson: "s:U1", channels.ScopeAgent: "main"} {
		if err := s.Book.Remember(t.Context(), scope, owner, "call "+scope, true, scope == channels.ScopeAgent, func(string) (string, error) { return "kraken of the " + scope, nil }); err != nil {
			t.Fatal(err)
		}
	}
	folder := []string{"knowledge, knowledge/ops/deploy.md: The kraken is released on Mondays.", "knowledge, knowledge/ops/deploy.md: The kraken sleeps, and the kraken wakes up on Mondays"}
	private := []string{
		"memory, memory of this conversation: the kraken is here", "!memory, memory of all conversations: kraken of the agent", "memory, memory about the person: kraken of the person",
	}
	for _, c := range []struct {
		session, person string
		private         bool
		want            []string
	}{
		{"main:s:D1", "s:U1", true, private},
		{"main:s:G", "s:U1", false, private[1:2]},
		{"main:s:D1", "s:U1", false, private[:2]}, // other people read this chat too
		{"ops:s:D1", "s:U1", true, private[2:]},
	} {
		got := passageLines(s.find(c.session, c.person, c.private, "KRAKEN"))
		long := slices.IndexFunc(got, func(text string) bool { return strings.HasPrefix(text, "knowledge, knowledge/long.md: ") })
		if long < 0 || len(got[long]) > 700 || !strings.Contains(got[long], "kraken") {
			t.Fatalf("of a long text it finds %q", got)
		}
		if got = slices.Delete(got, long, long+1); !slices.Equal(got, append(slices.Clone(c.want), folder...)) {
			t.Errorf("%s: %q", c.session, got)
		}
	}
	if got, want := passageLines(s.find("blind:s:D1", "s:U1", true, "KRAKEN")), private[2:]; !slices.Equal(got, want) {
		t.Errorf("an agent that may not read files finds %q, want %q", got, want)
	}
	since := func(at time.Time) recalltool.Answer {
		a, err := s.Find(t.Context(), recalltool.Question{Words: "kraken", Limit: 10, Since: at, Call: tools.Call{Session: "main:s:D1", Agent: "main", Person: "s:U1", Private: true}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if got := passageLines(since(written)); len(got) != 3 {
		t.Errorf("since then it finds %q", got)
	}
	if got := passageLines(since(written.Add(time.Second))); len(got) != 0 {
		t.Errorf("since later it finds %q", got)
	}
}

// Memories and knowledge come before what was said, so that they are not cut off.
func TestMemoriesComeFirst(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	s.Finder = recall.New(recall.Config{
		Index: s.Store.Words(), Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler),
		Knowledge: func(string) fs.FS { return fstest.MapFS{"sea.md": {Data: []byte("a kraken is a squid")}} },
	})
	s.say("main:s:D1", "t1", "s:U1", "the kraken sleeps", "the kraken wakes")
	if err := s.Book.Remember(t.Context(), channels.ScopeAgent, "main", "call", false, false, func(string) (string, error) { return "feed the kraken", nil }); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range s.find("main:s:D1", "s:U1", true, "kraken").Found {
		got = append(got, p.Origin)
	}
	if want := []string{recalltool.Memory, recalltool.Knowledge, recalltool.Message, recalltool.Reply}; !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// If not all of the operator's folder was searched, the answer says so.
func TestAPartialKnowledgeSearchIsReported(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	files := func(n int) fs.FS {
		all := fstest.MapFS{"sub/empty": {Mode: fs.ModeDir}}
		for i := range n {
			all[fmt.Sprintf("sub/%04d.md", i)] = &fstest.MapFile{Data: []byte("kraken")}
		}
		return all
	}
	big := func(name string, size int) fs.FS {
		return fstest.MapFS{name: {Data: append([]byte(name+" "), strings.Repeat("\n", size)...)}, "z.md": {Data: []byte("kraken")}}
	}
	const note = "Only part of the knowledge folder was searched."
	for name, c := range map[string]struct {
		folder fs.FS
		want   string
	}{
		"few": {files(3), ""}, "as many as are read": {files(2000), ""}, "one more": {files(2001), note},
		"a large text": {big("a.md", 1<<20), note}, "a large picture": {big("\x00.png", 1<<20), ""},
	} {
		s.Finder = recall.New(recall.Config{
			Index: s.Store.Words(), Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler),
			Knowledge: func(string) fs.FS { return c.folder },
		})
		if got := s.find("main:s:D1", "s:U1", true, "kraken"); got.Note != c.want || len(got.Found) == 0 {
			t.Errorf("%s: %d passages and the note %q, want %q", name, len(got.Found), got.Note, c.want)
		}
	}
}

// A passage says who said it, when and where, in names that people know, and has a link to its place on the
// page.
func TestAPassageSaysWhereItComesFrom(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	s.recordChat("s", "G", "")
	s.rooms.members["s:G"] = []string{"s:U1"}
	s.Finder = recall.New(recall.Config{
		Index: s.Store.Words(), Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler),
		Page: func() *url.URL { return &url.URL{Scheme: "https", Host: "bot.example"} },
	})
	s.say("main:s:G:1.5", "t1", "s:U2", "grue lamp", "answer to lantern")
	s.say("main:s:G:1.5", "t3", "s:U1", "me too", "good")
	s.say("main:s:D1", "t2", "s:U1", "grue sword", "answer")
	done := sessions.Episode{Entry: 2, Question: "grue", Deeds: []sessions.Deed{{Tool: "exec", Calls: 2, Subject: "make elvish"}}, Answer: "it is made"}
	s.append("main:s:D1", s.entry("t2", sessions.KindNotice, "s:U1", done.Notice("t2")))
	for _, c := range []struct{ words, want string }{
		{"lamp", "message by s:U2 in name of G on s, https://bot.example/#/chat/main:s:G:1.5/2"},
		{"lantern", "answer by you in name of G on s, https://bot.example/#/chat/main:s:G:1.5/3"},
		{"sword", "message by s:U1 in private chat on s (this conversation), https://bot.example/#/chat/main:s:D1/2"},
		{"elvish", "what was done by you in private chat on s (this conversation), https://bot.example/#/chat/main:s:D1/5"},
	} {
		p := s.find("main:s:D1", "s:U1", true, c.words).Found[0]
		if got := fmt.Sprintf("%s by %s in %s, %s", p.Origin, p.Who, p.Where, p.Link); got != c.want {
			t.Errorf("%q is %s, want %s", c.words, got, c.want)
		}
		if at, err := time.Parse(time.RFC3339, p.When); err != nil || time.Since(at) > time.Minute {
			t.Errorf("it was said at %q", p.When)
		}
	}
}
