package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// These are the roles of a fleet's processes, as serve's --role takes them.
const (
	gateway = "gateway"
	worker  = "worker"
)

// These are other roles of members: a server that is a fleet on its own, and a device that runs "parley node".
const (
	alone  = "server"
	device = "node"
)

const (
	fleetPrefix  = "fleet"
	discordToken = "NDI0Mg.of-a.fleet"
)

// A fleet is several processes of the real program over one Redis and one PostgreSQL. The test has started these
// servers and may kill them.
type fleet struct {
	*parleytest.World
	sl    *slacktest.Server
	dc    *discordtest.Server
	once  *onceTool
	redis redisServers
	pg    *sqldbtest.Server
	root  string // the root of the workspaces, which all processes share
	// speaks says whether answers can be read aloud, so that people ask for that.
	speaks bool

	mu         sync.Mutex
	members    []*member
	unexpected []string // how each process ended that the test had not told to end
	// crashpoints, if set, returns variables for the environment of every start but a member's first; killed, if set,
	// is called for each process that has killed itself.
	crashpoints func(role string) []string
	killed      func(role, crashpoint string)
}

// skipUnlessFleet skips a test that takes long and needs the machine for itself, unless such tests are enabled.
func skipUnlessFleet(t *testing.T) {
	t.Helper()
	if testing.Short() || os.Getenv("PARLEY_FLEET") == "" {
		t.Skip("a fleet takes its time and the machine for itself: make fleet, or make chaos")
	}
}

// newFleet returns a fleet without processes; more is appended to its configuration.
func newFleet(t *testing.T, script agenttest.Script, more ...string) *fleet {
	t.Helper()
	return newFleetOver(t, *chaosBus, script, more...)
}

// newFleetOver returns a fleet whose bus is on one Redis or, if over is sentinel or cluster, on such a group of
// servers.
func newFleetOver(t *testing.T, over string, script agenttest.Script, more ...string) *fleet {
	t.Helper()
	skipUnlessFleet(t)
	if _, err := parleytest.Binary(); err != nil { // the build takes long, and no wait for a process should include it
		t.Fatal(err)
	}
	f := &fleet{sl: slacktest.New(parleytest.SlackBot, parleytest.SlackApp), dc: discordtest.New(discordToken), once: newOnceTool(t), redis: startRedis(t, over), pg: sqldbtest.Start(t), root: t.TempDir()}
	slackAPI, err := f.sl.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.sl.Close() })
	discordAPI, err := f.dc.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.dc.Close() }) // it has ended with the test
	f.World = parleytest.New(t, script, fmt.Sprintf(`
[bus]
url = %q
prefix = %q
[store]
url = %q
[workspace]
root = %q
[channels.slack]
api_url = %q
bot_token = %q
app_token = %q
access = "members"
owners = ["U1"]
rate_limit = "none"
introduce = "never"
[channels.discord]
api_url = %q
bot_token = %q
access = "open"
owners = ["1"]
rate_limit = "none"
introduce = "never"
[serve]
drain = "5s"
[limits]
user_turns_hour = 1000000
user_tokens_day = 1000000000
waiting = 100
[agents.defaults]
capabilities = ["file_read", "file_write", "shell", "session"]
queue = "followup"
max_tool_iterations = 100
[agents.main]
may_message = [%q, %q]
`+askSettings+scheduleSettings+strings.Join(more, ""), f.redis.URL(), fleetPrefix, f.pg.URL(), f.root, slackAPI, parleytest.SlackBot, parleytest.SlackApp, discordAPI, discordToken, sharedTelegram, sharedSlack))
	f.Model.Keep(0)
	f.endWithTest()
	return f
}

