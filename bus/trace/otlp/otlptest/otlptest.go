// Package otlptest provides a collector of traces that is strict about the protocol: it refuses what the
// specification doesn't allow, and fails the test.
package otlptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Collector stores the spans that are sent to it.
type Collector struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	spans    []Span
	answers  []http.HandlerFunc // how the next requests are answered, instead of being accepted
	requests []http.Header
	raw      bytes.Buffer // the bodies of the requests that were accepted
}

// A Span is a span as it was received.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Kind              int
	Start, End        time.Time
	Failed            string            // the message of its status; "" if it did not fail
	Attributes        map[string]string // values as text, numbers in decimal
	Events            []string          // the names of its events
	Links             []string          // each as TRACE/SPAN
	Process           map[string]string // the attributes of its resource
}

// New starts a collector, which ends with the test.
func New(t testing.TB) *Collector {
	c := &Collector{t: t}
	c.server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.server.Close)
	return c
}

// Endpoint returns the collector's address, without a path.
func (c *Collector) Endpoint() string { return c.server.URL }

// Path is the path at which the collector accepts spans.
const Path = "/v1/traces"

// AnswerNext makes these functions answer the next requests, one each. The spans in these requests are not stored.
func (c *Collector) AnswerNext(answers ...http.HandlerFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, answers...)
}

// Spans returns all accepted spans, in the order in which they arrived, including repetitions.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Newest returns each accepted span once, in its latest version.
func (c *Collector) Newest() []Span {
	var once []Span
	for _, s := range c.Spans() {
		same := func(o Span) bool { return o.Trace == s.Trace && o.ID == s.ID }
		if at := slices.IndexFunc(once, same); at >= 0 {
			once[at] = s
			continue
		}
		once = append(once, s)
	}
	return once
}

// Requests returns the headers of all requests.
func (c *Collector) Requests() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// Raw returns the bodies of all accepted requests.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// CheckWhole fails the test unless the parents of all spans arrived, each trace has one span without a parent, and
// repetitions of a span describe the same work.
func (c *Collector) CheckWhole() {
	c.t.Helper()
	all := c.Newest()
	roots := map[string][]string{}
	for _, s := range all {
		if s.Parent == "" {
			roots[s.Trace] = append(roots[s.Trace], s.Name)
			continue
		}
		if !slices.ContainsFunc(all, func(o Span) bool { return o.Trace == s.Trace && o.ID == s.Parent }) {
			c.t.Errorf("the parent of %q in trace %s never came", s.Name, s.Trace)
		}
	}
	for _, s := range all {
		if n := len(roots[s.Trace]); n != 1 {
			c.t.Errorf("trace %s has the roots %q, want one", s.Trace, roots[s.Trace])
		}
	}
	for _, s := range c.Spans() {
		for _, o := range all {
			if o.Trace == s.Trace && o.ID == s.ID && (o.Parent != s.Parent || o.Name != s.Name || o.Kind != s.Kind) {
				c.t.Errorf("span %s is %q below %s, and then %q below %s", s.ID, s.Name, s.Parent, o.Name, o.Parent)
			}
		}
	}
}

