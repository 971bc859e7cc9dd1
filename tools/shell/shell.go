// Package shell provides the tools with which an agent runs commands in a sandbox.
package shell

import (
	"context"
	"strings"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
)

// Config connects the tools to the sandbox and the sessions' directories.
type Config struct {
	Sandbox sandbox.Sandbox
	// Place returns where the commands of a call run: the folder, and what they may read, write and
	// reach.
	Place func(ctx context.Context, call tools.Call) (sandbox.Place, error)
	// Changed is called when a session's commands may have changed its files.
	Changed func(call tools.Call)
	// Background runs commands that continue after their call; nil if that is not possible.
	Background Background
}

// An Order asks for a command that continues to run after the call that starts it.
type Order struct {
	Args    []string
	Line    string        // the command as people read it
	Timeout time.Duration // after which the command is ended; 0 means as long as is allowed
}

// Background runs commands that continue after the calls that start them. Its results and its
// errors are for the model.
type Background interface {
	// Start starts a command as a job and returns its status.
	Start(ctx context.Context, call tools.Call, o Order) (any, error)
	// Started reports whether an interrupted call had started its command, and returns the job if
	// so.
	Started(ctx context.Context, call tools.Call) (result any, done bool, err error)
}

const (
	// maxSpawned limits how many programs of spawn may run for one session at once.
	maxSpawned = 5
	// maxCommand limits each argument of a command, in bytes: the system accepts no more.
	maxCommand = 120 << 10
	maxTimeout = 300 * time.Second
)

// textBackground tells models what a background command is.
const textBackground = " With background it becomes a job: the call returns its id at once, the job goes on after this turn, for hours if need be, and its end is told here by itself. A job reads the workspace and writes to its own folder jobs/ID alone, which $JOB_DIR names; job_status, job_output and job_stop look after it."

// description describes exec_shell to models.
const description = "Run a shell command (sh -c) in the workspace and return its exit code and what it printed. It runs in a sandbox: it sees the workspace and the system's programs, files outside of the workspace are temporary, and everything it started is ended when it returns. Of long output the middle is left out."

// New makes the tools exec_shell and spawn.
func New(c Config) []tools.Tool {
	s := &shellTools{Config: c, spawnedIn: map[string]int{}}
	return []tools.Tool{
		tools.New(tools.Spec{
			Name: "exec_shell", Effect: tools.Once, Permission: tools.Shell, Timeout: 30 * time.Second, MaxTimeout: maxTimeout,
			Touches:     tools.Touches(func(a shellArgs) tools.Touch { return touchOf(tools.ShellLine(a.Command)) }),
			Shows:       tools.Shows(func(a shellArgs) tools.Showing { return tools.Showing{Text: a.Command, ShownArgs: []string{"command"}} }),
			Description: description + textBackground,
		}, s.execShell, tools.EffectBy(shellArgs.effect), tools.Reconcile(reconcile[shellArgs](s))),
		tools.New(tools.Spec{
			Name: "spawn", Effect: tools.Once, Permission: tools.Shell, Timeout: 60 * time.Second, MaxTimeout: maxTimeout,
			Touches: tools.Touches(func(a spawnArgs) tools.Touch {
				return touchOf(append(tools.Command{a.Command}, a.Args...))
			}),
			Shows: tools.Shows(func(a spawnArgs) tools.Showing {
				return tools.Showing{Text: commandLine(append([]string{a.Command}, a.Args...)), ShownArgs: []string{"command", "args"}}
			}),
			Description: "Run one program with arguments, without a shell, in the workspace and in the same sandbox as exec_shell, and return its exit code and what it printed." + textBackground,
		}, s.spawn, tools.EffectBy(spawnArgs.effect), tools.Reconcile(reconcile[spawnArgs](s))),
	}
}

