// Package inputs compares what a tool call works on before and after people approved the call.
package inputs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	agentasks "parley/agent/asks"
	"parley/sessions"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
)

// The modes say what is hashed for an approval: only what the arguments name, or also the content or the times
// of all files in the workspace. They are stored in logs and asks.
const (
	byNameHere = "" // as older releases do: valid on one machine only
	byName     = "name"
	byContent  = "content"
	byTimes    = "times"
)

// walkTimeout limits how long it may take to read a workspace for an approval.
const walkTimeout = 5 * time.Second

// Config holds the parts that a Hasher works with.
type Config struct {
	Workspace func(session string) (*workspace.Dir, error)
	// Running lists the background jobs of a session that are running.
	Running func(ctx context.Context, session string) ([]sessions.Job, error)
	// Anywhere reports whether all processes can compare hashes that leave out what only one machine knows.
	Anywhere func(ctx context.Context) (bool, error)
}

// A Hasher hashes the files that tool calls depend on.
type Hasher struct{ cfg Config }

// New makes a Hasher.
func New(c Config) *Hasher { return &Hasher{c} }

// HashFiles hashes the files that a tool call depends on, so that a change after somebody has approved the call
// is noticed: the session's directory, the files in it that the arguments name, as a whole argument or within a
// command line, and all files of the directory if the call may read others. like is the mode of the hash that
// the new one is compared with; nil if there is none yet.
func (c *Hasher) HashFiles(ctx context.Context, call tools.Call, like *string) (agentasks.InputsHash, error) {
	dir, err := c.cfg.Workspace(call.Session)
	if err != nil {
		return agentasks.InputsHash{}, fmt.Errorf("open the workspace: %w", err)
	}
	words, folders, err := guard.FileWords(call)
	if err != nil {
		return agentasks.InputsHash{}, err
	}
	modes := c.modesFor(ctx, call, like)
	fingerprint := dir.Fingerprint
	if modes[0] == byNameHere {
		fingerprint = dir.LocalFingerprint
	}
	named, err := fingerprint(ctx, words, folders)
	if err != nil {
		return agentasks.InputsHash{}, err
	}
	on, err := compareBy(ctx, named, modes, func(ctx context.Context, mode string) (string, error) { return digestBy(ctx, dir, mode) })
	if errors.Is(err, workspace.ErrChanging) {
		err = c.nameWriters(ctx, call.Session, err)
	}
	return on, err
}

// modesFor returns the modes by which the inputs of a call can be hashed. The first that doesn't take too long
// is used.
func (c *Hasher) modesFor(ctx context.Context, call tools.Call, like *string) []string {
	switch {
	case like != nil:
		return []string{*like}
	case !guard.ReadsOnlyNamed(call):
		return []string{byContent, byTimes}
	}
	// If the other processes can't be looked up, use what every release understands: a server that is down must
	// not make the call fail.
	if able, err := c.cfg.Anywhere(ctx); err != nil || !able {
		return []string{byNameHere}
	}
	return []string{byName}
}

// nameWriters returns an error about files that keep changing, extended by the jobs that may be writing them.
func (c *Hasher) nameWriters(ctx context.Context, session string, err error) error {
	running, failed := c.cfg.Running(ctx, session)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return fmt.Errorf("%w. %s", err, writersText(running))
}

// writersText tells the model what may be writing all the time, and how to continue.
func writersText(running []sessions.Job) string {
	const plain = "A line that only names its files, for programs such as cat, grep, cp or mv, needs no such comparison"
	if len(running) == 0 {
		return "Something writes there: try again once that has ended. " + plain
	}
	var ids []string
	for _, j := range running {
		ids = append(ids, j.ID)
	}
	return fmt.Sprintf("A job that runs in the background may be writing there (%s): wait for its end, or end it with job_stop. %s", strings.Join(ids, ", "), plain)
}

// compareBy returns the inputs of a call, hashed by the first of the modes that doesn't take too long. If all do,
// its error tells the model so.
func compareBy(ctx context.Context, named string, modes []string, digest func(ctx context.Context, mode string) (string, error)) (agentasks.InputsHash, error) {
	for _, mode := range modes {
		work, cancel := context.WithTimeout(ctx, walkTimeout)
		sum, err := digest(work, mode)
		cancel()
		switch {
		case err == nil:
			return agentasks.InputsHash{Mode: mode, Sum: named + sum}, nil
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
			return agentasks.InputsHash{}, err
		}
	}
	return agentasks.InputsHash{}, fmt.Errorf("the workspace has too many files to be compared in %s. A line that only names its files, for programs such as cat, grep, cp or mv, needs no such comparison", walkTimeout)
}

// digestBy returns a hash of all files of a workspace by a mode, or "" for a mode that covers only names.
func digestBy(ctx context.Context, dir *workspace.Dir, mode string) (string, error) {
	switch mode {
	case byNameHere, byName:
		return "", nil
	case byContent:
		return dir.Digest(ctx)
	case byTimes:
		return dir.DigestTimes(ctx)
	}
	return "", fmt.Errorf("files were compared in a way that this release does not know: %q", mode)
}
