package chaos

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/tools/nodes/mqtt/mqtttest"
)

// These are the calls that people have nodes run. In a message, each is followed by ":NODE".
const (
	onNode    = "exec"   // the node's exec_shell, whose command records that it has run
	throughIt = "invoke" // the same, called with the tool nodes
	onAny     = "any"    // the same, on any node
	readThere = "read"   // the node's read_file, which changes nothing
)

const (
	ranFile   = "ran"   // where commands record that they have run, in the node's folder
	knownFile = "known" // the file that read_file reads
	knownText = "what is known here"
)

const bossToken = "token-of-the-one-who-accepts-nodes"

// A nodeStorm is a storm in which devices run calls.
type nodeStorm struct {
	*storm
	devices []*member
	lines   []*line
	broker  *mqtttest.Broker // the broker of one device; nil if there is none
	middle  *mqtttest.Middle // the man in the middle before the broker
	place   string           // the address of the database
	driver  string

	slowest   time.Duration // the longest time that a person has waited for an answer
	slowestOf string
}

// ranLine returns a command that records its mark. Some commands end soon after that, and others record it late.
func ranLine(mark string, number int) string {
	write := "echo " + mark + " >>" + ranFile
	return []string{write, write + "; sleep 0.3", "sleep 0.3; " + write, "sleep 0.2; " + write + "; sleep 0.2"}[number%4]
}

// nodeModel plays the scripted model. It makes the node calls that it is told to make, "PERSON NUMBER KIND:NODE …", all at
// once.
func nodeModel(r agenttest.Request) agenttest.Response {
	said, results := saidIn(turnOf(r))
	var words []string
	for _, text := range said {
		fields := strings.Fields(stripKindPrefix(text))
		if len(fields) == 1 {
			return agenttest.Reply("tools: " + strings.Join(r.Tools(), " "))
		}
		person, n, orders := fields[0], fields[1], fields[2:]
		if len(results) < len(orders) {
			var calls []agenttest.ToolCall
			for i, order := range orders {
				calls = append(calls, nodeCall(order, fmt.Sprintf("m%s.%s.%d", person, n, i), len(person+n)+i))
			}
			return agenttest.Calls(calls...)
		}
		results = results[len(orders):]
		words = append(words, fmt.Sprintf("re %s.%s", person, n))
	}
	return agenttest.Reply(strings.Join(append(words, "that is all"), "; ")).After(rand.N(100 * time.Millisecond))
}

// nodeCall returns the call for KIND:NODE.
func nodeCall(order, mark string, number int) agenttest.ToolCall {
	kind, node, _ := strings.Cut(order, ":")
	args := fmt.Sprintf(`{"command":%q}`, ranLine(mark, number))
	switch kind {
	case readThere:
		return agenttest.Call(node+"__read_file", fmt.Sprintf(`{"path":%q}`, knownFile))
	case throughIt:
		return agenttest.Call("nodes", fmt.Sprintf(`{"action":"invoke","node":%q,"tool":"exec_shell","args":%s}`, node, args))
	case onAny:
		return agenttest.Call("nodes", fmt.Sprintf(`{"action":"invoke","node":"any:exec","tool":"exec_shell","args":%s}`, args))
	}
	return agenttest.Call(node+"__exec_shell", args)
}

// nodeNames returns the names of the devices.
func nodeNames() []string { return []string{"attic", "cellar", "garden"} }

// throughBroker is the device that links through the broker, if there is one.
const throughBroker = "garden"

// nodeSettings returns the settings for the devices and for the token that accepts them. The devices are trusted, so
// that their calls need no approval.
func nodeSettings() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n[tokens.boss]\ntoken = %q\nmay = [\"admin\"]\n", bossToken)
	for _, name := range nodeNames() {
		fmt.Fprintf(&text, "[nodes.%s]\nagents = [\"main\"]\ntrusted = true\n", name)
		if name != withoutWait {
			text.WriteString("wait = \"30s\"\n")
		}
	}
	return text.String()
}

// withoutWait is the device for which no turn waits: calls fail while it is away.
const withoutWait = "cellar"

// TestFleetRunsEachNodeCallOnce makes people call the tools of three devices through a fleet of four processes. One
// device links through an MQTT broker, which is also hostile. Even if the processes, the devices, the lines between
// them, Redis, PostgreSQL and the broker fail, no call runs twice, each result is true, and each turn is answered.
func TestFleetRunsEachNodeCallOnce(t *testing.T) {
	t.Parallel()
	nodesThroughChaos(t, stormSeed, 30, 1, 15*time.Second, 20*time.Second)
}

