// Package shell is the tools with which an agent runs commands, in a sandbox.
package shell

import (
	"context"
	"strings"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
)

// Config is what the tools work with.
type Config struct {
	Sandbox sandbox.Sandbox
	// Place returns where a call's commands run.
	Place func(ctx context.Context, call tools.Call) (sandbox.Place, error)
	// Changed is told that a session's commands may have changed its files.
	Changed func(call tools.Call)
}

const (
	// mostSpawned bounds the programs of spawn that run for one session at once.
	mostSpawned = 5
	// maxCommand bounds what a command is made of: the system takes no more in one argument.
	maxCommand = 120 << 10
	mostTime   = 300 * time.Second
)

// New makes exec_shell and spawn.
func New(c Config) []tools.Tool {
	s := &shellTools{Config: c, spawned: map[string]int{}}
	return []tools.Tool{
		tools.New(tools.Spec{
			Name: "exec_shell", Effect: tools.Once, Permission: tools.Shell, Timeout: 30 * time.Second, MaxTimeout: mostTime,
			Description: "Run a shell command (sh -c) in the workspace and return its exit code and what it printed. It runs in a sandbox: it sees the workspace and the system's programs, files outside of the workspace are temporary, and everything it started is ended when it returns. Of long output the middle is left out.",
		}, s.execShell),
		tools.New(tools.Spec{
			Name: "spawn", Effect: tools.Once, Permission: tools.Shell, Timeout: 60 * time.Second, MaxTimeout: mostTime,
			Description: "Run one program with arguments, without a shell, in the workspace and in the same sandbox as exec_shell, and return its exit code and what it printed.",
		}, s.spawn),
	}
}

type shellTools struct {
	Config

	mu      sync.Mutex
	spawned map[string]int // how many run, by session
}

type shellArgs struct {
	Command string  `json:"command" jsonschema:"the command line, for sh"`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"seconds until it is ended; 30 if left out, at most 300"`
}

// ran is what came of a command of exec_shell.
type ran struct {
	ExitCode   int      `json:"exit_code"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	DurationMS int64    `json:"duration_ms"`
	Refused    []string `json:"refused_hosts,omitempty"`
}

func (s *shellTools) execShell(ctx context.Context, call tools.Call, args shellArgs) (any, error) {
	r, err := s.run(ctx, call, "sh", "-c", args.Command)
	if err != nil {
		return nil, err
	}
	return ran{r.ExitCode, r.Stdout, r.Stderr, r.Duration.Milliseconds(), r.Refused}, nil
}

type spawnArgs struct {
	Command     string   `json:"command" jsonschema:"the program, by name or path"`
	Args        []string `json:"args,omitempty" jsonschema:"its arguments, as they are"`
	Description string   `json:"description,omitempty" jsonschema:"what it is run for, for people who watch"`
	Timeout     float64  `json:"timeout,omitempty" jsonschema:"seconds until it is ended; 60 if left out, at most 300"`
}

// spawned is what came of a program of spawn.
type spawned struct {
	ExitCode    int      `json:"exit_code"`
	Stdout      string   `json:"stdout"`
	Stderr      string   `json:"stderr"`
	Command     string   `json:"command"`
	Description string   `json:"description"`
	Refused     []string `json:"refused_hosts,omitempty"`
}

func (s *shellTools) spawn(ctx context.Context, call tools.Call, args spawnArgs) (any, error) {
	if !s.begin(call.Session) {
		return nil, tools.Errorf(tools.ExecutionFailed, "%d programs run for this conversation, and at most %d may at once: wait for one to end", mostSpawned, mostSpawned)
	}
	defer s.end(call.Session)
	r, err := s.run(ctx, call, append([]string{args.Command}, args.Args...)...)
	if err != nil {
		return nil, err
	}
	if args.Description == "" {
		args.Description = "(no description)"
	}
	return spawned{r.ExitCode, r.Stdout, r.Stderr, args.Command, args.Description, r.Refused}, nil
}

func (s *shellTools) begin(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spawned[session] >= mostSpawned {
		return false
	}
	s.spawned[session]++
	return true
}

func (s *shellTools) end(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spawned[session]--; s.spawned[session] == 0 {
		delete(s.spawned, session)
	}
}

// run runs a command for a call.
func (s *shellTools) run(ctx context.Context, call tools.Call, args ...string) (sandbox.Result, error) {
	for _, arg := range args {
		if len(arg) > maxCommand {
			return sandbox.Result{}, tools.Errorf(tools.InvalidArgs, "a command or argument has %d bytes, at most %d are allowed: write a file with write_file and run that", len(arg), maxCommand)
		}
		if strings.ContainsRune(arg, 0) {
			return sandbox.Result{}, tools.Errorf(tools.InvalidArgs, "a command cannot hold a NUL byte")
		}
	}
	if args[0] == "" || args[0] == "sh" && strings.TrimSpace(args[len(args)-1]) == "" {
		return sandbox.Result{}, tools.Errorf(tools.InvalidArgs, "the command is empty")
	}
	place, err := s.Place(ctx, call)
	if err != nil {
		return sandbox.Result{}, err
	}
	c := place.Command(args...)
	c.Held = call.Held
	c.Output = lastLines(call.Progress, time.Now)
	began := time.Now()
	r, err := s.Sandbox.Run(ctx, c)
	s.Changed(call)
	if err != nil {
		return r, sandbox.NotRun(err)
	}
	return r, sandbox.Ended(r, time.Since(began))
}
