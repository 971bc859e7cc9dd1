package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/agent/openai/responses"
)

// An API is one of the two protocols of OpenAI's in which a model can be asked.
type API string

// The protocols.
const (
	// APIAuto is chat completions, except for the models that want the other.
	APIAuto      API = ""
	APIChat      API = "chat"
	APIResponses API = "responses"
)

// encodeResponses returns the body of a request to the Responses API.
func (m *Model) encodeResponses(r *llm.Request, d dialect) ([]byte, error) {
	var toolList []byte
	if len(r.Tools) > 0 {
		var err error
		if toolList, err = m.flatTools.JSON(r.Tools); err != nil {
			return nil, err
		}
	}
	o := responses.Options{
		Host: m.host, Model: m.cfg.Name, Effort: m.cfg.Effort, Configured: fieldNames(m.cfg.Body),
		NoSummary: d.noSummary, NoEncrypted: d.noEncrypted, NoEffort: d.noEffort, NoChoice: d.noChoice, NoEcho: d.noEcho, NoPictures: d.noPictures,
	}
	if d.cacheKey {
		o.CacheKey = cacheKey(r)
	}
	body, err := responses.Encode(r, o)
	if err != nil {
		return nil, err
	}
	return m.addFields(body, toolList), nil
}

// fieldNames returns the names of the fields of a JSON object; nil if there is none.
func fieldNames(object json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &fields) != nil {
		return nil
	}
	return slices.Collect(maps.Keys(fields))
}

// responsesURL returns the base URL of the Responses API: that of chat completions, but
// for Azure's, where that names the deployment. The Responses API gets its name as the
// model's.
func responsesURL(base string) string {
	before, _, _ := strings.Cut(base, "/deployments/")
	return before
}

// An answerReader puts an answer together from the events of its stream.
type answerReader interface {
	// add adds one event. It returns a *refusal if the event says that the server failed.
	add(event []byte) error
	// wait returns how long to wait for the next progress after this event; 0 if the event
	// was none.
	wait(cfg *Config) time.Duration
	// isWhole reports whether the answer has come to its end. done reports whether the
	// stream has.
	isWhole(done bool) bool
	// isOver reports whether nothing more of interest can follow.
	isOver() bool
	// answer returns the answer to a request of that many bytes.
	answer(requestSize int) (*llm.Answer, error)
}

// wait implements answerReader: once the answer has ended, only its usage may follow.
func (a *assembly) wait(cfg *Config) time.Duration {
	if a.finished {
		return tailWait
	}
	return cfg.Idle
}

// isWhole implements answerReader: the answer has come to its end when the server said so, or the
// stream did.
func (a *assembly) isWhole(done bool) bool { return a.finished || done }

// isOver implements answerReader: some servers send the usage after the end of the answer.
func (a *assembly) isOver() bool { return false }

// A responsesReader reads an answer of the Responses API.
type responsesReader struct{ *responses.Assembly }

// add implements answerReader: it adds one event, and returns a *refusal if the event is a failure.
func (r responsesReader) add(event []byte) error { return refusalOfFailure(r.Add(event)) }

// wait implements answerReader. While a model reasons, a server may send nothing, as before
// the beginning of an answer.
func (r responsesReader) wait(cfg *Config) time.Duration {
	switch {
	case !r.Moved():
		return 0
	case r.Thinks():
		return max(cfg.FirstToken, cfg.Idle)
	}
	return cfg.Idle
}

// isWhole implements answerReader. A stream that ends in order may lack the event that says
// so.
func (r responsesReader) isWhole(done bool) bool { return r.Ended() || done && r.Whole() }

// isOver implements answerReader: nothing follows the event that ends the answer.
func (r responsesReader) isOver() bool { return r.Ended() }

// answer implements answerReader: it returns the answer, with the usage that the server has counted
// or an estimate.
func (r responsesReader) answer(requestSize int) (*llm.Answer, error) {
	a, err := r.Answer(requestSize)
	return a, refusalOfFailure(err)
}

// refusalOfFailure returns the refusal that a failed answer is, and any other error as it
// is.
func refusalOfFailure(err error) error {
	if f, ok := errors.AsType[*responses.Failure](err); ok {
		return refusalInStream(f.Raw)
	}
	return err
}
