package chaos

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/webhook"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/sqlstore"
)

const (
	postToken  = "token-of-those-who-post-0000"
	eventAgent = "looker" // the agent that gets the events
)

// An eventHook is a webhook whose events go to an agent. The agent's reports go to a separate chat for each hook.
type eventHook struct {
	name, kind string
	chat       int64
}

// newHooks returns as many webhooks of each kind as each says.
func newHooks(each int) (all []eventHook) {
	for n := range each {
		for i, kind := range []string{webhook.Alertmanager, webhook.GitHub, webhook.JSON} {
			all = append(all, eventHook{fmt.Sprintf("%s-%d", kind, n), kind, -10_000 - int64(10*n+i)})
		}
	}
	return all
}

// configText returns the webhook's part of the configuration.
func (h eventHook) configText() string {
	how := fmt.Sprintf("token = %q", postToken)
	switch h.kind {
	case webhook.GitHub:
		how = fmt.Sprintf("secret = %q", postToken)
	case webhook.JSON:
		how += "\ngroup = \"{{ .build }}\""
	}
	return fmt.Sprintf("\n[webhooks.%s]\nkind = %q\n%s\nto = \"telegram:%d\"\nagent = %q\n", h.name, h.kind, how, h.chat, eventAgent)
}

// An eventGroup contains the events about one thing that are posted to a webhook.
type eventGroup struct {
	eventHook
	n        int // the number of the group, unique over all webhooks
	events   int
	accepted chan struct{} // closed once all events of the group are accepted

	mu  sync.Mutex
	ids map[string]bool // the ids of accepted events
}

// name returns the group's name as the bot finds it in the events.
func (g *eventGroup) name() string {
	switch g.kind {
	case webhook.Alertmanager:
		return fmt.Sprintf(`{}/{team="x"}:{alertname="A%d"}`, g.n)
	case webhook.GitHub:
		return fmt.Sprintf("o/r#%d", g.n)
	}
	return fmt.Sprintf("build %d", g.n)
}

func (g *eventGroup) session() (string, error) {
	return sessions.Key(eventAgent, "webhook", g.eventHook.name, g.name())
}

// mark returns the name of an event, which the event and reports contain.
func (g *eventGroup) mark(event int) string { return fmt.Sprintf("E%dx%dz", g.n, event) }

var eventMark = regexp.MustCompile(`\bE(\d+)x\d+z\b`)

// marksIn returns the marks in a text.
func marksIn(text string) []string {
	marks := eventMark.FindAllString(text, -1)
	slices.Sort(marks)
	return slices.Compact(marks)
}

// post posts an event to a gateway until the gateway accepts it. It repeats the request after a 503 and after a missing
// answer, as programs that post events do.
func (g *eventGroup) post(s *storm, gateway string, event int, began time.Time) {
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(5 * time.Minute); ; <-time.After(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.T.Errorf("%s is not accepted", g.mark(event))
			return
		}
		answer, err := client.Do(g.request(s, gateway, event, began))
		if err != nil {
			continue
		}
		var accepted struct{ ID string }
		err = json.NewDecoder(answer.Body).Decode(&accepted)
		_ = answer.Body.Close() // it was read
		switch {
		case answer.StatusCode == http.StatusAccepted && err == nil && accepted.ID != "":
			g.mu.Lock()
			g.ids[accepted.ID] = true
			g.mu.Unlock()
			return
		case answer.StatusCode != http.StatusServiceUnavailable:
			s.T.Errorf("%s is answered %s", g.mark(event), answer.Status)
			return
		}
	}
}

