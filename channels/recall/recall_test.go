package recall_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/openai"
	"parley/bus"
	"parley/channels"
	"parley/channels/recall"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/search/searchtest"
	"parley/sessions/subagents"
	"parley/tools"
	recalltool "parley/tools/recall"
	"parley/tools/testrace"
)

// testChats are the groups of the platforms, with their members, and the threads that only some members can
// read.
type testChats struct {
	members map[string][]string // by CHANNEL:CHAT
	closed  []string
	asked   atomic.Int32
	err     error
}

func (r *testChats) MayRead(_ context.Context, at bus.Address, person string) (bool, error) {
	r.asked.Add(1)
	return slices.Contains(r.members[at.String()], person), r.err
}

func (r *testChats) IsClosed(_ context.Context, at bus.Address) (bool, error) {
	return slices.Contains(r.closed, at.Thread), nil
}

// A home is a store, a book and platforms, with a Finder.
type home struct {
	*hometest.Home
	t     *testing.T
	rooms *testChats
	*recall.Finder
	fence map[string]int64
}

func newHome(t *testing.T) *home {
	s := &home{Home: hometest.Open(t, t.TempDir()), t: t, rooms: &testChats{members: map[string][]string{}}, fence: map[string]int64{}}
	s.useIndex(s.Store.Words())
	return s
}

// useIndex makes the Finder search an index.
func (s *home) useIndex(index search.Index) {
	s.Finder = recall.New(recall.Config{
		Index: index, Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler),
	})
}

