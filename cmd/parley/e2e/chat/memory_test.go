package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// A curious is a model that makes the calls that the person lists, one after another, and records everything that it is
// shown.
type curious struct {
	mu    sync.Mutex
	shown map[string][]string // the requests, by the person who asked
}

func (c *curious) model(r agenttest.Request) agenttest.Response {
	who, said, _ := strings.Cut(strings.TrimPrefix(r.Said(), "@parleybot "), ": ")
	c.mu.Lock()
	c.shown[who] = append(c.shown[who], string(r.Body))
	c.mu.Unlock()
	calls := strings.Split(said, " ;; ")
	if said == "" || r.Rounds() >= len(calls) {
		return agenttest.Reply("done with " + who)
	}
	tool, args, _ := strings.Cut(calls[r.Rounds()], " ")
	return agenttest.Calls(agenttest.ToolCall{Name: tool, Args: args})
}

func (c *curious) saw(who, text string) (in []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, body := range c.shown[who] {
		if strings.Contains(body, text) {
			in = append(in, body)
		}
	}
	return in
}

// What the bot remembers of one person is never shown to another through any tool or prompt. Another person, an owner,
// a group, the person in a group, and programs all try to see it.
func TestWhatIsRememberedOfOneIsSeenByNobodyElse(t *testing.T) {
	t.Parallel()
	const secret, shared = "xyzzy-plugh", "deploys are on Mondays"
	c := &curious{shown: map[string][]string{}}
	o := parleytest.ListenHTTP(parleytest.New(t, c.model, `
[agents.main]
capabilities = ["file_read", "file_write", "shell", "git"]
may_message = ["telegram:2"]
tool_error_limit = 100
max_tool_iterations = 100
[tokens.curious]
token = "curious-token-0000000000"
may = ["agent"]
`))
	p := o.Up()
	o.Telegram.Say(2, 2, `two: memory_write {"scope":"person","content":"my secret is `+secret+`"} ;; memory_write {"scope":"agent","content":"I own it"}`)
	o.WaitSaid(2, 1)
	if found := parleytest.FilesWith(t, o.Home+"/workspaces", secret); len(found) > 0 {
		t.Errorf("it stands in the workspaces: %v", found)
	}
	o.Telegram.Say(1, 1, `one: memory_write {"scope":"agent","content":"`+shared+`"}`)
	o.WaitSaid(1, 1)

	tries := []string{
		`memory_read {}`, `memory_read {"scope":"session"}`, `memory_read {"scope":"person"}`, `memory_read {"scope":"agent"}`,
		`memory_read {"scope":"person","query":"secret"}`, `todo_read {}`,
		`read_file {"path":"MEMORY.md"}`, `read_file {"path":"../../../sessions.db"}`, `read_file {"path":"` + o.Home + `/sessions.db"}`, `read_file {"path":"../telegram%3A2/MEMORY.md"}`,
		`list_directory {"path":".."}`, `glob {"pattern":"../**"}`, `grep {"pattern":"xyzz[y]","path":"."}`, `grep {"pattern":"xyzz[y]","path":".."}`,
		`chat_history {"channel":"telegram","chat_id":"2"}`, `git_log {"path":".."}`,
		`exec_shell {"command":"cat ` + o.Home + `/sessions.db* ../*/* 2>&1 | head -c 2000; ls -la ` + o.Home + ` .."}`,
	}
	attempt := strings.Join(tries, " ;; ")
	const group = -10099
	o.Telegram.Say(1, 1, "one: "+attempt) // the owner
	o.Telegram.Say(3, 3, "three: "+attempt)
	o.Telegram.Say(group, 3, "@parleybot group: "+attempt)
	o.WaitSaid(1, 2)
	o.WaitSaid(3, 1)
	o.WaitSaid(group, 1)
	o.Telegram.Say(group, 2, "@parleybot themselves: "+attempt) // a group in which other people read along
	o.WaitSaid(group, 2)
	posted := o.Ask("POST", "/v1/messages", fmt.Sprintf(`{"to":"agent","text":%s}`, quotedJSON("program: "+attempt)), parleytest.Bearer("curious-token-0000000000")...)
	if posted.Status != 202 {
		t.Fatalf("the program is answered %d %s", posted.Status, posted.Body)
	}
	others := []string{"one", "three", "group", "themselves", "program"}
	for _, who := range others {
		parleytest.WaitFor(t, "all that "+who+" tries", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.shown[who]) > len(tries) })
	}
	for _, who := range others {
		for _, body := range c.saw(who, secret) {
			t.Errorf("%s was shown it: …%s…", who, around(body, secret))
		}
	}
	for _, who := range []string{"three", "program"} {
		if len(c.saw(who, shared)) == 0 {
			t.Errorf("%s was not shown what the agent remembers", who)
		}
	}
	if len(c.saw("two", "only owners may have you write")) == 0 {
		t.Error("who owns nothing wrote into the agent's memory")
	}
	for _, chat := range []int64{1, 3, group} {
		if all := strings.Join(parleytest.Texts(o.Telegram.Sent(chat)), "\n"); strings.Contains(all, secret) {
			t.Errorf("chat %d has %q", chat, all)
		}
	}
	// The person is shown it, also at the beginning of a later conversation.
	o.Telegram.Say(2, 2, "/new")
	o.WaitSaid(2, 2)
	before := len(c.saw("again", secret))
	o.Telegram.Say(2, 2, `again: memory_read {"scope":"person"}`)
	o.WaitSaid(2, 3)
	if before != 0 || len(c.saw("again", secret)) != 2 {
		t.Errorf("whose memory it is was shown it %d times", len(c.saw("again", secret)))
	}
	p.Stop()
	if _, errs, code := o.Run("forget", "--yes", "--user", "telegram:2"); code != 0 {
		t.Fatalf("forget: %d %s", code, errs)
	}
	if found := parleytest.FilesWith(t, o.Home, "my secret is "+secret); len(found) > 0 {
		t.Errorf("after forgetting it is left in %v", found)
	}
}

func quotedJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// around returns a piece of a text with some of the text before and after it.
func around(text, piece string) string {
	i := strings.Index(text, piece)
	return text[max(0, i-200):min(len(text), i+200)]
}

// Two linked accounts are one person: both see the same memory, and the bot counts their turns together.
func TestLinkedAccountsAreOnePerson(t *testing.T) {
	t.Parallel()
	c := &curious{shown: map[string][]string{}}
	w := parleytest.New(t, c.model, "[limits]\nuser_turns_hour = 2\n")
	p := w.Serve()
	w.Telegram.Say(2, 2, `two: memory_write {"scope":"person","content":"likes tea"}`)
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, "/link")
	code := regexp.MustCompile("link ([a-z2-7]{10})").FindStringSubmatch(w.WaitSaid(2, 2)[1])
	if code == nil {
		t.Fatal("there is no code")
	}
	w.Telegram.Say(3, 3, "/link "+code[1])
	w.WaitSaid(3, 1)
	if got := w.WaitSaid(2, 3)[2]; !strings.Contains(got, "telegram:3 is now linked") {
		t.Errorf("whose code it was is told %q", got)
	}
	w.Telegram.Say(3, 3, "three:")
	w.WaitSaid(3, 2)
	if len(c.saw("three:", "likes tea")) == 0 {
		t.Error("the other account is not known to be the same person")
	}
	w.Telegram.Say(3, 3, "three:")
	if got := w.WaitSaid(3, 3)[2]; !strings.Contains(got, "2 times in the past hour") {
		t.Errorf("the third turn of both is answered %q", got)
	}
	w.Telegram.Say(3, 3, "/memory")
	if got := w.WaitSaid(3, 4)[3]; !strings.Contains(got, "likes tea") {
		t.Errorf("it shows %q", got)
	}
	p.Stop()
}

// Every agent can read the operator's knowledge folder, and no agent can change it. The server does not start if the
// folder is missing.
func TestTheOperatorsKnowledge(t *testing.T) {
	t.Parallel()
	c := &curious{shown: map[string][]string{}}
	w := parleytest.New(t, c.model, "[knowledge]\ndir = \"known\"\n")
	if _, errs, code := w.Run("serve"); code != 78 || !strings.Contains(errs, "knowledge.dir") || !strings.Contains(errs, "create the folder") {
		t.Errorf("without the folder: %d %s", code, errs)
	}
	dir := filepath.Join(filepath.Dir(w.File), "known")
	parleytest.Must(t, os.Mkdir(dir, 0o700))
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "deploy.md"), []byte("on xyzzy days"), 0o600))
	p := w.Serve()
	w.Telegram.Say(2, 2, `two: read_file {"path":"knowledge/deploy.md"} ;; write_file {"path":"knowledge/deploy.md","content":"on plugh days"}`)
	w.WaitSaid(2, 1)
	if len(c.saw("two", "on xyzzy days")) == 0 || len(c.saw("two", "is the operator's")) == 0 {
		t.Error("the folder is not read, or can be written")
	}
	if first := c.saw("two", "The operator keeps a folder for you"); len(first) == 0 || !strings.Contains(first[0], "deploy.md") {
		t.Error("the prompt does not say what there is")
	}
	p.Stop()
	if text, err := os.ReadFile(filepath.Join(dir, "deploy.md")); err != nil || string(text) != "on xyzzy days" {
		t.Errorf("it holds %q, %v", text, err)
	}
}
