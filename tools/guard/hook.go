package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"parley/tools"
)

// A Hook is a program of the operator's that is asked about calls before they run, or
// about results before anybody sees them. It reads one JSON value and writes one.
type Hook struct {
	Path string // absolute
	Args []string
	// Failed is told what is wrong with the program: its calls are denied meanwhile.
	Failed func(ctx context.Context, why string)
}

// Bounds of a hook.
const (
	hookTime   = 5 * time.Second
	hookLinger = 200 * time.Millisecond // for its output, once it has ended
	maxHook    = 8 << 20                // bytes that it reads, and that it writes
	maxReason  = 500                    // bytes
)

// ParseHook reads a command: a path and arguments, parted by blanks. No shell reads it.
func ParseHook(command string) (Hook, error) {
	fields := strings.Fields(command)
	switch {
	case len(fields) == 0:
		return Hook{}, errors.New("it is empty: write the path of a program")
	case !strings.HasPrefix(fields[0], "/"):
		return Hook{}, fmt.Errorf("%q is no absolute path: write one that begins with /", fields[0])
	}
	if _, err := exec.LookPath(fields[0]); err != nil {
		return Hook{}, fmt.Errorf("%s cannot be run: %w", fields[0], errors.Unwrap(err))
	}
	return Hook{Path: fields[0], Args: fields[1:]}, nil
}

// asked is what a hook reads.
type asked struct {
	Agent     string          `json:"agent"`
	Session   string          `json:"session"`
	Turn      string          `json:"turn"`
	Call      string          `json:"call"`
	Person    string          `json:"person"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// answered is what a hook writes.
type answered struct {
	Verdict   string          `json:"verdict"`
	Reason    string          `json:"reason"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
}

func about(call tools.Call) asked {
	return asked{call.Agent, call.Session, call.Turn, call.ID, call.Person, call.Name, call.Args, nil}
}

// Before asks about a call. A program that gives no good answer denies it.
func (h Hook) Before(ctx context.Context, call tools.Call) tools.Verdict {
	said, err := h.ask(ctx, about(call))
	if err == nil {
		switch v := (tools.Verdict{Reason: said.Reason}); said.Verdict {
		case "allow":
			return tools.Verdict{}
		case "change":
			if v.Args = said.Arguments; len(v.Args) > 0 {
				return v
			}
			err = errors.New(`its verdict is "change", and it gives no arguments`)
		case "ask", "deny":
			v.Decision = tools.Decision(said.Verdict)
			return v
		default:
			err = fmt.Errorf(`its verdict is %q: want "allow", "change", "ask" or "deny"`, shown(said.Verdict))
		}
	}
	h.failed(ctx, err)
	return tools.Verdict{Decision: tools.Deny, Reason: call.Name + " was not run: the operator's own check of it failed, and the owner has been told. Trying again is of no use before that is mended."}
}

// After asks about a result. A program that gives no good answer rejects it.
func (h Hook) After(ctx context.Context, call tools.Call, result tools.Result) tools.Review {
	question := about(call)
	question.Result = result.Content
	said, err := h.ask(ctx, question)
	if err == nil {
		switch said.Verdict {
		case "pass":
			return tools.Review{}
		case "change":
			if len(said.Result) > 0 {
				return tools.Review{Content: said.Result}
			}
			err = errors.New(`its verdict is "change", and it gives no result`)
		case "reject":
			return tools.Review{Rejected: true, Reason: said.Reason}
		default:
			err = fmt.Errorf(`its verdict is %q: want "pass", "change" or "reject"`, shown(said.Verdict))
		}
	}
	h.failed(ctx, err)
	return tools.Review{Rejected: true, Reason: "the operator's own check of it failed, and the owner has been told"}
}

// failed tells of a program that gave no good answer. One that was cut off because the
// turn has ended is not to blame.
func (h Hook) failed(ctx context.Context, err error) {
	if h.Failed != nil && ctx.Err() == nil {
		h.Failed(ctx, fmt.Sprintf("%s: %v", h.Path, err))
	}
}

// ask runs the program once.
func (h Hook) ask(ctx context.Context, question asked) (answered, error) {
	input, err := json.Marshal(question)
	if err != nil {
		return answered{}, fmt.Errorf("encode the question: %w", err)
	}
	if len(input) > maxHook {
		return answered{}, fmt.Errorf("what it would have to read has %d bytes, at most %d are allowed", len(input), maxHook)
	}
	output, err := h.run(ctx, input)
	if err != nil {
		return answered{}, err
	}
	var said answered
	if err := json.Unmarshal(output, &said); err != nil {
		return answered{}, errors.New("what it wrote is not one JSON value of its kind")
	}
	said.Reason = shortenReason(said.Reason)
	return said, nil
}

// run gives the program its input and takes its output. What is left of its process
// group then is ended: what it has put into a session of its own, as setsid does, goes on.
func (h Hook) run(ctx context.Context, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Path, h.Args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(input)
	output := &limited{cut: cancel}
	cmd.Stdout, cmd.Stderr = output, io.Discard
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = hookLinger
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("it cannot be started: %w", errors.Unwrap(err))
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind
	switch {
	case output.over:
		return nil, fmt.Errorf("it wrote more than %d bytes", maxHook)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("it took longer than %s", hookTime)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("it left a process behind that holds its output")
	case errors.Is(err, syscall.EPIPE): // it did not read to the end, which is its own affair
	case err != nil:
		return nil, fmt.Errorf("it ended with %w", err)
	}
	return output.text.Bytes(), nil
}

// limited keeps so much of an output, and ends the program that writes more.
type limited struct {
	text bytes.Buffer
	over bool
	cut  func()
}

func (l *limited) Write(p []byte) (int, error) {
	if l.text.Len()+len(p) > maxHook {
		l.over = true
		l.cut()
		return 0, io.ErrShortWrite
	}
	return l.text.Write(p)
}

// shortenReason cuts a reason to the length that is kept.
func shortenReason(s string) string {
	return tools.Clip(strings.ToValidUTF8(s, "\uFFFD"), maxReason)
}