func nodesThroughChaos(t *testing.T, seed uint64, people, messages int, lull, during time.Duration) {
	skipUnlessFleet(t)
	broker := mqtttest.New(t)
	middle := mqtttest.NewMiddle(broker)
	f := newFleet(t, nodeModel, nodeSettings()+fmt.Sprintf("[mqtt]\nurl = %q\n", middle.URL()))
	needsSandbox(t)
	var gateways []string
	for _, m := range []*member{{name: "gateway-1", role: gateway}, {name: "worker-1", role: worker}, {name: "gateway-2", role: gateway}, {name: "worker-2", role: worker}} {
		if m.role == gateway {
			m.listen = parleytest.FreeAddress(t)
			gateways = append(gateways, m.listen)
		}
		f.add(m)
	}
	n := &nodeStorm{storm: newStorm(f, seed, 0, 0, lull), driver: "pgx", place: f.pg.URL(), broker: broker, middle: middle}
	n.addDevices(gateways)
	n.run(people, messages, during, breakMembers, breakMembers, breakServers, breakLines(n.lines), n.breakBroker)
	n.waitUntil(3*time.Minute, "the bus to have nothing to do", func() bool { return len(leftovers(n.keys())) == 0 })
	n.finish(people)
}

// TestFleetOfOneRunsEachNodeCallOnce makes people call the tools of devices through a single server on SQLite: no call
// runs twice, each result is true, and each turn is answered.
func TestFleetOfOneRunsEachNodeCallOnce(t *testing.T) {
	t.Parallel()
	nodesOfOneThroughChaos(t, stormSeed, 20, 1, 12*time.Second, 15*time.Second)
}

func nodesOfOneThroughChaos(t *testing.T, seed uint64, people, messages int, lull, during time.Duration) {
	skipUnlessFleet(t)
	f := &fleet{once: newOnceTool(t), World: parleytest.New(t, nodeModel, `
[serve]
drain = "5s"
[limits]
user_turns_hour = 1000000
user_tokens_day = 1000000000
[agents.defaults]
queue = "followup"
max_tool_iterations = 100
`+nodeSettings())}
	needsSandbox(t)
	f.Model.Keep(0)
	f.endWithTest()
	m := f.add(&member{name: "server", role: alone, listen: parleytest.FreeAddress(t)})
	file := filepath.Join(m.home(), "sessions.db")
	n := &nodeStorm{storm: newStorm(f, seed, 0, 0, lull), driver: "sqlite", place: file}
	n.addDevices([]string{m.listen})
	n.run(people, messages, during, breakMembers, breakMembers, breakLines(n.lines))
	n.waitUntil(3*time.Minute, "the bus to have nothing to do", func() bool { return n.query("SELECT count(*) FROM message")[0] == "0" })
	n.finish(people)
}

// query runs a query on the database, and returns the rows.
func (n *nodeStorm) query(query string) []string {
	n.T.Helper()
	place := n.place
	if n.driver == "sqlite" {
		place = "file:" + place + "?mode=ro&_pragma=busy_timeout(5000)"
	}
	return sqldbtest.Query(n.T, n.driver, place, query)
}

// openStore opens the database as the program does.
func (n *nodeStorm) openStore() *sqlstore.Store {
	n.T.Helper()
	if n.driver == "pgx" {
		store, err := sqlstore.Open(n.T.Context(), n.place)
		parleytest.Must(n.T, err)
		n.T.Cleanup(func() { _ = store.Close() }) // it was only read
		return store
	}
	db, err := homedb.Open(n.T.Context(), filepath.Dir(n.place), homedb.Options{Log: slog.New(slog.DiscardHandler), Lost: func(int) {}})
	parleytest.Must(n.T, err)
	n.T.Cleanup(func() { _ = db.Close() }) // it was only read
	store, err := sqlstore.Use(n.T.Context(), db)
	parleytest.Must(n.T, err)
	return store
}

// addDevices makes the devices join, each over a line of its own, and waits until agents can use them.
func (n *nodeStorm) addDevices(gateways []string) {
	t := n.T
	t.Helper()
	api, boss := parleytest.HTTPAt(n.World, gateways[0]), parleytest.Bearer(bossToken)
	n.Env = append(n.Env, "PARLEY_MOST_REST=2s")
	for _, name := range nodeNames() {
		l := newLine(t, gateways)
		m := &member{name: name, role: device, file: filepath.Join(t.TempDir(), "parley.toml")}
		m.f = n.fleet
		parleytest.Must(t, os.WriteFile(m.file, fmt.Appendf(nil, "[node]\nname = %q\n", name), 0o600))
		var invited struct{ Code string }
		parleytest.Must(t, json.Unmarshal([]byte(api.Ask("POST", "/v1/nodes/invite", "", boss...).Body), &invited))
		own := *n.World
		own.Home, own.File = m.home(), m.file
		if out, errs, code := own.Run("node", "join", "http://"+l.address, invited.Code); code != parleytest.ExitDone {
			t.Fatalf("node join ended with %d: %s%s", code, out, errs)
		}
		if name == throughBroker && n.broker != nil {
			parleytest.Must(t, os.WriteFile(m.file, fmt.Appendf(nil, "[node]\nname = %q\nserver = %q\n", name, n.middle.URL()), 0o600))
		}
		n.add(m)
		n.lines, n.devices = append(n.lines, l), append(n.devices, m)
		parleytest.Must(t, os.WriteFile(filepath.Join(m.home(), "workspace", knownFile), []byte(knownText+"\n"), 0o644))
		parleytest.WaitFor(t, name+" to be here", func() bool {
			return strings.Contains(api.Ask("GET", "/v1/nodes/"+name, "", boss...).Body, `"here":true`)
		})
		if a := api.Ask("POST", "/v1/nodes/"+name+"/accept", "{}", boss...); a.Status != 200 {
			t.Fatalf("%s is not accepted: %d %s", name, a.Status, a.Body)
		}
	}
	for tries := 1; ; tries++ { // agents have the tools a moment later
		n.Telegram.Say(firstPerson, firstPerson, "tools?")
		said := n.WaitSaid(firstPerson, tries)[tries-1]
		if !slices.ContainsFunc(nodeNames(), func(name string) bool { return !strings.Contains(said, " "+name+"__exec_shell") }) {
			return
		}
		if tries == 50 {
			t.Fatalf("agents have no tools of the devices: %s", said)
		}
	}
}

