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

// fieldNames returns the names of the fields in a JSON object; nil if there is none.
func fieldNames(object json.RawMessage) []string {
	var fields map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &fields) != nil {
		return nil
	}
	return slices.Collect(maps.Keys(fields))
}

// responsesURL returns the base URL of the Responses API. It is the same as that of chat completions, except
// for an Azure URL that names the deployment: the Responses API gets the deployment's name as the model's.
func responsesURL(base string) string {
	before, _, _ := strings.Cut(base, "/deployments/")
	return before
}

// A responsesReader reads an answer from the Responses API.
type responsesReader struct{ *responses.Assembly }

// add implements answerReader. It adds one event, and returns a *refusal if the event is a failure.
func (r responsesReader) add(event []byte) error { return refusalOfFailure(r.Add(event)) }

// wait implements answerReader. While a model reasons, a server may send nothing, just as before the beginning
// of an answer.
func (r responsesReader) wait(cfg *Config) time.Duration {
	switch {
	case !r.HasProgressed():
		return 0
	case r.MayBeThinking():
		return max(cfg.FirstToken, cfg.Idle)
	}
	return cfg.Idle
}

// isWhole implements answerReader. A stream that ends with [DONE] may lack the event that ends the answer.
func (r responsesReader) isWhole(done bool) bool { return r.Ended() || done && r.Whole() }

// isOver implements answerReader. Nothing follows the event that ends the answer.
func (r responsesReader) isOver() bool { return r.Ended() }

// answer implements answerReader. It returns the answer, with the usage that the server counted or an estimate.
func (r responsesReader) answer(requestSize int) (*llm.Answer, error) {
	a, err := r.Answer(requestSize)
	return a, refusalOfFailure(err)
}

// void implements answerReader.
func (r responsesReader) void(requestSize int) *llm.Answer { return r.Void(requestSize) }

// refusalOfFailure returns a failed answer as a *refusal, and any other error unchanged.
func refusalOfFailure(err error) error {
	if f, ok := errors.AsType[*responses.Failure](err); ok {
		return refusalInStream(f.Raw)
	}
	return err
}