// serve answers a request.
func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r.Header)
	if len(c.answers) > 0 {
		answer := c.answers[0]
		c.answers = c.answers[1:]
		answer(w, r)
		return
	}
	spans, err := decode(body)
	switch {
	case r.Method != http.MethodPost || r.URL.Path != Path || r.Header.Get("Content-Type") != "application/json":
		err = fmt.Errorf("%s %s with %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	if err != nil {
		c.t.Errorf("not in the protocol: %v\n%s", err, body)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.spans = append(c.spans, spans...)
	c.raw.Write(body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

// These are the messages of the protocol, with all fields that spans need.
type (
	request struct {
		ResourceSpans *[]struct {
			Resource   struct{ Attributes []attribute }
			ScopeSpans []struct {
				Scope struct{ Name, Version string }
				Spans []span
			}
		}
	}
	span struct {
		TraceID           string `json:"traceId"`
		SpanID            string `json:"spanId"`
		ParentSpanID      string `json:"parentSpanId"`
		Name              string
		Kind              int
		StartTimeUnixNano string
		EndTimeUnixNano   string
		Attributes        []attribute
		Events            []struct {
			TimeUnixNano string
			Name         string
			Attributes   []attribute
		}
		Links []struct {
			TraceID string `json:"traceId"`
			SpanID  string `json:"spanId"`
		}
		Status struct {
			Message string
			Code    int
		}
	}
	attribute struct {
		Key   string
		Value struct {
			StringValue *string
			IntValue    *string
		}
	}
)

// decode reads a request. It returns an error for anything that the protocol doesn't allow.
func decode(body []byte) (all []Span, err error) {
	var r request
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	if err := in.Decode(&r); err != nil {
		return nil, err
	}
	if err := checkKeys(body); err != nil {
		return nil, err
	}
	if r.ResourceSpans == nil || in.More() {
		return nil, fmt.Errorf("no resourceSpans, or more than one value")
	}
	for _, resource := range *r.ResourceSpans {
		process, err := decodeAttributes(resource.Resource.Attributes)
		if err != nil || process["service.name"] == "" || process["service.version"] == "" || process["service.instance.id"] == "" {
			return nil, fmt.Errorf("the resource has %v: %w", process, err)
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				one, err := decodeSpan(s)
				if err != nil {
					return nil, fmt.Errorf("span %q: %w", s.Name, err)
				}
				one.Process = process
				all = append(all, one)
			}
		}
	}
	return all, nil
}

// keys returns the keys that the program may write.
func keys() []string {
	return strings.Fields(`resourceSpans resource attributes scopeSpans scope name version spans traceId spanId parentSpanId kind startTimeUnixNano
		endTimeUnixNano events timeUnixNano links status message code key value stringValue intValue`)
}

// checkKeys returns an error if a key is not spelled exactly as in the protocol, because Go ignores case, or if a
// value is null.
func checkKeys(body []byte) error {
	var whole any
	if err := json.Unmarshal(body, &whole); err != nil {
		return err
	}
	var check func(any) error
	check = func(value any) (err error) {
		switch value := value.(type) {
		case nil:
			return fmt.Errorf("a value is null")
		case []any:
			for _, one := range value {
				err = errors.Join(err, check(one))
			}
		case map[string]any:
			for key, one := range value {
				if !slices.Contains(keys(), key) {
					err = errors.Join(err, fmt.Errorf("the key %q", key))
				}
				err = errors.Join(err, check(one))
			}
		}
		return err
	}
	return check(whole)
}

func decodeSpan(s span) (_ Span, err error) {
	one := Span{Trace: s.TraceID, ID: s.SpanID, Parent: s.ParentSpanID, Name: s.Name, Kind: s.Kind, Failed: s.Status.Message}
	if !isID(s.TraceID, 16) || !isID(s.SpanID, 8) || s.ParentSpanID != "" && !isID(s.ParentSpanID, 8) || s.ParentSpanID == s.SpanID {
		return one, fmt.Errorf("the ids are %q, %q and %q", s.TraceID, s.SpanID, s.ParentSpanID)
	}
	if s.Name == "" || s.Kind < 1 || s.Kind > 5 || s.Status.Code != 0 && s.Status.Code != 2 || (s.Status.Code == 2) != (s.Status.Message != "") {
		return one, fmt.Errorf("kind %d, status %d %q", s.Kind, s.Status.Code, s.Status.Message)
	}
	if one.Start, err = decodeTime(s.StartTimeUnixNano); err != nil {
		return one, err
	}
	if one.End, err = decodeTime(s.EndTimeUnixNano); err != nil {
		return one, err
	}
	if one.End.Before(one.Start) {
		return one, fmt.Errorf("it ends %v before its beginning", one.Start.Sub(one.End))
	}
	for _, e := range s.Events {
		if _, err := decodeTime(e.TimeUnixNano); err != nil || e.Name == "" {
			return one, fmt.Errorf("event %q: %w", e.Name, err)
		}
		one.Events = append(one.Events, e.Name)
	}
	for _, l := range s.Links {
		if !isID(l.TraceID, 16) || !isID(l.SpanID, 8) {
			return one, fmt.Errorf("a link to %q, %q", l.TraceID, l.SpanID)
		}
		one.Links = append(one.Links, l.TraceID+"/"+l.SpanID)
	}
	one.Attributes, err = decodeAttributes(s.Attributes)
	return one, err
}

// isID reports whether an id has that many bytes, in hexadecimal digits, and is not zero.
func isID(id string, size int) bool {
	return regexp.MustCompile(`^[0-9a-f]+$`).MatchString(id) && len(id) == 2*size && strings.Trim(id, "0") != ""
}

// decodeTime reads a time within a day of now.
func decodeTime(nanos string) (time.Time, error) {
	n, err := strconv.ParseInt(nanos, 10, 64)
	at := time.Unix(0, n)
	if err == nil && time.Since(at).Abs() > 24*time.Hour {
		err = fmt.Errorf("the time %s is wrong", at)
	}
	return at, err
}

// decodeAttributes returns the values of attributes by their keys. A duplicate key is an error.
func decodeAttributes(all []attribute) (map[string]string, error) {
	values := map[string]string{}
	for _, a := range all {
		_, twice := values[a.Key]
		if a.Key == "" || twice || (a.Value.StringValue == nil) == (a.Value.IntValue == nil) {
			return nil, fmt.Errorf("attribute %q has no value, or is there twice", a.Key)
		}
		if a.Value.StringValue != nil {
			values[a.Key] = *a.Value.StringValue
			continue
		}
		if _, err := strconv.ParseInt(*a.Value.IntValue, 10, 64); err != nil {
			return nil, err
		}
		values[a.Key] = *a.Value.IntValue
	}
	return values, nil
}