// run lets people talk while breakers harm everything, at most for this time, and waits until all messages are
// answered.
func (n *nodeStorm) run(people, messages int, during time.Duration, breakers ...func(*storm, *rand.Rand, <-chan struct{})) {
	n.T.Helper()
	n.points = map[string][]string{
		gateway: {"node:linked", "node:sent", "node:ended", "node:acked"},
		worker:  {"node:given", "c4", "c4:held", "c5:before", "c5", "c6", "settled", "park:waiting", "node:woken", "unpark"},
		alone:   {"node:linked", "node:given", "node:sent", "node:ended", "node:acked", "c4:held", "c5:before", "park:waiting", "node:woken", "unpark"},
		device:  {"device:started", "device:ran", "device:ended", "device:acked"},
	}
	n.armCrashpoints()
	over := make(chan struct{})
	end := sync.OnceFunc(func() { n.disarmCrashpoints(); close(over) })
	enough := time.AfterFunc(during, end)
	defer enough.Stop()
	var talking, broken sync.WaitGroup
	began := time.Now()
	for i, breaks := range breakers {
		broken.Go(func() { breaks(n.storm, rand.New(rand.NewPCG(n.seed, uint64(i))), over) })
	}
	for i := range people {
		talking.Go(func() { n.useNodes(int64(firstPerson+i), messages, rand.New(rand.NewPCG(n.seed, uint64(4000+i)))) })
	}
	talking.Wait()
	end()
	broken.Wait()
	n.took = time.Since(began)
}

// useNodes plays one person, who makes nodes run calls again and again, and now and then stops the turn.
func (n *nodeStorm) useNodes(person int64, messages int, random *rand.Rand) {
	for number := range messages {
		<-time.After(time.Duration(random.Int64N(int64(n.maxPause))))
		var orders []string
		for range 1 + random.IntN(3) {
			kind := []string{onNode, onNode, onNode, throughIt, onAny, readThere}[random.IntN(6)]
			orders = append(orders, kind+":"+nodeNames()[random.IntN(len(nodeNames()))])
		}
		before, began := len(n.Telegram.Sent(person)), time.Now()
		n.Telegram.Say(person, person, fmt.Sprintf("%d %d %s", person, number, strings.Join(orders, " ")))
		answers := []string{fmt.Sprintf("re %d.%d;", person, number), "given up on it", "given it up"}
		if random.IntN(8) == 0 {
			<-time.After(time.Duration(random.Int64N(int64(2 * time.Second))))
			n.Telegram.Say(person, person, "/stop")
			answers = append(answers, "Stopped", "Nothing is running")
		}
		n.waitUntil(15*time.Minute, "an answer to "+answers[0], func() bool {
			all := strings.Join(parleytest.Texts(n.Telegram.Sent(person)[before:]), "\n")
			return slices.ContainsFunc(answers, func(a string) bool { return strings.Contains(all, a) })
		})
		n.mu.Lock()
		if took := time.Since(began); took > n.slowest {
			n.slowest, n.slowestOf = took, fmt.Sprintf("%d.%d", person, number)
		}
		n.mu.Unlock()
	}
}

// finish waits until no call is open and no call in a device's journal waits. Then it ends all processes, and audits
// the results.
func (n *nodeStorm) finish(people int) {
	t := n.T
	t.Helper()
	n.waitUntil(2*time.Minute, "all calls to end", func() bool { return n.query("SELECT count(*) FROM node_calls WHERE ended = 0")[0] == "0" })
	for _, m := range n.devices {
		n.waitUntil(2*time.Minute, "the journal of "+m.name+" to be acknowledged", func() bool { return len(readJournal(t, m).waiting()) == 0 })
	}
	n.endAll()
	close(n.stopWaking)
	n.waking.Wait()
	a := &nodeAudit{nodeStorm: n}
	a.audit(people)
	for _, how := range n.unexpected {
		if slices.ContainsFunc(nodeNames(), func(name string) bool { return strings.HasPrefix(how, name+":") }) {
			t.Errorf("a node has ended by itself: %s", how)
		}
	}
	t.Logf("seed %d: %s; slowest answer %v (%s); %v in all; %v", n.seed, a, n.slowest.Round(time.Millisecond), n.slowestOf, n.took.Round(time.Second), n.faults)
}
