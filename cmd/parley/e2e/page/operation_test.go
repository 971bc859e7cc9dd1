package page

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// hostileName is a name that would run a script if the page took it for HTML.
const hostileName = `<img src=x onerror="window.hit=1"><script>window.hit=2</script>`

// These are the tokens of a busy world. Each has different rights.
const (
	readerToken = "reader-token-of-the-test"
	talkerToken = "talker-token-of-the-test"
	gateToken   = "gate-token-of-the-test"
	annToken    = "ann-token-of-the-test"
)

// busyModel plays a model that does what it is told: it writes a file, makes a schedule, or asks a question.
func busyModel(r agenttest.Request) agenttest.Response {
	if r.Rounds() > 0 {
		return agenttest.Reply("done: " + strings.Join(r.Results(), " "))
	}
	switch said := r.Said(); {
	case strings.Contains(said, "write"):
		return agenttest.Calls(agenttest.Call("write_file", `{"path":"notes/plan.md","content":"# The plan\n\nIt stands.\n`+strings.ReplaceAll(hostileName, `"`, `\"`)+`\nhid\u202eden\n"}`))
	case strings.Contains(said, "long"):
		return agenttest.Calls(agenttest.Call("exec_shell", `{"command":"echo one\n`+strings.Repeat(`echo more\n`, 60)+`echo the end"}`))
	case strings.Contains(said, "plan"):
		return agenttest.Calls(agenttest.Call("schedule", `{"action":"add","when":"0 9 * * *","text":"water the plants `+strings.ReplaceAll(hostileName, `"`, `\"`)+`"}`))
	case strings.Contains(said, "remember"):
		return agenttest.Calls(agenttest.Call("memory_write", `{"content":"lives in Ulm","scope":"person"}`))
	case strings.Contains(said, "choose"):
		return agenttest.Calls(agenttest.Call("ask_user", `{"question":"Which color?","choices":["red","blue"]}`))
	}
	return agenttest.Reply("fine")
}

// kicked is Telegram's answer to a message for a group that has removed the bot.
var kicked = telegramtest.Fault{Method: "sendMessage", Chat: -9, Status: 403, Description: "Forbidden: bot was kicked from the group"}

// newBusyWorld returns a world in which each view has something to show: an open request, a question, a dead letter, a
// person who asks to be admitted, a schedule, and the costs of models.
func newBusyWorld(t *testing.T) *parleytest.HTTPWorld {
	t.Helper()
	offered := newOffering(t)
	w := parleytest.New(t, busyModel, offered.settings()+"[tools]\nask = [\"write_file\", \"exec_shell\"]\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"shell\"]\n"+
		fmt.Sprintf("[tokens.reader]\ntoken = %q\nmay = [\"read\"]\n[tokens.talker]\ntoken = %q\nmay = [\"agent\"]\n[tokens.gate]\ntoken = %q\nmay = [\"approve\"]\n[tokens.ann]\ntoken = %q\nmay = [\"agent\", \"own\"]\n", readerToken, talkerToken, gateToken, annToken))
	raw, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	text := strings.Replace(string(raw), "name = \"scripted\"\n", "name = \"scripted\"\nprice_input = 1.0\nprice_output = 2\n", 1)
	text = strings.Replace(text, `access = "list"`, `access = "pairing"`, 1)
	text = regexp.MustCompile(`allow_from = .*\n`).ReplaceAllString(text, "")
	parleytest.Must(t, os.WriteFile(w.File, []byte(text), 0o600))
	w.Telegram.SwitchPrivacy(false)
	w.Telegram.Fail(kicked)
	o := parleytest.ListenHTTP(w)
	o.Up()
	w.Telegram.Say(1, 1, "plan it")
	w.WaitSaid(1, 1)
	w.Telegram.Post(5, 5, map[string]any{"text": "hello", "from": map[string]any{"id": 5, "is_bot": false, "first_name": hostileName}})
	w.WaitSaid(5, 1)
	w.Telegram.Say(-9, 1, "@parleybot hello")
	parleytest.WaitFor(t, "the dead letter", func() bool {
		return strings.Contains(o.Ask("GET", "/v1/dead-letters", "", o.OwnerHeader()...).Body, "telegram:-9")
	})
	remember(o, "likes tea "+hostileName+" hid\u202eden")
	w.Telegram.Say(1, 1, "write it")
	w.WaitSaid(1, 2)
	offered.change(o)
	return o
}

// A visit is a tab that shows the page of a world.
type visit struct {
	*tab
	o *parleytest.HTTPWorld
}

// enterBusy opens the page of a busy world, signed in as the owner.
func enterBusy(t *testing.T) visit {
	t.Helper()
	o := newBusyWorld(t)
	return visit{enter(newBrowser(t), o, 1280, 900), o}
}

// see opens a view, and waits until it contains a text.
func (v visit) see(place, title, text string) {
	v.t.Helper()
	v.show(place)
	v.waitText("main h1", title)
	v.waitText("main", text)
}

// show opens the view at a place.
func (v visit) show(place string) {
	v.t.Helper()
	eval[bool](v.tab, fmt.Sprintf("(location.hash = %q, true)", "#/"+place))
}