// request returns the HTTP request that posts an event. A repeated post of the same event has the same request.
func (g *eventGroup) request(s *storm, gateway string, event int, began time.Time) *http.Request {
	body := fmt.Sprintf(`{"build":%q,"text":"failed: %s"}`, g.name(), g.mark(event))
	switch g.kind {
	case webhook.Alertmanager:
		body = fmt.Sprintf(`{"receiver":"r","groupKey":%q,"status":"firing","alerts":[{"status":"firing","labels":{"alertname":%q},"startsAt":%q,"fingerprint":%[2]q}]}`,
			g.name(), g.mark(event), began.Format(time.RFC3339))
	case webhook.GitHub:
		body = fmt.Sprintf(`{"action":"opened","issue":{"number":%d,"title":%q},"repository":{"full_name":"o/r"},"sender":{"login":"l"}}`, g.n, g.mark(event))
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+gateway+"/webhooks/"+g.eventHook.name, strings.NewReader(body))
	if err != nil {
		panic(err) // it is well formed
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+postToken)
	r.Header.Set("Idempotency-Key", g.mark(event))
	if g.kind == webhook.GitHub {
		mac := hmac.New(sha256.New, []byte(postToken))
		mac.Write([]byte(body))
		r.Header.Set("X-GitHub-Event", "issues")
		r.Header.Set("X-GitHub-Delivery", g.mark(event))
		r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	return r
}

// An eventStorm contains the events that are posted to a fleet.
type eventStorm struct {
	*storm
	gateways []string
	hooks    []eventHook
	groups   []*eventGroup
}

// maxLooks is the most calls by which the model waits for all events of a group. If an earlier turn of the group was
// given up, the model never gets all of them.
const maxLooks = 30

// model plays the scripted model. Once all events of a turn's group are accepted, it makes calls until it has been shown
// all events, and then reports the events that it was shown.
func (e *eventStorm) model(r agenttest.Request) agenttest.Response {
	all := r.Messages()
	looks := 0
	var told strings.Builder
	for i := len(all) - 1; i >= 0 && (all[i].Role != "assistant" || len(all[i].Calls) > 0); i-- {
		switch all[i].Role {
		case "tool":
			looks++
		case "user":
			told.WriteString(all[i].Content + "\n")
		}
	}
	marks := marksIn(told.String())
	for _, g := range e.groups {
		if len(marks) > 0 && strings.HasPrefix(marks[0], fmt.Sprintf("E%dx", g.n)) && (looks == 0 || looks < maxLooks && len(marks) < g.events) {
			look := agenttest.Calls(agenttest.ToolCall{Name: "memory_read", Args: fmt.Sprintf(`{"query":"%d"}`, looks)})
			return look.WaitFor(g.accepted).After(time.Duration(looks) * 20 * time.Millisecond)
		}
	}
	return agenttest.Reply(reportText(marks)).After(rand.N(300 * time.Millisecond))
}

// reportText returns the model's report about events with these marks.
func reportText(marks []string) string { return "found: " + strings.Join(marks, " ") + answerEnd }

// TestFleetReportsEachEventOnce posts many events, and repeats of them, to two gateways. Even if these, the workers,
// Redis and PostgreSQL fail, the events of one group start one turn, and its report arrives once, in the chat of the
// webhook.
func TestFleetReportsEachEventOnce(t *testing.T) {
	t.Parallel()
	eventsThroughChaos(t, stormSeed, 25*time.Second, 2, 2)
}

func eventsThroughChaos(t *testing.T, seed uint64, during time.Duration, hooks, groups int) {
	e := &eventStorm{hooks: newHooks(hooks)}
	var settings strings.Builder
	settings.WriteString("\n[agents." + eventAgent + "]\nqueue = \"steer\"\n")
	for _, h := range e.hooks {
		settings.WriteString(h.configText())
		for range groups {
			g := &eventGroup{eventHook: h, n: len(e.groups), events: 8, accepted: make(chan struct{}), ids: map[string]bool{}}
			if g.n%5 == 0 {
				g.events = 100
			}
			e.groups = append(e.groups, g)
		}
	}
	f := newFleet(t, e.model, settings.String())
	for _, m := range []*member{{name: "gateway-1", role: gateway}, {name: "worker-1", role: worker}, {name: "gateway-2", role: gateway}, {name: "worker-2", role: worker}} {
		if m.role == gateway {
			m.listen = parleytest.FreeAddress(t)
			e.gateways = append(e.gateways, m.listen)
		}
		f.add(m)
	}
	s := newStorm(f, seed, 0, 0, time.Second)
	e.storm = s
	s.points = map[string][]string{
		gateway: {"event:recorded", "event:started", "send:begun", "send:held", "send:sent", "send:marked", "send:settled"},
		worker:  {"c1:before", "c1", "c2:before", "c2", "c3", "c4:held", "c5:before", "c6:before", "c6", "c7:published", "c7", "settled"},
	}
	s.armCrashpoints()
	over := make(chan struct{})
	var programs, broken sync.WaitGroup
	for i, breaks := range []func(*storm, *rand.Rand, <-chan struct{}){breakMembers, breakServers} {
		broken.Go(func() { breaks(s, rand.New(rand.NewPCG(seed, uint64(i))), over) })
	}
	for i, g := range e.groups {
		programs.Go(func() { e.postGroup(g, rand.New(rand.NewPCG(seed, uint64(3000+i))), during) })
	}
	<-time.After(during)
	close(over)
	broken.Wait()
	s.disarmCrashpoints()
	programs.Wait()
	s.waitUntil(3*time.Minute, "the bus to have nothing to do", func() bool { return len(leftovers(s.keys())) == 0 })
	s.endAll()
	close(s.stopWaking)
	s.waking.Wait()
	e.audit()
	t.Logf("seed %d: %v", seed, s.faults)
}

// postGroup posts the events of a group, many at once, some of them to both gateways.
func (e *eventStorm) postGroup(g *eventGroup, random *rand.Rand, during time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(during))))
	defer close(g.accepted)
	began := time.Now()
	var posting sync.WaitGroup
	for event := range g.events {
		first, twin := random.IntN(2), random.IntN(3) == 0
		posting.Go(func() { g.post(e.storm, e.gateways[first], event, began) })
		if twin {
			posting.Go(func() { g.post(e.storm, e.gateways[1-first], event, began) })
		}
		<-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
	}
	posting.Wait()
}