// NewForeground makes exec_shell for a place where nothing runs in the background.
func NewForeground(c Config) tools.Tool {
	s := &shellTools{Config: c}
	return tools.New(tools.Spec{
		Name: "exec_shell", Effect: tools.Once, Permission: tools.Shell, Timeout: 30 * time.Second, MaxTimeout: maxTimeout,
		Touches: tools.Touches(func(a foregroundArgs) tools.Touch { return touchOf(tools.ShellLine(a.Command)) }),
		Shows: tools.Shows(func(a foregroundArgs) tools.Showing {
			return tools.Showing{Text: a.Command, ShownArgs: []string{"command"}}
		}),
		Description: description,
	}, func(ctx context.Context, call tools.Call, args foregroundArgs) (any, error) {
		return s.execShell(ctx, call, shellArgs{Command: args.Command})
	})
}

type foregroundArgs struct {
	Command string  `json:"command" jsonschema:"the command line, for sh"`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"seconds until it is ended; 30 if left out, at most 300"`
}

// commandLine returns a program and its arguments the way one would type them in a shell.
func commandLine(words []string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; w == "" || strings.Trim(w, plain) != "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// touchOf says what a command touches: it may do anything that the sandbox allows.
func touchOf(command tools.Subject) tools.Touch {
	return tools.Touch{Subject: command, Reads: tools.AnyFiles{}, Writes: tools.AnyFiles{}, Outward: tools.RunsProgram{Effect: "run what reaches the network"}}
}

type shellTools struct {
	Config

	mu        sync.Mutex
	spawnedIn map[string]int // how many programs of spawn are running now, by session
}

type shellArgs struct {
	Command    string  `json:"command" jsonschema:"the command line, for sh"`
	Timeout    float64 `json:"timeout,omitempty" jsonschema:"seconds until it is ended; 30 if left out, at most 300; in the background as long as may be"`
	Background bool    `json:"background,omitempty" jsonschema:"run it as a job, beyond this turn"`
}

func (a shellArgs) effect() tools.Effect { return effectOf(a.Background) }

// effectOf returns what repeating a command would do: a command is Once, never repeated, because it
// may do anything. One that runs in the background is Reconcilable, because the store records
// whether its job was started.
func effectOf(background bool) tools.Effect {
	if background {
		return tools.Reconcilable
	}
	return tools.Once
}

// reconcile makes the function that finds out, for a call that was cut off, whether it had started
// its job.
func reconcile[Args any](s *shellTools) func(context.Context, tools.Call, Args) (any, bool, error) {
	return func(ctx context.Context, call tools.Call, _ Args) (any, bool, error) {
		if s.Background == nil {
			return nil, false, errNoBackground()
		}
		return s.Background.Started(ctx, call)
	}
}

// errNoBackground returns the error for a call that wants to run a command in the background if
// that is not possible.
func errNoBackground() error {
	return tools.Errorf(tools.ExecutionFailed, "nothing can be run in the background here: run it without background")
}

// startJob starts a command as a job, which continues after its call.
func (s *shellTools) startJob(ctx context.Context, call tools.Call, line string, seconds float64, args ...string) (any, error) {
	if s.Background == nil {
		return nil, errNoBackground()
	}
	if err := checkCommand(args); err != nil {
		return nil, err
	}
	return s.Background.Start(ctx, call, Order{Args: args, Line: line, Timeout: time.Duration(min(max(seconds, 0), 1e6) * float64(time.Second))})
}

// shellResult is what exec_shell returns to the model about a command.
type shellResult struct {
	ExitCode   int      `json:"exit_code"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	DurationMS int64    `json:"duration_ms"`
	Refused    []string `json:"refused_hosts,omitempty"`
}

func (s *shellTools) execShell(ctx context.Context, call tools.Call, args shellArgs) (any, error) {
	if args.Background {
		return s.startJob(ctx, call, args.Command, args.Timeout, "sh", "-c", args.Command)
	}
	r, err := s.run(ctx, call, "sh", "-c", args.Command)
	if err != nil {
		return nil, err
	}
	return shellResult{r.ExitCode, r.Stdout, r.Stderr, r.Duration.Milliseconds(), r.Refused}, nil
}

