package otlp

import (
	"time"

	"parley/bus/trace"
	"parley/tools/plainjson"
)

// The types below are the messages of the protocol in their JSON form: ids are hexadecimal, numbers of 64 bits strings,
// and values of enumerations numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		Parent     string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      int64       `json:"startTimeUnixNano,string"`
		End        int64       `json:"endTimeUnixNano,string"`
		Attributes []attribute `json:"attributes,omitempty"`
		Events     []event     `json:"events,omitempty"`
		Links      []link      `json:"links,omitempty"`
		Status     *status     `json:"status,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		Text   *string `json:"stringValue,omitempty"`
		Number *int64  `json:"intValue,omitempty,string"`
	}
	event struct {
		At   int64  `json:"timeUnixNano,string"`
		Name string `json:"name"`
	}
	link struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	status struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
)

const (
	scopeName   = "parley"
	statusError = 2
)

// encode returns the body of a request with these spans of a process.
func encode(s Service, spans []trace.Span) ([]byte, error) {
	r := request{ResourceSpans: []resourceSpans{}}
	if len(spans) > 0 {
		of := scopeSpans{Scope: scope{scopeName, s.Version}}
		for _, one := range spans {
			of.Spans = append(of.Spans, encodeSpan(one))
		}
		about := resource{encodeAll([]trace.Attribute{
			trace.Text("service.name", scopeName), trace.Text("service.version", s.Version),
			trace.Text("service.instance.id", s.Instance), trace.Text("parley.role", s.Role),
		})}
		r.ResourceSpans = append(r.ResourceSpans, resourceSpans{about, []scopeSpans{of}})
	}
	return plainjson.Marshal(r)
}

func encodeSpan(s trace.Span) span {
	out := span{
		TraceID: s.Trace.String(), SpanID: s.ID.String(), Name: s.Name, Kind: int(s.Kind), Start: nanos(s.Start), End: nanos(s.End),
		Attributes: encodeAll(s.Attributes),
	}
	if s.End.Before(s.Start) { // the clocks of two processes differ
		out.End = out.Start
	}
	if s.Parent != (trace.SpanID{}) {
		out.Parent = s.Parent.String()
	}
	if s.Failed != "" {
		out.Status = &status{Message: s.Failed, Code: statusError}
		out.Attributes = append(out.Attributes, encodeAll([]trace.Attribute{trace.Text("error.type", s.Failed)})...)
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, event{nanos(e.At), e.Name})
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, link{l.Trace.String(), l.Span.String()})
	}
	return out
}

// encodeAll returns attributes in the form of the protocol. It leaves out texts that are empty.
func encodeAll(attributes []trace.Attribute) (all []attribute) {
	for _, a := range attributes {
		switch {
		case a.IsNumber:
			all = append(all, attribute{a.Key, value{Number: &a.Number}})
		case a.Text != "":
			all = append(all, attribute{a.Key, value{Text: &a.Text}})
		}
	}
	return all
}

// nanos returns a time as the protocol has it.
func nanos(t time.Time) int64 { return max(0, t.UnixNano()) }
