// Package mqtt speaks with edge agents over an MQTT 3.1.1 broker, in the words of EvoClaw.
//
// Each agent has a name and a few topics below it: it reads its commands there, and writes its reports, a status now and
// then, and its capabilities. Nobody proves who they are: whoever may publish at the broker may speak for any agent. So what
// comes over a Conn is never trusted.
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

// edgePlatform is what is shown as the platform of an edge agent.
const edgePlatform = "mqtt/evoclaw"

// A Kind is what a message of an agent is about.
type Kind string

// The kinds. They are the last words of the topics.
const (
	Reports      Kind = "reports"      // how a command has ended
	Status       Kind = "status"       // a sign of life
	Capabilities Kind = "capabilities" // what the agent can do
)

// The topics begin with topicRoot, and go on with an agent's name and a Kind, or commands.
const (
	topicRoot     = "evoclaw/agents/"
	commandsTopic = "commands"
)

// A Message is what an agent has said.
type Message struct {
	Agent   string // its name, as it stands in the topic
	Kind    Kind
	Payload []byte // at most nodes.MaxResult bytes
	// TooLarge says that there was more, and that Payload is empty.
	TooLarge bool
	// Retained says that the broker has kept the message: the agent may be gone since.
	Retained bool
}

// A Command asks an agent to run one of its tools.
type Command struct {
	ID         string // an agent may repeat it in its report
	Tool       string
	Parameters json.RawMessage
	Timeout    time.Duration
}

// A command and its payload as they stand on the wire. Some agents read the id only at the top, and others only below.
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

// wire returns a command as it stands on the wire.
func (c Command) wire() wireCommand {
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

// ErrNoReport says that a message is no report of how a command has ended.
var ErrNoReport = errors.New("this is no report of a command")

// ParseReport reads a report. It returns ErrNoReport for anything else. Fields of a wrong type are empty.
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

// Took returns how long the command took, as the agent says.
func (r Report) Took() time.Duration {
	return time.Duration(math.Max(0, math.Min(r.Elapsed, float64(nodes.MaxTimeout.Milliseconds())))) * time.Millisecond
}

// Outcome returns how the command has ended: what the agent says of the result, or why the command has failed.
func (r Report) Outcome() (nodes.Outcome, error) {
	out := nodes.Outcome{Status: nodes.Done, Milliseconds: r.Took().Milliseconds()}
	said := said{r.Result, r.Stderr, r.ExitCode}
	if r.Status == statusError {
		out.Status, out.Error = nodes.Failed, &tools.Error{Code: codeOf(r.ErrorType), Message: said.after(r.Error)}
		return out, nil
	}
	raw, err := said.json()
	if err != nil {
		return out, fmt.Errorf("encode a result: %w", err)
	}
	out.Content = raw
	return out, nil
}

// codeOf returns Parley's code for a type of failure.
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

// Names returns the names that capabilities are, sorted and each once; false if they are no list of names. Names that no
// tool can have are left out.
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
	return tidy(names), true
}

// tidy sorts names of tools, leaves out what can be none, and bounds how many there are.
func tidy(names []string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !isToolName(name) })
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), nodes.MaxTools)]
}

// isToolName reports whether a tool of an edge agent can have a name.
func isToolName(name string) bool {
	return name != "" && len(name) <= maxToolName &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

const maxToolName = 64 // bytes