type spawnArgs struct {
	Command     string   `json:"command" jsonschema:"the program, by name or path"`
	Args        []string `json:"args,omitempty" jsonschema:"its arguments, as they are"`
	Description string   `json:"description,omitempty" jsonschema:"what it is run for, for people who watch"`
	Timeout     float64  `json:"timeout,omitempty" jsonschema:"seconds until it is ended; 60 if left out, at most 300; in the background as long as may be"`
	Background  bool     `json:"background,omitempty" jsonschema:"run it as a job, beyond this turn"`
}

func (a spawnArgs) effect() tools.Effect { return effectOf(a.Background) }

// spawnResult is what spawn returns to the model about a program.
type spawnResult struct {
	ExitCode    int      `json:"exit_code"`
	Stdout      string   `json:"stdout"`
	Stderr      string   `json:"stderr"`
	Command     string   `json:"command"`
	Description string   `json:"description"`
	Refused     []string `json:"refused_hosts,omitempty"`
}

func (s *shellTools) spawn(ctx context.Context, call tools.Call, args spawnArgs) (any, error) {
	if args.Background {
		whole := append([]string{args.Command}, args.Args...)
		return s.startJob(ctx, call, strings.Join(whole, " "), args.Timeout, whole...)
	}
	if !s.acquireSlot(call.Session) {
		return nil, tools.Errorf(tools.ExecutionFailed, "%d programs run for this conversation, and at most %d may at once: wait for one to end", maxSpawned, maxSpawned)
	}
	defer s.releaseSlot(call.Session)
	r, err := s.run(ctx, call, append([]string{args.Command}, args.Args...)...)
	if err != nil {
		return nil, err
	}
	if args.Description == "" {
		args.Description = "(no description)"
	}
	return spawnResult{r.ExitCode, r.Stdout, r.Stderr, args.Command, args.Description, r.Refused}, nil
}

// acquireSlot counts one more program that spawn runs for a session. It returns false if there
// are maxSpawned already.
func (s *shellTools) acquireSlot(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spawnedIn[session] >= maxSpawned {
		return false
	}
	s.spawnedIn[session]++
	return true
}

// releaseSlot counts one program fewer for a session.
func (s *shellTools) releaseSlot(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spawnedIn[session]--; s.spawnedIn[session] == 0 {
		delete(s.spawnedIn, session)
	}
}

// run runs a command in the sandbox and waits for its end.
func (s *shellTools) run(ctx context.Context, call tools.Call, args ...string) (sandbox.Result, error) {
	if err := checkCommand(args); err != nil {
		return sandbox.Result{}, err
	}
	place, err := s.Place(ctx, call)
	if err != nil {
		return sandbox.Result{}, err
	}
	c := place.Command(args...)
	c.HeldAt = call.HeldAt
	c.Output = lastLines(call.Progress, time.Now)
	began := time.Now()
	r, err := s.Sandbox.Run(ctx, c)
	s.Changed(call)
	if err != nil {
		return r, sandbox.ErrorForModel(err)
	}
	return r, sandbox.EndedError(r, time.Since(began))
}

// checkCommand returns why a command cannot be run; nil if it can.
func checkCommand(args []string) error {
	for _, arg := range args {
		if len(arg) > maxCommand {
			return tools.Errorf(tools.InvalidArgs, "a command or argument has %d bytes, at most %d are allowed: write a file with write_file and run that", len(arg), maxCommand)
		}
		if strings.ContainsRune(arg, 0) {
			return tools.Errorf(tools.InvalidArgs, "a command cannot hold a NUL byte")
		}
	}
	if args[0] == "" || args[0] == "sh" && strings.TrimSpace(args[len(args)-1]) == "" {
		return tools.Errorf(tools.InvalidArgs, "the command is empty")
	}
	return nil
}