// An eventTurn contains what a log says about a turn.
type eventTurn struct {
	marks []string
	state string
	says  string
}

// audit checks the turns and the report of each group.
func (e *eventStorm) audit() {
	t := e.T
	t.Helper()
	store, err := sqlstore.Open(t.Context(), e.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	interrupted, repeats, failed, events := 0, 0, 0, 0
	for _, row := range e.queryRows("SELECT sum(interrupted) FROM parts") {
		_, _ = fmt.Sscan(row, &interrupted)
	}
	known := map[int64]int{} // the messages in a chat that contain the expected report
	for _, g := range e.groups {
		events += g.events
		turns := e.turnsOf(store, g)
		done := 0
		for id, turn := range turns {
			if turn.state != sessions.TurnCompleted {
				failed++
			} else if done++; turn.says != reportText(turn.marks) {
				t.Errorf("turn %s was given %v and says %q", id, turn.marks, turn.says)
			}
			n := 0
			for _, text := range parleytest.Texts(e.Telegram.Sent(g.chat)) {
				if strings.Contains(text, turn.says) && strings.Contains(text, g.name()) {
					n++
				}
			}
			if n == 0 {
				t.Errorf("what turn %s says did not arrive: %q", id, turn.says)
			}
			known[g.chat] += n
			repeats += max(0, n-1)
		}
		if done > 1 || len(turns) == 0 {
			t.Errorf("the events of group %s, which were all accepted while the first turn waited, are %d turns, of which %d report: %+v", g.name(), len(turns), done, turns)
		}
	}
	for _, h := range e.hooks {
		if n := len(e.Telegram.Sent(h.chat)); n > known[h.chat] {
			t.Errorf("of the %d messages to %s %d are of no event's turn", n, h.name, n-known[h.chat])
		}
	}
	if repeats > interrupted {
		t.Errorf("%d reports arrived again, and %d sends were cut off", repeats, interrupted)
	}
	t.Logf("%d events of %d groups; %d turns were given up, %d sends cut off, %d reports repeated", events, len(e.groups), failed, interrupted, repeats)
}

// turnsOf returns the turns of a group's session by their ids. It checks that the log contains each accepted event
// once, and no other messages.
func (e *eventStorm) turnsOf(store *sqlstore.Store, g *eventGroup) map[string]*eventTurn {
	t := e.T
	t.Helper()
	session, err := g.session()
	if err != nil {
		t.Fatal(err)
	}
	turns, times, told := map[string]*eventTurn{}, map[string]int{}, map[string]bool{}
	for entry, err := range store.Read(t.Context(), session, 1) {
		if err != nil {
			t.Fatalf("read the log of %s: %v", session, err)
		}
		turn := turns[entry.Turn]
		switch entry.Kind {
		case sessions.KindTurnStarted:
			turns[entry.Turn] = &eventTurn{}
		case sessions.KindUser:
			said, err := sessions.Decode[sessions.User](entry)
			if err != nil || len(said.Quotes) != 1 {
				t.Fatalf("an event reads %+v, %v", said, err)
			}
			marks := marksIn(said.Quotes[0].Text)
			if len(marks) != 1 || !strings.HasPrefix(marks[0], fmt.Sprintf("E%dx", g.n)) {
				t.Errorf("session %s was given %q", session, said.Quotes[0].Text)
			}
			for _, mark := range marks {
				told[mark] = true
			}
			times[entry.Cause]++
			turn.marks = marksIn(strings.Join(append(turn.marks, marks...), " "))
		case sessions.KindTurnDone:
			done, err := sessions.Decode[sessions.TurnDone](entry)
			if err != nil || len(done.Outbound) != 1 {
				t.Fatalf("turn %s ended with %+v, %v", entry.Turn, done, err)
			}
			turn.state, turn.says = done.State, done.Outbound[0].Text
		}
	}
	for id := range g.ids {
		if times[id] != 1 {
			t.Errorf("event %s, which was accepted, is %d times in the log of %s", id, times[id], session)
		}
	}
	if len(told) != g.events {
		t.Errorf("of the %d events of group %s the log has %d", g.events, g.name(), len(told))
	}
	return turns
}
