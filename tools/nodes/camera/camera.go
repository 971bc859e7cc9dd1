// Package camera provides the tool with which an agent takes a picture with a device's camera.
package camera

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"parley/tools"
)

// Tool is the name of the tool.
const Tool = "camera_picture"

// Config connects the tool to the device.
type Config struct {
	// Command is a program with its arguments that writes a picture to its standard output. It is the operator's own, and
	// runs without a sandbox, because a camera is a device of the machine.
	Command []string
	// Write writes a file of the call's workspace.
	Write func(ctx context.Context, call tools.Call, name string, content []byte) error
	Now   func() time.Time // nil means time.Now
}

const (
	maxPicture  = 20 << 20  // bytes that are kept of a picture
	maxShown    = 700 << 10 // bytes of a picture that is part of the result
	maxStderr   = 2000
	outputGrace = 2 * time.Second // for the output of a command that was killed to end
)

// A picture is what the tool returns.
type picture struct {
	Path  string `json:"path"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
	// Base64 is the picture itself, unless it is too large.
	Base64 []byte `json:"picture_base64,omitempty"`
	Note   string `json:"note,omitempty"`
}

// New makes the tool.
func New(c Config) tools.Tool {
	if c.Now == nil {
		c.Now = time.Now
	}
	return tools.New(tools.Spec{
		Name: Tool, Effect: tools.Once, Timeout: 30 * time.Second, MaxTimeout: -1,
		Touches:     tools.TouchesAlways(tools.Touch{Reads: tools.NoFiles{}, Writes: tools.AnyFiles{}, Outward: tools.NothingOutward{}}),
		Description: about,
	}, func(ctx context.Context, call tools.Call, _ struct{}) (any, error) { return c.take(ctx, call) })
}

// take takes a picture, and stores it in the workspace.
func (c Config) take(ctx context.Context, call tools.Call) (any, error) {
	raw, err := c.run(ctx)
	if err != nil {
		return nil, err
	}
	kind := http.DetectContentType(raw)
	ending, ok := strings.CutPrefix(kind, "image/")
	if !ok {
		return nil, tools.Errorf(tools.ExecutionFailed, textNoPicture, len(raw), kind)
	}
	sum := sha256.Sum256([]byte(call.Key)) // two pictures of the same second have two names
	p := picture{
		Path: fmt.Sprintf("pictures/%s-%s.%s", c.Now().UTC().Format("2006-01-02T15-04-05Z"), hex.EncodeToString(sum[:3]), ending),
		Type: kind, Bytes: len(raw),
	}
	if err := c.Write(ctx, call, p.Path, raw); err != nil {
		return nil, tools.DirError(err)
	}
	if p.Base64 = raw; len(raw) > maxShown {
		p.Base64, p.Note = nil, fmt.Sprintf(textLarge, maxShown>>10)
	}
	return p, nil
}

// run runs the command, and returns what it has written. When it returns, the command and what it has started in its
// process group have ended.
func (c Config) run(ctx context.Context) ([]byte, error) {
	out, errs := &limited{most: maxPicture}, &limited{most: maxStderr}
	cmd := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputGrace
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly nobody is left there
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, tools.Errorf(tools.ExecutionFailed, textFailed, err, strings.ToValidUTF8(errs.String(), ""))
	case out.over:
		return nil, tools.Errorf(tools.ExecutionFailed, textTooLarge, maxPicture>>20)
	}
	return out.Bytes(), nil
}

// limited keeps the beginning of what is written to it.
type limited struct {
	bytes.Buffer
	most int
	over bool // it has left something out
}

func (l *limited) Write(p []byte) (int, error) {
	keep := p[:min(len(p), l.most-l.Len())]
	l.over = l.over || len(keep) < len(p)
	l.Buffer.Write(keep)
	return len(p), nil
}

// ReadFrom hides that of the buffer, which has no limit.
func (l *limited) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{l}, r) //nolint:wrapcheck // it is os/exec that reads it
}
