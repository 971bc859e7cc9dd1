//go:build linux

package nodes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// A pageStep is one block of docs/nodes.md: the content of a file, or commands. It belongs to the server or to the
// device.
type pageStep struct {
	place string // "server" or "pi"
	file  string // relative to the user's home; "" if text contains commands
	text  string
}

// thermometerSteps returns the blocks of the page's section about the thermometer, in order.
func thermometerSteps(t *testing.T) (steps []pageStep) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "nodes.md"))
	parleytest.Must(t, err)
	_, section, found := strings.Cut(string(raw), "\n## A thermometer on a Raspberry Pi\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^   ```[a-z]+ (server|pi) ?(.*)\n((?:   .*\n|\n)*?)   ```\n").FindAllStringSubmatch(section, -1) {
		text := regexp.MustCompile("(?m)^   ").ReplaceAllString(m[3], "")
		steps = append(steps, pageStep{place: m[1], file: m[2], text: text})
	}
	if blocks := strings.Count(section, "```") / 2; !found || len(steps) != blocks || blocks < 5 {
		t.Fatalf("%d of %d blocks can be followed", len(steps), blocks)
	}
	return steps
}

// A reader follows the instructions of the page.
type reader struct {
	t        *testing.T
	w        *parleytest.HTTPWorld
	server   *parleytest.Process
	pi       string            // the home of the device's user
	programs map[string]string // by place, a folder that contains the program parley for that place
	instead  *strings.Replacer // replaces names of the page that differ in the test
}

// newReader prepares a server, a device with a sensor that shows 21.4 degrees, and the program for both.
func newReader(t *testing.T, w *parleytest.HTTPWorld) *reader {
	t.Helper()
	r := &reader{t: t, w: w, pi: t.TempDir(), programs: map[string]string{}}
	program, err := parleytest.Binary()
	parleytest.Must(t, err)
	for place, line := range map[string]string{
		// There is no terminal, so nothing can ask for input.
		"server": fmt.Sprintf(`case "$1 $2" in "nodes accept") set -- "$@" --yes;; esac; exec %s --home %s --config %s "$@"`, program, w.Home, w.File),
		"pi":     "exec " + program + ` "$@"`,
	} {
		r.programs[place] = t.TempDir()
		parleytest.Must(t, os.WriteFile(filepath.Join(r.programs[place], "parley"), []byte("#!/bin/sh\n"+line+"\n"), 0o700)) //nolint:gosec // it is a program
	}
	sensors, err := os.MkdirTemp("/var/tmp", "sensors") // not below /tmp, because commands have a /tmp of their own
	parleytest.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sensors) })
	sensors, err = filepath.Abs(sensors)
	parleytest.Must(t, err)
	parleytest.Must(t, os.Chmod(sensors, 0o755)) //nolint:gosec // everybody may read the temperature
	for _, dir := range []string{"w1_bus_master1/28-0316", "bus/w1/devices"} {
		parleytest.Must(t, os.MkdirAll(filepath.Join(sensors, dir), 0o755)) //nolint:gosec // see above
	}
	parleytest.Must(t, os.WriteFile(filepath.Join(sensors, "w1_bus_master1/28-0316/temperature"), []byte("21437\n"), 0o644)) //nolint:gosec // see above
	parleytest.Must(t, os.Symlink("../../../w1_bus_master1/28-0316", filepath.Join(sensors, "bus/w1/devices/28-0316")))
	r.instead = strings.NewReplacer("/sys/bus/w1", sensors+"/bus/w1", "/sys/devices/w1_bus_master1", sensors+"/w1_bus_master1", "https://parley.example.com", w.URL)
	return r
}

// follow carries out a block of the page.
func (r *reader) follow(s pageStep) {
	r.t.Helper()
	text := r.instead.Replace(s.text)
	switch {
	case s.place == "server" && s.file != "": // the page says to append this to the file
		old, err := os.ReadFile(r.w.File)
		parleytest.Must(r.t, err)
		parleytest.Must(r.t, os.WriteFile(r.w.File, append(old, text...), 0o600))
		parleytest.Must(r.t, r.server.Cmd.Process.Signal(syscall.SIGHUP))
	case s.file != "":
		path := filepath.Join(r.pi, s.file)
		parleytest.Must(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
		parleytest.Must(r.t, os.WriteFile(path, []byte(text), 0o600))
	default:
		for line := range strings.Lines(text) {
			r.run(s.place, strings.TrimSpace(line))
		}
	}
}

// run runs a command line. If it starts the node, the node keeps running.
func (r *reader) run(place, line string) {
	t := r.t
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = []string{"PATH=" + r.programs[place] + ":" + os.Getenv("PATH"), "HOME=" + r.pi, "TMPDIR=" + os.TempDir()}
	if line == "parley node" {
		log := &parleytest.SyncBuffer{}
		cmd.Args[2], cmd.Stdout, cmd.Stderr = "exec "+line, log, log
		parleytest.Must(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("the node said:\n%s", log.Tail())
			}
		})
		here(r.w)
		return
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	if strings.Contains(line, "nodes invite") {
		code := regexp.MustCompile(`[a-z2-7]{5}-[a-z2-7]{5}`).FindString(string(out))
		r.instead = strings.NewReplacer("https://parley.example.com", r.w.URL, "k7f3m-2q9xw", code)
	}
}

// A person who follows the page about the thermometer gets the temperature from the agent, and nobody has to approve
// the call.
func TestTheThermometerOfThePage(t *testing.T) {
	t.Parallel()
	const tool = "pi__living-room__temperature"
	w := parleytest.ListenHTTP(parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		last := r.Messages()[len(r.Messages())-1]
		switch {
		case last.Role == "tool":
			return agenttest.Reply("The living room has " + last.Content)
		case strings.Contains(last.Content, "temperature") && slices.Contains(r.Tools(), tool):
			return agenttest.Calls(agenttest.Call(tool, "{}"))
		}
		return agenttest.Reply("I don't know")
	}, ""))
	w.NeedsSandbox()
	r := newReader(t, w)
	r.server = w.Up()
	const question = "what is the temperature of the living room?"
	w.Telegram.Say(2, 2, question)
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "I don't know")
	for _, s := range thermometerSteps(t) {
		r.follow(s)
	}
	var said string
	for tries := 2; said == "" || strings.Contains(said, "I don't know"); tries++ { // agents have the tool a moment later
		if tries > 50 {
			t.Fatal("the agent has no thermometer")
		}
		w.Telegram.Say(2, 2, question)
		said = w.WaitSaid(2, tries)[tries-1]
	}
	parleytest.Wants(t, said, "21.4 degrees Celsius")
}