// useVectors makes the Finder also search by meaning, with vectors of everything that was said.
func (s *home) useVectors() {
	s.t.Helper()
	p := searchtest.NewProvider(s.t)
	e, err := openai.NewEmbedder(openai.Config{BaseURL: p.URL, Name: "trigrams"}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	m := search.NewMeanings(search.MeaningsConfig{
		Table: s.Store.Words(), Embedding: func() search.Embedding { return search.Embedding{Model: "trigrams", Embedder: e} }, Log: slog.New(slog.DiscardHandler),
	})
	for _, fill := range []func(context.Context) (bool, error){s.Store.Words().Fill, m.Fill} {
		for more := true; more; {
			if more, err = fill(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.useIndex(m)
}

// append writes entries to a session's log.
func (s *home) append(key string, entries ...sessions.Entry) {
	s.t.Helper()
	s.fence[key]++
	log, err := s.Store.Open(s.t.Context(), key, s.fence[key])
	if err == nil {
		err = log.Append(s.t.Context(), log.Next(), entries...)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// entry makes an entry.
func (s *home) entry(turn string, kind sessions.Kind, person string, data any) sessions.Entry {
	s.t.Helper()
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		s.t.Fatal(err)
	}
	if e.Person = person; kind == sessions.KindUser {
		e.Cause = turn
	}
	return e
}

// say writes what a person says in a session, with the answer to it.
func (s *home) say(key, turn, person, text, answer string) {
	s.t.Helper()
	s.append(key,
		s.entry(turn, sessions.KindTurnStarted, person, sessions.TurnStarted{Agent: sessions.AgentOf(key)}),
		s.entry(turn, sessions.KindUser, person, sessions.User{Name: person, Text: text}),
		s.entry(turn, sessions.KindText, "", sessions.Text{Text: answer}),
		s.entry(turn, sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnCompleted}))
}

func (s *home) recordChat(channel, chat, person string) {
	s.t.Helper()
	err := s.Book.RecordChat(s.t.Context(), channels.Chat{Address: bus.Address{Channel: channel, Chat: chat}, Session: "main:" + channel + ":" + chat, Group: person == "", Person: person, Name: "name of " + chat, Seen: time.Now()})
	if err != nil {
		s.t.Fatal(err)
	}
}

// link links two accounts of one human.
func (s *home) link(a, b, chatOfA, chatOfB string) {
	s.t.Helper()
	code, err := s.Book.OfferLink(s.t.Context(), channels.LinkRequest{Person: a, Chat: chatOfA, Cause: a + "#offer"})
	if err == nil {
		_, err = s.Book.Link(s.t.Context(), channels.Linking{Code: code, Person: b, Chat: chatOfB, Cause: b + "#link"})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// find searches as an agent does on behalf of a person in a session.
func (s *home) find(session, person string, private bool, words string) recalltool.Answer {
	s.t.Helper()
	a, err := s.Find(s.t.Context(), recalltool.Question{
		Words: words, Limit: 50, Call: tools.Call{Session: session, Agent: sessions.AgentOf(session), Person: person, Private: private},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func mustKey(t *testing.T, key string, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A sessionSecret is what was said in one session, and describes who may find it from where.
type sessionSecret struct {
	word, session, agent, channel, chat string
	owner                               int      // the number of the human whose private chat it is; -1 in a group
	account                             string   // the account whose own session in a group it is; "" if everybody shares the session
	closed                              bool     // whether only invited people read the thread
	unowned                             bool     // whether it is nobody's chat
	speakers                            []string // the accounts that have spoken there
}

// testPeople are people with accounts, in private chats and groups, with agents.
type testPeople struct {
	*home
	humans   [][]string // their accounts
	linked   []bool     // whether the accounts are linked
	secrets  []sessionSecret
	channels []string
}

// mayFindSecret reports whether a human, who asks with an account in a session, may find a secret. It states
// the rules in another way than the tested code.
func (c *testPeople) mayFindSecret(human int, account string, from, of sessionSecret) bool {
	if from.session == of.session {
		return true
	}
	if from.agent != of.agent || from.unowned || of.unowned || of.closed {
		return false
	}
	mine := []string{account}
	if c.linked[human] {
		mine = c.humans[human]
	}
	if of.owner >= 0 { // somebody's private chat
		return from.owner == human && of.owner == human && slices.ContainsFunc(mine, func(a string) bool { return strings.HasPrefix(a, of.channel+":") })
	}
	if of.account != "" && !slices.Contains(mine, of.account) {
		return false
	}
	in := func(a string) bool { return slices.Contains(c.rooms.members[of.channel+":"+of.chat], a) }
	return from.channel == of.channel && from.chat == of.chat || from.owner == human && slices.ContainsFunc(mine, in)
}

// newTestPeople makes people each of whom has said a unique word everywhere where they could.
func newTestPeople(t *testing.T, random *rand.Rand) *testPeople {
	c := &testPeople{home: newHome(t), channels: []string{"s", "t"}}
	for h := range 6 {
		c.humans = append(c.humans, []string{fmt.Sprint("s:U", h), fmt.Sprint("t:", h+1)})
		c.linked = append(c.linked, h%2 == 0)
		c.recordChat("s", fmt.Sprint("D", h), c.humans[h][0])
		c.recordChat("t", fmt.Sprint(h+1), c.humans[h][1])
		if c.linked[h] {
			c.link(c.humans[h][0], c.humans[h][1], fmt.Sprint("s:D", h), fmt.Sprint("t:", h+1))
		}
	}
	add := func(s sessionSecret) {
		s.word = fmt.Sprintf("secret%dq", len(c.secrets))
		for i, who := range s.speakers {
			c.say(s.session, fmt.Sprint("turn", len(c.secrets), "-", i), who, "the ledger has "+s.word, "so it is "+s.word)
		}
		c.secrets = append(c.secrets, s)
	}
	for _, agent := range []string{"main", "ops"} {
		for h, accounts := range c.humans {
			for i, chat := range []string{fmt.Sprint("D", h), fmt.Sprint(h + 1)} {
				for _, thread := range []string{"", "7"} {
					key, err := sessions.Key(agent, c.channels[i], chat, thread)
					add(sessionSecret{session: mustKey(t, key, err), agent: agent, channel: c.channels[i], chat: chat, owner: h, speakers: accounts[i : i+1]})
				}
			}
			key, err := subagents.Key(agent, mustKey(t, fmt.Sprintf("%s:s:D%d", agent, h), nil), fmt.Sprint("task", h))
			add(sessionSecret{session: mustKey(t, key, err), agent: agent, unowned: true, owner: -1, speakers: accounts[:1]})
		}
		for g := range 5 {
			chat := fmt.Sprint("G", g)
			c.recordChat("s", chat, "")
			at := "s:" + chat
			var members []string
			for _, accounts := range c.humans {
				if random.IntN(2) == 0 {
					members = append(members, accounts[0])
				}
			}
			if c.rooms.members[at] == nil {
				c.rooms.members[at] = members
			}
			members = c.rooms.members[at]
			spoke := append(slices.Clone(members), c.humans[random.IntN(6)][0]) // one of the speakers may have left the group
			for _, thread := range []string{"", "1.1", "closed"} {
				key, err := sessions.Key(agent, "s", chat, thread)
				add(sessionSecret{session: mustKey(t, key, err), agent: agent, channel: "s", chat: chat, owner: -1, closed: thread == "closed", speakers: spoke})
			}
			for _, account := range members {
				key, err := sessions.PersonalKey(agent, "s", chat, "", strings.TrimPrefix(account, "s:"))
				add(sessionSecret{session: mustKey(t, key, err), agent: agent, channel: "s", chat: chat, owner: -1, account: account, speakers: []string{account}})
			}
		}
		add(sessionSecret{session: agent + ":webhook:ci:1", agent: agent, unowned: true, owner: -1, speakers: []string{"webhook:ci", c.humans[0][0]}})
	}
	c.rooms.closed = []string{"closed"}
	return c
}

// In 2,000 searches by people in private chats, groups and threads, with two agents, each search finds exactly
// what the person may see from where they ask.
func TestNobodyFindsWhatTheyMayNotSee(t *testing.T) {
	t.Run("words", func(t *testing.T) { testNobodyFinds(t, false) })
	t.Run("vectors", func(t *testing.T) { testNobodyFinds(t, true) })
}

func testNobodyFinds(t *testing.T, vectors bool) {
	const seed = 20261129
	attempts := 2000
	if testrace.Raced {
		attempts /= 10
	}
	random := rand.New(rand.NewPCG(seed, 1))
	c := newTestPeople(t, random)
	if vectors {
		c.useVectors()
	}
	found, hidden, missed := 0, 0, 0
	for done := 0; done < attempts; {
		human := random.IntN(len(c.humans))
		from := c.secrets[random.IntN(len(c.secrets))]
		account := c.humans[human][random.IntN(2)]
		if from.owner >= 0 && from.owner != human || from.unowned || from.owner < 0 && !slices.Contains(c.rooms.members[from.channel+":"+from.chat], account) {
			continue // this human cannot ask there
		}
		if from.owner >= 0 {
			account = c.humans[human][slices.Index(c.channels, from.channel)]
		}
		if from.account != "" && from.account != account {
			continue
		}
		done++
		sought := c.secrets[random.IntN(len(c.secrets))]
		words := sought.word
		if random.IntN(4) == 0 {
			words = "ledger"
		}
		got := c.find(from.session, account, from.owner >= 0, words)
		for _, p := range got.Found {
			at := slices.IndexFunc(c.secrets, func(s sessionSecret) bool { return strings.HasSuffix(p.Text, s.word) })
			if at < 0 {
				t.Fatalf("found %+v, which nobody has said", p)
			}
			if found++; !c.mayFindSecret(human, account, from, c.secrets[at]) {
				t.Fatalf("%s finds %q of %s in %s", account, p.Text, c.secrets[at].session, from.session)
			}
		}
		has := slices.ContainsFunc(got.Found, func(p recalltool.Passage) bool { return strings.HasSuffix(p.Text, sought.word) })
		switch may := c.mayFindSecret(human, account, from, sought); {
		case !may:
			hidden++
		case words == sought.word && !has && (slices.ContainsFunc(sought.speakers, func(s string) bool { return slices.Contains(c.humans[human], s) && c.linked[human] || s == account })):
			missed++
			t.Errorf("%s does not find %q of %s in %s", account, words, sought.session, from.session)
		}
	}
	if found < attempts || hidden < attempts/4 || missed > 0 {
		t.Errorf("found %d, hidden %d, missed %d", found, hidden, missed)
	}
}

// A platform is asked once in ten minutes, and an error counts as no.
func TestAPlatformIsAskedOnceInTenMinutes(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &home{Home: hometest.Open(t, dir), t: t, rooms: &testChats{members: map[string][]string{}}, fence: map[string]int64{}}
		defer s.Close()
		s.Finder = recall.New(recall.Config{Index: s.Store.Words(), Sessions: s.Store, Book: s.Book, Members: &recall.Members{Access: s.rooms}, Log: slog.New(slog.DiscardHandler)})
		s.recordChat("s", "D1", "s:U1")
		s.recordChat("s", "G", "")
		s.say("main:s:G", "t1", "s:U1", "the word is xyzzy", "it is xyzzy")
		s.rooms.members["s:G"] = []string{"s:U1"}
		ask := func(want bool, asked int32, note bool) {
			t.Helper()
			got := s.find("main:s:D1", "s:U1", true, "xyzzy")
			if has := len(got.Found) > 0; has != want || s.rooms.asked.Load() != asked || (got.Note != "") != note {
				t.Errorf("found %v, asked %d times, note %q; want %v and %d", has, s.rooms.asked.Load(), got.Note, want, asked)
			}
		}
		ask(true, 1, false)
		s.rooms.members["s:G"] = nil // the person leaves the group
		time.Sleep(recall.MembershipLifetime - time.Second)
		ask(true, 1, false)
		time.Sleep(time.Second)
		ask(false, 2, false)
		s.rooms.members["s:G"], s.rooms.err = []string{"s:U1"}, errors.New("away")
		time.Sleep(recall.MembershipLifetime)
		ask(false, 3, true)
		s.rooms.err = nil
		ask(false, 3, true)
		time.Sleep(recall.MembershipLifetime)
		ask(true, 4, false)
	})
}

// A hit is marked if it was marked when it was read, if others have said it elsewhere, or if it is the agent's
// own words after it had read such text.
func TestWhichHitsAreMarked(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	s.recordChat("s", "G", "")
	s.rooms.members["s:G"] = []string{"s:U1"}
	s.say("main:s:D1", "t1", "s:U1", "alpha from me", "bravo from the agent")
	s.append("main:s:D1",
		s.entry("t2", sessions.KindToolResult, "", sessions.ToolResult{Content: []byte(`"charlie from a page"`), Untrusted: true}),
		s.entry("t2", sessions.KindText, "", sessions.Text{Text: "delta after the page"}),
		s.entry("t3", sessions.KindSummary, "", sessions.Summary{Covers: 6, Keep: []int64{3}}), // an episode follows
		s.entry("t4", sessions.KindText, "", sessions.Text{Text: "echo after a new start"}))
	for asked, untrusted := range map[string]bool{"kilo": true, "lima": false} {
		s.append("main:s:D1", s.entry("t4", sessions.KindNotice, "s:U1", sessions.Episode{Question: asked, Untrusted: untrusted}.Notice("m")))
	}
	s.say("main:s:G", "t5", "s:U1", "foxtrot from me", "golf from the agent")
	s.say("main:s:G", "t6", "s:U2", "hotel from another", "india to another")
	for word, want := range map[string]bool{
		"alpha": false, "bravo": false, "charlie": true, "delta": true, "echo": false, "foxtrot": false, "golf": false, "hotel": true, "india": false, "kilo": true, "lima": false,
	} {
		got := s.find("main:s:D1", "s:U1", true, word)
		if len(got.Found) != 1 || got.Found[0].Untrusted != want {
			t.Errorf("%s: %+v, want it marked %v", word, got.Found, want)
		}
	}
	if got := s.find("main:s:G", "s:U1", false, "hotel"); len(got.Found) != 1 || got.Found[0].Untrusted {
		t.Errorf("what another has said in the same conversation: %+v", got.Found)
	}
	for range 300 { // so that the page that the agent has read is too far back
		s.append("main:s:D1", s.entry("t7", sessions.KindText, "", sessions.Text{Text: "filler"}))
	}
	s.append("main:s:D1", s.entry("t8", sessions.KindText, "", sessions.Text{Text: "juliett much later"}))
	if got := s.find("main:s:D1", "s:U1", true, "juliett"); len(got.Found) != 1 || !got.Found[0].Untrusted {
		t.Errorf("where it cannot be told: %+v", got.Found)
	}
}

// After a quote, the agent's words are marked, unless the asker wrote the quote, or an agent posted it here on
// behalf of somebody whom the bot knows.
func TestMarksAfterAQuote(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	for i, c := range []struct {
		kind  sessions.Kind
		quote sessions.Quote
		want  bool
	}{
		{sessions.KindUser, sessions.Quote{Kind: bus.Answered, Own: true}, true},
		{sessions.KindUser, sessions.Quote{Kind: bus.Forwarded, Person: "s:U1"}, false},
		{sessions.KindUser, sessions.Quote{Kind: bus.Forwarded, Person: "s:U2"}, true},
		{sessions.KindNotice, sessions.Quote{Kind: bus.Told, Own: true, Person: "s:U2"}, false},
		{sessions.KindNotice, sessions.Quote{Kind: bus.Reported, Person: "s:U1"}, true},
		{sessions.KindNotice, sessions.Quote{Kind: bus.Edited, Person: "s:U1"}, false},
	} {
		turn, word := fmt.Sprint("t", i), []string{"alpha", "bravo", "charlie", "delta", "echo", "foxtrot"}[i]
		c.quote.Text = "somebody's text"
		var data any = sessions.User{Text: "hello", Quotes: []sessions.Quote{c.quote}}
		if c.kind == sessions.KindNotice {
			data = sessions.Notice{Quotes: []sessions.Quote{c.quote}}
		}
		s.append("main:s:D1", s.entry(turn, sessions.KindSummary, "", sessions.Summary{Covers: int64(3 * i)}),
			s.entry(turn, c.kind, "s:U1", data), s.entry(turn, sessions.KindText, "", sessions.Text{Text: word}))
		if got := s.find("main:s:D1", "s:U1", true, word); len(got.Found) != 1 || got.Found[0].Untrusted != c.want {
			t.Errorf("after %s with %+v: %+v, want it marked %v", c.kind, c.quote, got.Found, c.want)
		}
	}
}

// A search does not find the question itself.
func TestAQuestionIsNotItsAnswer(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	s.say("main:s:D1", "t1", "s:U1", "the kraken sleeps in the harbor", "noted")
	s.say("main:s:D1", "t2", "s:U1", "where does the kraken sleep?", "I look for the kraken")
	for turn, want := range map[string]int{"t2": 1, "": 3} {
		a, err := s.Find(t.Context(), recalltool.Question{Words: "kraken", Limit: 3, Call: tools.Call{
			Session: "main:s:D1", Turn: turn, Agent: "main", Person: "s:U1", Private: true,
		}})
		if err != nil || len(a.Found) != want {
			t.Errorf("in turn %q it finds %+v, %v, want %d", turn, a.Found, err, want)
		}
	}
}

// The entries of the turn that asks don't take the place of earlier answers, even with the same words.
func TestAQuestionTakesNoPlaceOfAnAnswer(t *testing.T) {
	s := newHome(t)
	s.recordChat("s", "D1", "s:U1")
	s.say("main:s:D1", "t1", "s:U1", "a basilisk sleeps in the well", "noted")
	s.say("main:s:D1", "t3", "s:U1", "when does the kraken wake?", "on Mondays")
	s.say("main:s:D1", "t4", "s:U1", "when does the kraken wake?", "I look for it")
	for i := range 20 {
		again := s.entry("t4", sessions.KindUser, "s:U1", sessions.User{Text: fmt.Sprint("basilisk basilisk ", i)})
		again.Cause = fmt.Sprint("t4-", i)
		s.append("main:s:D1", again)
	}
	for words, want := range map[string]string{"when does the kraken wake?": "when does the kraken wake?", "basilisk": "a basilisk sleeps in the well"} {
		a, err := s.Find(t.Context(), recalltool.Question{Words: words, Limit: 1, Call: tools.Call{
			Session: "main:s:D1", Turn: "t4", Agent: "main", Person: "s:U1", Private: true,
		}})
		if err != nil || len(a.Found) != 1 || a.Found[0].Text != want {
			t.Errorf("for %q it finds %+v, %v, want %q", words, a.Found, err, want)
		}
	}
}
