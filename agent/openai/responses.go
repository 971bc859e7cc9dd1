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

// encodeResponses returns the body of a request to the Responses API.
func encodeResponses(r *llm.Request, cfg *Config, host string, d dialect, toolList []byte) ([]byte, error) {
	o := responses.Options{
		Host: host, Model: cfg.Name, Effort: cfg.Effort, Configured: fieldNames(cfg.Body),
		NoSummary: d.noSummary, NoEncrypted: d.noEncrypted, NoEffort: d.noEffort, NoChoice: d.noChoice, NoEcho: d.noEcho, NoPictures: d.noPictures,
	}
	if d.cacheKey {
		o.CacheKey = cacheKey(r)
	}
	body, err := responses.Encode(r, o)
	if err != nil {
		return nil, err
	}
	return addFields(appendTools(body, toolList), cfg.Body), nil
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

// void implements answerReader.
func (r responsesReader) void(requestSize int) *llm.Answer { return r.Void(requestSize) }

// refusalOfFailure returns the refusal that a failed answer is, and any other error as it
// is.
func refusalOfFailure(err error) error {
	if f, ok := errors.AsType[*responses.Failure](err); ok {
		return refusalInStream(f.Raw)
	}
	return err
}