// ask returns the server's answer to a GET request of the owner.
func (v visit) ask(path string) string {
	v.t.Helper()
	return v.o.Ask("GET", path, "", v.o.OwnerHeader()...).Body
}

// asks returns the ids of the open requests, the oldest first.
func (v visit) asks() []string {
	v.t.Helper()
	var all struct{ Asks []struct{ ID string } }
	parleytest.Must(v.t, json.Unmarshal([]byte(v.ask("/v1/asks")), &all))
	var ids []string
	for _, a := range all.Asks {
		ids = append(ids, a.ID)
	}
	return ids
}

// whole saves a screenshot of a whole view, however long the view is.
func (v visit) whole(name string, width int64) {
	v.t.Helper()
	if os.Getenv("PARLEY_TEST_PICTURES") == "" {
		return
	}
	long := eval[float64](v.tab, "document.querySelector('#content').scrollHeight + document.querySelector('.top').offsetHeight")
	v.do(chromedp.EmulateViewport(width, int64(long)+4))
	v.picture(fmt.Sprintf("%s-%d", name, width))
	v.do(chromedp.EmulateViewport(width, 900))
}

// A sight is a view, with a title and a text that it must show.
type sight struct{ place, title, text string }

// operation lists the views for operators, and what each must show in a busy world.
var operation = []sight{
	{"overview", "Overview", "ready"},
	{"approvals", "Approvals", "notes/plan.md"},
	{"dead-letters", "Dead letters", "telegram:-9"},
	{"people", "People", "wants access"},
	{"browsers", "Browsers", "this browser"},
	{"schedules", "Schedules", "water the plants"},
	{"jobs", "Jobs", "No jobs."},
	{"configuration", "Configuration", "tokens.reader.token"},
	{"agents", "Agents", "read_file"},
	{"mcp", "MCP servers", "hid"},
	{"nodes", "Nodes", "No device has joined."},
	{"memory/person/telegram:1", "Memory", "likes tea"},
	{"usage", "Usage", "scripted"},
	{"audit", "Audit", "schedule"},
	{"why/telegram:1", "Why", "It was answered."},
	{"doctor", "Doctor", "@parleybot answers"},
	{"log", "Log", "turn ended"},
}

// chatWithRequest is a conversation of a busy world that has an open request.
var chatWithRequest = sight{"chat/main%3Atelegram%3A1", "plan it", "notes/plan.md"}

// Each view shows its content on large and small screens. Names that people have chosen cannot run scripts, and nothing
// is wider than the screen.
func TestViewsShowWhatThereIs(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	for _, width := range []int64{1280, 390, 360} {
		v.do(chromedp.EmulateViewport(width, 900))
		if hides := eval[bool](v.tab, "(n => n.scrollWidth > n.clientWidth || n.scrollHeight > n.clientHeight || !n.checkVisibility())(document.querySelector('.views'))"); hides && width >= 1280 {
			t.Errorf("on a screen of %d, some views are out of sight", width)
		}
		for _, view := range operation {
			v.see(view.place, view.title, view.text)
			if over := eval[int](v.tab, "document.querySelector('#content').scrollWidth - document.querySelector('#content').clientWidth"); over > 0 {
				t.Errorf("%s is %d pixels wider than a screen of %d", view.place, over, width)
			}
			v.whole(strings.Split(view.place, "/")[0], width)
		}
	}
	v.see("people", "People", "window.hit=2")
	v.see("overview", "Overview", "as @parleybot")
	v.waitText("main", "last message sent")
	v.see("schedules", "Schedules", "window.hit=2")
	v.see("approvals", "Approvals", `hid\u202eden`)
	v.see("mcp", "MCP servers", "window.hit=2")
	v.see("memory/person/telegram:1", "Memory", "window.hit=2")
	v.waitText("main pre", `hid\u202eden`)
	if n := eval[int](v.tab, "document.querySelectorAll('main script, main img, main [onerror], main [style]').length"); n != 0 {
		t.Errorf("%d elements were made of texts", n)
	}
	if eval[bool](v.tab, "window.hit !== undefined") {
		t.Error("a text has run as a script")
	}
}

// The navigation offers only the views that the person may see, and each of these works for the person.
func TestViewsAreForThoseWhoMaySeeThem(t *testing.T) {
	t.Parallel()
	o := newBusyWorld(t)
	b := newBrowser(t)
	for token, want := range map[string]string{
		readerToken: "Chat Overview Jobs Agents Browsers Usage",
		talkerToken: "Chat Approvals Browsers",
		gateToken:   "Approvals Browsers",
		annToken:    "Chat Approvals Schedules Browsers",
	} {
		v := visit{b.open(o.URL, 1280, 900), o}
		v.write("#given", token)
		v.wait("the page", "document.querySelector('.views')")
		names := eval[[]string](v.tab, "[...document.querySelectorAll('.views a')].map(a => a.firstChild.textContent)")
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s sees %q, want %q", token, got, want)
		}
		for _, name := range names {
			v.show(strings.ToLower(name))
			v.waitText(".views [aria-current]", name)
			v.wait("the view", "!document.querySelector('main [role=status].empty')")
			if wrong := v.text("main .note.error"); wrong != "" {
				t.Errorf("%s is told in %s: %s", token, name, wrong)
			}
		}
		v.press("Sign out")
		v.wait("the sign-in", "document.querySelector('.signin input')")
		v.forgive("status of 401") // before the sign-in, the page's first request is refused
	}
}

