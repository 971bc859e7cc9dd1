// Package mqtt exchanges messages with edge agents over an MQTT 3.1.1 broker, in EvoClaw's format.
//
// Each agent has a name and a few topics below it: it reads its commands there, and publishes its reports, its status
// from time to time, and its capabilities. Nobody proves an identity: whoever may publish at the broker may publish for
// any agent. So nothing that comes over a Conn is trusted.
package mqtt

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/nodes"
)

// edgePlatform is the platform that is shown for an edge agent.
const edgePlatform = "mqtt/evoclaw"

// A Kind is the kind of an agent's message.
type Kind string

// The kinds of messages. They are the last parts of the topics.
const (
	KindReports      Kind = "reports"      // how a command has ended
	KindStatus       Kind = "status"       // a sign of life
	KindCapabilities Kind = "capabilities" // what the agent can do
)

// A topic is topicRoot, an agent's name, and a Kind or commandsTopic.
const (
	topicRoot     = "evoclaw/agents/"
	commandsTopic = "commands"
)

// A Message is a message of an agent.
type Message struct {
	Agent   string // its name in the topic
	Kind    Kind
	Payload []byte // at most nodes.MaxResult bytes
	// TooLarge says that the payload was too large, and that Payload is empty.
	TooLarge bool
	// Retained says that the broker has stored the message, so the agent may be gone.
	Retained bool
}

// A Command asks an agent to run one of its tools.
type Command struct {
	ID         string // an agent may repeat it in its report
	Tool       string
	Parameters json.RawMessage
	Timeout    time.Duration
}

// A command and its payload in the wire format. Some agents read the id only at the top, and others only in the
// payload.
type wireCommand struct {
	Command   string      `json:"command"`
	Payload   wirePayload `json:"payload"`
	RequestID string      `json:"request_id"`
}

type wirePayload struct {
	Tool       string          `json:"tool"`
	Parameters json.RawMessage `json:"parameters"`
	Timeout    int64           `json:"timeout_ms"`
	RequestID  string          `json:"request_id"`
}

// encode returns a command in the wire format.
func (c Command) encode() wireCommand {
	return wireCommand{"tool", wirePayload{c.Tool, c.Parameters, c.Timeout.Milliseconds(), c.ID}, c.ID}
}

// A Report says how a command has ended.
type Report struct {
	Status    string          `json:"status"`
	Tool      string          `json:"tool"`
	RequestID string          `json:"request_id"` // older agents send none
	Result    json.RawMessage `json:"result"`
	Stderr    json.RawMessage `json:"stderr"`
	ExitCode  json.RawMessage `json:"exit_code"`
	Error     string          `json:"error"`
	ErrorType string          `json:"error_type"`
	Elapsed   float64         `json:"elapsed_ms"`
}

// The values of Report.Status.
const (
	statusSuccess = "success"
	statusError   = "error"
)

// ErrNoReport is returned for a message that doesn't report the end of a command.
var ErrNoReport = errors.New("this is no report of a command")

// ParseReport reads a report. It returns ErrNoReport for any other message. Fields of a wrong type are empty.
func ParseReport(payload []byte) (r Report, err error) {
	err = json.Unmarshal(payload, &r)
	if _, mistyped := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !mistyped {
		return r, fmt.Errorf("%w: %w", ErrNoReport, err)
	}
	if r.Status != statusSuccess && r.Status != statusError || r.Tool == "" && r.RequestID == "" {
		return r, ErrNoReport
	}
	return r, nil
}

// Took returns how long the command took, according to the agent.
func (r Report) Took() time.Duration {
	return time.Duration(math.Max(0, math.Min(r.Elapsed, float64(nodes.MaxTimeout.Milliseconds())))) * time.Millisecond
}

// Outcome returns how the command has ended: its result according to the agent, or why it has failed.
func (r Report) Outcome() (nodes.Outcome, error) {
	out := nodes.Outcome{Status: nodes.Done, Milliseconds: r.Took().Milliseconds()}
	said := commandOutput{r.Result, r.Stderr, r.ExitCode}
	if r.Status == statusError {
		out.Status, out.Error = nodes.Failed, &tools.Error{Code: codeOf(r.ErrorType), Message: said.appendTo(r.Error)}
		return out, nil
	}
	raw, err := said.json()
	if err != nil {
		return out, fmt.Errorf("encode a result: %w", err)
	}
	out.Content = raw
	return out, nil
}

// codeOf returns Parley's code for an agent's type of failure.
func codeOf(errorType string) tools.Code {
	switch errorType {
	case "timeout":
		return tools.Timeout
	case "not_found":
		return tools.NotFound
	case "permission_denied":
		return tools.PermissionDenied
	case "invalid_params":
		return tools.InvalidArgs
	}
	return tools.ExecutionFailed
}

// Names returns the names in a list of capabilities, sorted and without duplicates; false if it is not a list of names.
// It leaves out names that no tool can have.
func Names(payload []byte) ([]string, bool) {
	var names []string
	if json.Unmarshal(payload, &names) != nil {
		var within struct {
			Capabilities []string `json:"capabilities"`
		}
		if json.Unmarshal(payload, &within) != nil {
			return nil, false
		}
		names = within.Capabilities
	}
	if names == nil {
		return nil, false
	}
	return cleanToolNames(names), true
}

// cleanToolNames sorts names of tools, leaves out invalid ones, and limits their number.
func cleanToolNames(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isToolName(name) })
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), nodes.MaxTools)]
}

// isToolName reports whether an edge agent's tool can have a name.
func isToolName(name string) bool {
	return name != "" && len(name) <= maxToolName &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

const maxToolName = 64 // bytes
