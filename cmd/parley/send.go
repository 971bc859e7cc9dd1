package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/channels/outbox"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server"
	"parley/cmd/parley/terminal"
	"parley/cmd/parley/terminal/client"
	"parley/tools/plainjson"
)

type sendCmd struct {
	To      []string      `help:"A target or an address, CHANNEL:CHAT or CHANNEL:CHAT/THREAD; can be repeated. For an agent, use agent or agent:NAME." placeholder:"TO" required:""`
	Text    string        `arg:"" optional:"" help:"The text to send, as Markdown. If omitted, it's read from standard input."`
	File    string        `help:"A file to send along." placeholder:"FILE"`
	Key     string        `help:"A key for the topic: a later message with the same key edits this one or goes into its thread." placeholder:"KEY"`
	Wait    bool          `help:"Wait for the delivery, and report it in the exit code: 1 failed, 3 unknown, 4 still queued."`
	Timeout time.Duration `help:"How long to wait." default:"30s"`
}

// maxFile is the size of the largest file that the API accepts, in bytes.
const maxFile = 10 << 20

// Help shows examples.
func (sendCmd) Help() string {
	return examples(`parley send --to oncall "it works"`, `make 2>&1 | parley send --to slack:C0BUILDS --key build-7`, `parley send --to telegram:42 --file report.pdf --wait "the report"`)
}

// Run passes a message to the server. It waits for the outcome with --wait, or if this process serves the home
// meanwhile. Only with --wait, an outcome other than sent is an error.
func (c sendCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	body, err := c.requestBody(tty)
	if err != nil {
		return err
	}
	err = withClient(ctx, flags, tty, server.Sender, func(ctx context.Context, server *client.Client) error {
		if server.Hosted && c.asksAgent() {
			return errNoAgentServer
		}
		var s delivery
		// The request gets a key of its own, so that a repeated request does not send again.
		if err := server.Do(ctx, http.MethodPost, "/v1/messages", rand.Text(), body, &s); err != nil {
			return err
		}
		if c.Wait || server.Hosted {
			if s, err = c.awaitOutcome(ctx, server, s); err != nil {
				return err
			}
		}
		if err := printStatus(tty.Out, flags.JSON, s); err != nil {
			return err
		}
		if c.Wait {
			return deliveryError(s)
		}
		return nil
	})
	if _, nothing := errors.AsType[*home.NothingError](err); nothing && c.asksAgent() {
		return errNoAgentServer
	}
	return err
}

var errNoAgentServer = errors.New("no server is running in this home, and this command needs one to reach an agent: start parley serve, or use parley chat")

// asksAgent reports whether the message is for an agent rather than people.
func (c sendCmd) asksAgent() bool {
	return slices.ContainsFunc(c.To, func(to string) bool { return to == "agent" || strings.HasPrefix(to, "agent:") })
}

// requestBody returns the body of the request; it reads the text from standard input if neither a text nor a file was
// given. It refuses an input or a file of more than maxFile bytes with a usageError.
func (c sendCmd) requestBody(tty terminal.Terminal) (map[string]any, error) {
	if c.Text == "" && c.File == "" {
		raw, err := io.ReadAll(io.LimitReader(tty.In, maxFile+1))
		if err != nil {
			return nil, fmt.Errorf("read the text: %w", err)
		}
		if len(raw) > maxFile {
			return nil, &usageError{textLongInput}
		}
		c.Text = string(raw)
	}
	body := map[string]any{"to": c.To, "text": c.Text}
	if c.Key != "" {
		body["key"] = c.Key
	}
	if c.File == "" {
		return body, nil
	}
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if len(raw) > maxFile {
		return nil, &usageError{fmt.Sprintf("%s is %d bytes long; at most %d can be sent", c.File, len(raw), maxFile)}
	}
	body["file"] = map[string]string{"name": filepath.Base(c.File), "data": base64.StdEncoding.EncodeToString(raw)}
	return body, nil
}

// A delivery says how far a message has come. Session is the session in which the agent answers it;
// "" if the message was sent to people.
type delivery struct {
	outbox.Status
	Session string `json:"session,omitempty"`
}

// awaitOutcome keeps asking the server until each destination has an outcome, or the time is up; then it returns what
// it knows, without an error. If the server is unreachable, it keeps asking, because the message is stored. Its only
// error is that the server refuses to tell.
func (c sendCmd) awaitOutcome(ctx context.Context, server *client.Client, s delivery) (delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	for wait := 10 * time.Millisecond; isPending(s); wait = min(2*wait, 500*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return s, nil
		}
		err := server.Get(ctx, "/v1/messages/"+url.PathEscape(s.ID), &s)
		if _, refused := errors.AsType[*client.Error](err); refused {
			return s, err
		}
	}
	return s, nil
}

// isPending reports whether a destination has no outcome yet, or whether an agent has not answered anywhere yet.
func isPending(s delivery) bool {
	if s.Session != "" && len(s.Destinations) == 0 {
		return true // an agent has the message, and may not have begun
	}
	for _, d := range s.Destinations {
		if d.State == channels.Queued {
			return true
		}
	}
	return false
}

func printStatus(out io.Writer, asJSON bool, s delivery) error {
	if asJSON {
		return plainjson.NewEncoder(out).Encode(s)
	}
	for _, d := range s.Destinations {
		line := d.Address + ": " + d.State
		if d.Error != nil {
			line += " (" + d.Error.Code + ": " + d.Error.Message + ")"
		}
		if d.Fallback != nil {
			line += "; " + d.Fallback.Address + " instead: " + d.Fallback.State
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	if s.Session != "" {
		if _, err := fmt.Fprintln(out, "session "+s.Session); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "id "+s.ID)
	return err
}

// deliveryError returns nil if the message was sent everywhere; otherwise, an error about the worst
// outcome among its destinations.
func deliveryError(s delivery) error {
	has := map[string][]string{}
	for _, d := range s.Destinations {
		has[d.State] = append(has[d.State], d.Address)
	}
	for _, worst := range []struct {
		state string
		code  int
		words string
	}{
		{channels.Failed, exitFailed, "not delivered to "},
		{channels.OutcomeUnknown, exitUnknown, "nobody can tell whether it was delivered to "},
		{channels.Queued, exitQueued, "still waiting to be delivered to "},
	} {
		if to := has[worst.state]; len(to) > 0 {
			return &outcomeError{worst.code, worst.words + strings.Join(to, ", ")}
		}
	}
	return nil
}
