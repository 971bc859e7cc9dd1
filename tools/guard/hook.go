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
	"parley/tools/plainjson"
)

// A Hook is a program of the operator's that is asked about calls before they run, or about results
// before anybody sees them. It reads one JSON value and writes one.
type Hook struct {
	Path string // absolute
	Args []string
	// Failed is called with the reason when the program gives no valid answer. Such a call is
	// denied.
	Failed func(ctx context.Context, why string)
}

// Limits for one run of a hook.
const (
	hookTimeout   = 5 * time.Second
	maxHookLinger = 200 * time.Millisecond // how long a hook's output may stay open after the hook has ended, if a child process still has it open
	maxHookBytes  = 8 << 20                // bytes that a hook is sent, and bytes that it may write
	maxReason     = 500                    // bytes of the reason that a hook gives
)

// ParseHook parses a command: a path and arguments, separated by blanks. It isn't a shell line.
func ParseHook(command string) (Hook, error) {
	fields := strings.Fields(command)
	switch {
	case len(fields) == 0:
		return Hook{}, errors.New("it's empty: write the path of a program")
	case !strings.HasPrefix(fields[0], "/"):
		return Hook{}, fmt.Errorf("%q isn't an absolute path: write one that begins with /", fields[0])
	}
	if _, err := exec.LookPath(fields[0]); err != nil {
		return Hook{}, fmt.Errorf("%s can't be run: %w", fields[0], errors.Unwrap(err))
	}
	return Hook{Path: fields[0], Args: fields[1:]}, nil
}

// A hookQuestion is the question to a hook: the JSON that it reads from standard input.
type hookQuestion struct {
	Agent     string          `json:"agent"`
	Session   string          `json:"session"`
	Turn      string          `json:"turn"`
	Call      string          `json:"call"`
	Person    string          `json:"person"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result,omitempty"`
}

// A hookAnswer is the JSON that a hook writes to its standard output.
type hookAnswer struct {
	Verdict   string          `json:"verdict"`
	Reason    string          `json:"reason"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
}

func questionAbout(call tools.Call) hookQuestion {
	return hookQuestion{call.Agent, call.Session, call.Turn, call.ID, call.Person, call.Name, call.Args, nil}
}

// Before asks the program about a call. If the program gives no valid answer, the call is denied.
func (h Hook) Before(ctx context.Context, call tools.Call) tools.Verdict {
	said, err := h.query(ctx, questionAbout(call))
	if err == nil {
		switch v := (tools.Verdict{Reason: said.Reason}); said.Verdict {
		case "allow":
			return tools.Verdict{}
		case "change":
			if v.Args = said.Arguments; len(v.Args) > 0 {
				return v
			}
			err = errors.New(`its verdict is "change", but it gives no arguments`)
		case "ask", "deny":
			v.Decision = tools.Decision(said.Verdict)
			return v
		default:
			err = fmt.Errorf(`its verdict is %q, but it has to be "allow", "change", "ask" or "deny"`, tools.OneLine(said.Verdict))
		}
	}
	h.reportFailure(ctx, err)
	return tools.Verdict{Decision: tools.Deny, Reason: call.Name + " was not run: the operator's own check of it failed, and the owner has been told. Trying again won't help until that's fixed."}
}

// After asks the program about a result. If the program gives no valid answer, the result is
// rejected.
func (h Hook) After(ctx context.Context, call tools.Call, result tools.Result) tools.ResultReview {
	question := questionAbout(call)
	question.Result = result.Content
	said, err := h.query(ctx, question)
	if err == nil {
		switch said.Verdict {
		case "pass":
			return tools.ResultReview{}
		case "change":
			if len(said.Result) > 0 {
				return tools.ResultReview{Content: said.Result}
			}
			err = errors.New(`its verdict is "change", but it gives no result`)
		case "reject":
			return tools.ResultReview{Rejected: true, Reason: said.Reason}
		default:
			err = fmt.Errorf(`its verdict is %q, but it has to be "pass", "change" or "reject"`, tools.OneLine(said.Verdict))
		}
	}
	h.reportFailure(ctx, err)
	return tools.ResultReview{Rejected: true, Reason: "the operator's own check of it failed, and the owner has been told"}
}

// reportFailure reports a program that gave no valid answer. It doesn't report one that was cut off
// because the turn ended.
func (h Hook) reportFailure(ctx context.Context, err error) {
	if h.Failed != nil && ctx.Err() == nil {
		h.Failed(ctx, fmt.Sprintf("%s: %v", h.Path, err))
	}
}

// query runs the program once. The program reads the question and writes the answer, both as
// JSON.
func (h Hook) query(ctx context.Context, question hookQuestion) (hookAnswer, error) {
	input, err := plainjson.Marshal(question)
	if err != nil {
		return hookAnswer{}, fmt.Errorf("encode the question: %w", err)
	}
	if len(input) > maxHookBytes {
		return hookAnswer{}, fmt.Errorf("it would have to read %d bytes, but at most %d are allowed", len(input), maxHookBytes)
	}
	output, err := h.run(ctx, input)
	if err != nil {
		return hookAnswer{}, err
	}
	var said hookAnswer
	if err := json.Unmarshal(output, &said); err != nil {
		return hookAnswer{}, errors.New("it didn't write one JSON value of the right kind")
	}
	said.Reason = shortenReason(said.Reason)
	return said, nil
}

// run passes the program its input and returns its output. It then kills what is left of the
// program's process group; a process that moved into a session of its own, with setsid for example,
// goes on.
func (h Hook) run(ctx context.Context, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Path, h.Args...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(input)
	output := &limitedBuffer{stop: cancel}
	cmd.Stdout, cmd.Stderr = output, io.Discard
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = maxHookLinger
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("it can't be started: %w", errors.Unwrap(err))
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // kill what the program left behind
	switch {
	case output.exceeded:
		return nil, fmt.Errorf("it wrote more than %d bytes", maxHookBytes)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("it took longer than %s", hookTimeout)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, errors.New("it left a process behind that keeps its output open")
	case errors.Is(err, syscall.EPIPE): // the hook did not read all of its input, which is allowed
	case err != nil:
		return nil, fmt.Errorf("it ended with %w", err)
	}
	return output.text.Bytes(), nil
}

// A limitedBuffer keeps at most maxHookBytes bytes of output, and kills a program that writes more.
type limitedBuffer struct {
	text     bytes.Buffer
	exceeded bool
	stop     func()
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.text.Len()+len(p) > maxHookBytes {
		l.exceeded = true
		l.stop()
		return 0, io.ErrShortWrite
	}
	return l.text.Write(p)
}

// shortenReason cuts a reason to maxReason bytes.
func shortenReason(s string) string {
	return tools.Clip(strings.ToValidUTF8(s, "\uFFFD"), maxReason)
}