// Views show at once what begins and ends on the server, without waiting for their next regular reload.
func TestNewsComeByThemselves(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	eval[bool](v.tab, "(window.setInterval = () => 0, true)") // the page does not poll anymore
	v.see("approvals", "Approvals", "notes/plan.md")
	v.waitText(".views a .badge", "1")
	v.o.Ask("POST", "/v1/asks/"+v.openAsk(), `{"answer":"deny"}`, v.o.OwnerHeader()...)
	v.waitText("main .empty", "No open requests.")
	v.wait("the number to go", "!document.querySelector('.views a .badge')")
	v.o.Telegram.Say(1, 1, "long")
	v.waitText(".request", "echo one")
	v.waitText(".views a .badge", "1")
	v.see("overview", "Overview", "exec_shell")
	v.o.Telegram.Say(-9, 1, "@parleybot another one")
	v.waitText(".tiles", "2 dead letters")
	v.see("dead-letters", "Dead letters", "kicked")
	v.wait("both letters", "document.querySelectorAll('main tbody tr').length === 2")
	var all struct{ Letters []struct{ ID string } }
	parleytest.Must(t, json.Unmarshal([]byte(v.ask("/v1/dead-letters")), &all)) // the oldest first
	for n, row := range eval[[]string](v.tab, "[...document.querySelectorAll('main tbody tr')].map(r => [...r.querySelectorAll('button')].find(b => b.textContent === 'Replay').ariaLabel)") {
		if want := "Replay " + all.Letters[len(all.Letters)-1-n].ID; row != want {
			t.Errorf("row %d has %q, want %q: the newest comes first", n, row, want)
		}
	}
}

// A browser opens at most six connections to a server. More tabs than that still get the server's events.
func TestManyTabsShareOneStream(t *testing.T) {
	t.Parallel()
	o := newBusyWorld(t)
	b := newBrowser(t)
	tabs := []visit{{enter(b, o, 800, 600), o}}
	tabs[0].see("approvals", "Approvals", "notes/plan.md")
	for range 7 {
		v := visit{b.open(o.URL+"/#/approvals", 800, 600), o}
		v.waitText("main", "notes/plan.md")
		tabs = append(tabs, v)
	}
	o.Ask("POST", "/v1/asks/"+tabs[0].openAsk(), `{"answer":"deny"}`, o.OwnerHeader()...)
	for _, v := range tabs {
		v.waitText("main .empty", "No open requests.")
	}
}

// Each view works with a screen reader and a keyboard, and has enough contrast.
func TestViewsAreAccessible(t *testing.T) {
	t.Parallel()
	axe := axeCore(t)
	v := enterBusy(t)
	eval[bool](v.tab, axe)
	for _, scheme := range []string{"light", "dark"} {
		v.look(scheme)
		for _, width := range []int64{1280, 390} {
			v.do(chromedp.EmulateViewport(width, 900))
			for _, view := range slices.Concat(operation, []sight{chatWithRequest}) {
				v.see(view.place, view.title, view.text)
				switch view.place {
				case chatWithRequest.place:
					v.press("Files")
					v.waitText(".files-panel", "no files yet")
				case "overview":
					v.waitText(".charts", "Cost by day and model")
					eval[bool](v.tab, "(document.querySelectorAll('.chart details').forEach(d => d.open = true), true)")
				case "browsers":
					if width < 1280 {
						v.press("Menu1 open requests")
						v.wait("the menu", "document.querySelector('.views').checkVisibility()")
					}
				}
				for _, found := range v.axe() {
					t.Errorf("%s, %s, %d pixels: %s", view.place, scheme, width, found)
				}
			}
			if scheme == "dark" {
				v.see("approvals", "Approvals", "notes/plan.md")
				v.whole("approvals-dark", width)
				v.see("overview", "Overview", "ready")
				v.whole("overview-dark", width)
			}
		}
	}
}

// axeCore returns the source of axe-core. It skips the test if axe-core is not there.
func axeCore(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("PARLEY_TEST_PAGE")
	if folder == "" {
		t.Skip("run this below .ci/node page, which brings axe-core")
	}
	script, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	parleytest.Must(t, err)
	return string(script) + "; true"
}

// axe returns the problems that axe-core finds in the current page.
func (v visit) axe() []string {
	v.t.Helper()
	eval[bool](v.tab, "(window.axeFound = undefined, axe.run(document, {resultTypes: ['violations']}).then(r => { window.axeFound = r.violations.flatMap(x => x.nodes.map(n => x.id + ': ' + n.html.slice(0, 200) + ' ' + (n.failureSummary || ''))) }), true)")
	v.wait("axe-core", "window.axeFound")
	return eval[[]string](v.tab, "window.axeFound")
}