// endWithTest kills all members at the end of the test. If the test has failed, it saves their logs.
func (f *fleet) endWithTest() {
	t := f.T
	t.Helper()
	t.Cleanup(func() {
		for _, m := range f.members {
			m.end(syscall.SIGKILL)
		}
		if t.Failed() {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, m := range f.members {
				t.Logf("%s said:\n%s", m.name, m.stderr.Tail())
				file := filepath.Join(t.ArtifactDir(), m.name+".log") // kept by go test -artifacts
				if err := os.WriteFile(file, []byte(m.stderr.String()), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// A member is one process of a fleet. Like a service, it is restarted whenever it ends, until end is called.
type member struct {
	f        *fleet
	name     string
	role     string
	listen   string   // the address at which it serves HTTP; "" if it doesn't
	file     string   // the path of a device's configuration
	firstEnv []string // variables for the environment of its first start
	stderr   *parleytest.SyncBuffer
	done     chan struct{}
	over     chan struct{} // closed by end
	starts   atomic.Int64

	mu  sync.Mutex
	cmd *exec.Cmd
	// release is the release that its next start runs; nil means the program of this checkout.
	release      *release
	toldToEnd    bool          // whether the test has told the process to end, or has killed it
	restartDelay time.Duration // before the next start
	// earlierStarts is how many of its earlier starts have begun to serve.
	earlierStarts int
	// stopped is true between the test's SIGSTOP and its SIGCONT.
	stopped bool
	// killsAt is the crashpoint at which this start kills itself, or "". The process may reach the crashpoint only when
	// it ends.
	killsAt string
}

// join adds a process with a home of its own, and waits until it serves. more is added to the environment of its first
// start.
func (f *fleet) join(name, role string, more ...string) *member {
	f.T.Helper()
	return f.add(&member{name: name, role: role, firstEnv: more})
}

// add starts a member, and waits until it serves.
func (f *fleet) add(m *member) *member {
	f.T.Helper()
	m.f, m.stderr, m.done, m.over = f, &parleytest.SyncBuffer{}, make(chan struct{}), make(chan struct{})
	f.mu.Lock()
	f.members = append(f.members, m)
	f.mu.Unlock()
	go m.run()
	parleytest.WaitFor(f.T, m.name+" to serve", func() bool { return m.countStarts() > 0 })
	return m
}

// command returns the command of the member's next start.
func (m *member) command() *exec.Cmd {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.role == device {
		return m.f.Command("--home", m.home(), "--config", m.file, "node")
	}
	cmd := m.f.Command("--home", m.home(), "serve")
	if m.role != alone {
		cmd.Args = append(cmd.Args, "--role", m.role)
	}
	if m.listen != "" {
		cmd.Args = append(cmd.Args, "--listen", m.listen)
	}
	if m.release != nil {
		cmd.Path = m.release.program
		cmd.Args = append(cmd.Args, "--config", m.release.config)
	}
	return cmd
}

// home returns the directory of the member's data.
func (m *member) home() string { return filepath.Join(m.f.Home, m.name) }

// countStarts returns how often the member has begun to serve.
func (m *member) countStarts() int {
	says := "serving"
	if m.role == device {
		says = "the node offers tools"
	}
	return strings.Count(m.stderr.String(), `"msg":"`+says+`"`)
}

// isServing reports whether the member's newest start has begun to serve and was not told to end.
func (m *member) isServing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.toldToEnd && m.countStarts() > m.earlierStarts
}

func (m *member) run() {
	defer close(m.done)
	for {
		cmd, killsAt := m.command(), ""
		cmd.Stderr = m.stderr
		cmd.Env = append(cmd.Env, "PARLEY_ONCE_URL="+m.f.once.url)
		if m.starts.Load() == 0 {
			cmd.Env = append(cmd.Env, m.firstEnv...)
		} else if more := m.f.currentCrashpoints(); more != nil {
			points := more(m.role)
			cmd.Env = append(cmd.Env, points...)
			for _, p := range points {
				if at, kills := strings.CutPrefix(p, "PARLEY_KILL_AT="); kills {
					killsAt = at
				}
			}
		}
		m.mu.Lock()
		select {
		case <-m.over:
			m.mu.Unlock()
			return
		default:
		}
		m.earlierStarts = m.countStarts()
		err := cmd.Start()
		m.cmd, m.toldToEnd, m.stopped, m.killsAt = cmd, false, false, killsAt
		m.mu.Unlock()
		if err != nil {
			m.f.T.Errorf("start %s: %v", m.name, err)
			return
		}
		m.starts.Add(1)
		err = cmd.Wait()
		m.mu.Lock()
		rest := m.restartDelay
		if !m.toldToEnd {
			m.f.addUnexpectedEnd(m, err)
			rest = 500 * time.Millisecond
		}
		m.mu.Unlock()
		select {
		case <-m.over:
			return
		case <-time.After(rest):
		}
	}
}

// currentCrashpoints returns the function that chooses a process's crashpoint, or nil if there is none.
func (f *fleet) currentCrashpoints() func(string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.crashpoints
}

// addUnexpectedEnd records that a process ended although the test had not told it to.
func (f *fleet) addUnexpectedEnd(m *member, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && f.killed != nil && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		f.killed(m.role, m.killsAt)
		return
	}
	f.unexpected = append(f.unexpected, fmt.Sprintf("%s: %v: %s", m.name, err, lastLine(m.stderr.String())))
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// signal sends the process a signal. If the signal ends the process, the member is restarted after rest.
func (m *member) signal(s syscall.Signal, rest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restartDelay = rest
	m.toldToEnd = m.toldToEnd || s == syscall.SIGKILL || s == syscall.SIGTERM
	m.stopped = s == syscall.SIGSTOP || m.stopped && s != syscall.SIGCONT
	if m.cmd != nil {
		_ = m.cmd.Process.Signal(s) // it may have ended
	}
}

// end ends the process for good.
func (m *member) end(s syscall.Signal) {
	select {
	case <-m.over:
	default:
		close(m.over)
		m.signal(s, 0)
	}
	<-m.done
}

// endAll ends all members in good order, once they serve. A process that gets a signal before it handles signals, or
// gets two, ends at once.
func (f *fleet) endAll() {
	f.T.Helper()
	for _, m := range f.members {
		select {
		case <-m.over:
		default:
			parleytest.WaitFor(f.T, m.name+" to serve again", m.isServing)
		}
	}
	var ending sync.WaitGroup
	for _, m := range f.members {
		stuck := time.AfterFunc(parleytest.Patience, func() {
			f.T.Errorf("%s does not end when it is told to", m.name)
			m.signal(syscall.SIGQUIT, 0) // it prints its goroutines
		})
		defer stuck.Stop()
		ending.Go(func() { m.end(syscall.SIGTERM) })
	}
	ending.Wait()
	for _, m := range f.members {
		status, _ := m.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if m.killsAt != "" && status.Signal() == syscall.SIGKILL { // it has reached its crashpoint meanwhile
			continue
		}
		if state := m.cmd.ProcessState; !state.Success() {
			f.T.Errorf("%s ended with %v when it was told to", m.name, state)
		}
	}
}
