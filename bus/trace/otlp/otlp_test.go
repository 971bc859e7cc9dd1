package otlp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus/trace"
	"parley/bus/trace/otlp"
	"parley/bus/trace/otlp/otlptest"
	"parley/tools/posting"
	"parley/tools/testlog"
)

// An exporter is a running Exporter, with its counts and its log.
type exporter struct {
	*otlp.Exporter
	t    *testing.T
	log  testlog.Buffer
	stop context.CancelFunc
	over chan struct{} // closed after Run has returned

	mu      sync.Mutex
	counted map[string]int
}

func start(t *testing.T, to otlp.Collector) *exporter {
	t.Helper()
	e := &exporter{t: t, counted: map[string]int{}, over: make(chan struct{})}
	e.Exporter = otlp.New(otlp.Config{
		Collector: to, Service: otlp.Service{Version: "1.2.3", Instance: "instance", Role: "worker"}, Count: e.count,
		Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "***") }, Log: slog.New(slog.NewTextHandler(&e.log, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	go func() {
		defer close(e.over)
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-e.over })
	return e
}

func (e *exporter) count(result string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counted[result] += n
}

func (e *exporter) has(result string, n int) func() bool {
	return func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.counted[result] == n
	}
}

// wait waits until a condition is true.
func (e *exporter) wait(what string, holds func() bool) {
	e.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			e.t.Fatalf("waited in vain: %s; counted is %v, and the log says\n%s", what, e.counted, e.log.String())
		}
		<-time.After(2 * time.Millisecond)
	}
}

// some returns spans that ended now.
func some(n int) (all []trace.Span) {
	for i := range n {
		of := trace.Of(fmt.Sprint("message ", i))
		all = append(all, trace.Span{Trace: of, ID: of.Receipt(), Name: "receive", Kind: trace.Server, Start: time.Now(), End: time.Now()})
	}
	return all
}

func to(c *otlptest.Collector) otlp.Collector {
	return otlp.Collector{URL: c.Endpoint() + otlptest.Path}
}

func TestASpanArrivesAsTheProtocolHasIt(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	e := start(t, otlp.Collector{URL: c.Endpoint() + otlptest.Path, Headers: []string{"Authorization: Bearer secret"}})
	of, other, began := trace.Of("telegram:1:2#reply"), trace.Of("other"), time.Now().Round(0)
	e.Record(trace.Span{
		Trace: of, ID: of.Turn("telegram:1:2"), Parent: of.Receipt(), Name: "turn <&>", Kind: trace.Internal, Start: began, End: began.Add(-time.Hour), Failed: "timeout",
		Attributes: []trace.Attribute{trace.Text("a", "x\xff"), trace.Text("left.out", ""), trace.Number("n", -3), trace.Text("long", strings.Repeat("ä", 3000))},
		Events:     []trace.Event{{Name: "resumed", At: began}}, Links: []trace.Link{{Trace: other, Span: other.Receipt()}},
	}, trace.Span{Trace: of, ID: of.Receipt(), Name: "receive", Kind: trace.Server, Start: began, End: began})
	e.wait("the spans", func() bool { return len(c.Spans()) == 2 })
	c.CheckWhole()
	got := c.Spans()[0]
	long := got.Attributes["long"]
	if len(long) > 4100 || !strings.HasSuffix(long, "ä…") {
		t.Errorf("a long text has %d bytes and ends with %q", len(long), long[max(0, len(long)-6):])
	}
	delete(got.Attributes, "long")
	want := otlptest.Span{
		Trace: trace.Of("telegram:1:2").String(), ID: of.Turn("telegram:1:2").String(), Parent: of.Receipt().String(), Name: "turn <&>", Kind: 1, Start: began, End: began, Failed: "timeout",
		Attributes: map[string]string{"a": "x\ufffd", "n": "-3", "error.type": "timeout"}, Events: []string{"resumed"}, Links: []string{other.String() + "/" + other.Receipt().String()},
		Process: map[string]string{"service.name": "parley", "service.version": "1.2.3", "service.instance.id": "instance", "parley.role": "worker"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("came\n%+v, want\n%+v", got, want)
	}
	if h := c.Requests()[0]; h.Get("Authorization") != "Bearer secret" || h.Get("User-Agent") != "Parley/1.2.3" {
		t.Errorf("the headers are %v", h)
	}
	e.wait("the count", e.has(otlp.Sent, 2))
}

func TestWhatTheCollectorCannotTakeNowIsSentAgain(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	var came []time.Time
	busy := func(status int, after string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			came = append(came, time.Now())
			w.Header().Set("Retry-After", after)
			w.WriteHeader(status)
		}
	}
	c.AnswerNext(busy(http.StatusTooManyRequests, "3"), busy(http.StatusServiceUnavailable, ""))
	e := start(t, to(c))
	e.Record(some(3)...)
	e.wait("the spans", e.has(otlp.Sent, 3))
	if n := len(c.Spans()); n != 3 {
		t.Errorf("%d spans came, want 3", n)
	}
	if asked := came[1].Sub(came[0]); asked < 3*time.Second {
		t.Errorf("it was asked again after %v, want the 3 s that it has asked for", asked)
	}
	if log := e.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "HTTP 429") || strings.Count(log, "accepts spans again") != 1 {
		t.Errorf("the log says\n%s", log)
	}
}

func TestWhatTheCollectorDoesNotWantIsCounted(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	c.AnswerNext(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old, said the secret"}}`))
		})
	e := start(t, to(c))
	e.Record(some(3)...)
	e.wait("the refusal", e.has(otlp.Refused, 3))
	e.Record(some(5)...)
	e.wait("the refusal of some", e.has(otlp.Refused, 5))
	e.wait("the others", e.has(otlp.Sent, 3))
	e.Record(some(1)...)
	e.wait("the last one", e.has(otlp.Sent, 4))
	if log := e.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "HTTP 401") || strings.Contains(log, "secret") {
		t.Errorf("the log says\n%s", log)
	}
}

// Spans that the collector doesn't accept are dropped. Recording a span never waits, and the process ends in time.
func TestACollectorThatNeverAnswersHoldsNothingUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	asked := make(chan struct{}, 100)
	stuck := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-release }))
	t.Cleanup(func() { close(release); stuck.Close() })
	e := start(t, otlp.Collector{URL: stuck.URL + "/secret"})
	e.Record(some(256)...)
	<-asked // from now on nothing leaves the queue
	began := time.Now()
	for range 100 {
		e.Record(some(50)...)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("5000 spans took %v", took)
	}
	e.wait("what is too many", e.has(otlp.Dropped, 5000-4096))
	began = time.Now()
	e.stop()
	<-e.over
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if !e.has(otlp.Dropped, 5256)() {
		t.Errorf("counted is %v, want all 5256 dropped", e.counted)
	}
	if strings.Contains(e.log.String(), stuck.URL) {
		t.Errorf("the log names the endpoint:\n%s", e.log.String())
	}
}

func TestTheLastSpansAreSentWhenTheProcessEnds(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	e := start(t, to(c))
	e.Record(some(600)...)
	e.stop()
	<-e.over
	if n := len(c.Spans()); n != 600 {
		t.Errorf("%d spans came, want 600", n)
	}
}

func TestWithoutACollectorNothingIsRecorded(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	e := start(t, otlp.Collector{})
	if d := e.Detail(); d != trace.Nothing {
		t.Errorf("wanted is %v, want nothing", d)
	}
	e.Record(some(3)...)
	e.Set(otlp.Collector{URL: c.Endpoint() + otlptest.Path, Text: true})
	if d := e.Detail(); d != trace.Texts {
		t.Errorf("wanted is %v, want texts", d)
	}
	e.Record(some(1)...)
	e.wait("the one span", func() bool { return len(c.Spans()) > 0 })
	e.Set(to(c))
	if d := e.Detail(); d != trace.Spans || len(c.Spans()) != 1 {
		t.Errorf("wanted is %v, and %d spans came; want those without texts, and one", d, len(c.Spans()))
	}
}

// Spans that were recorded for one collector never go to another one, and the new one doesn't wait until the old one
// may be asked again.
func TestAnotherCollectorGetsNothingThatWasRecordedBefore(t *testing.T) {
	t.Parallel()
	for what, next := range map[string]func(at, other otlp.Collector) otlp.Collector{
		"another place": func(_, other otlp.Collector) otlp.Collector { return other },
		"headers":       func(at, _ otlp.Collector) otlp.Collector { at.Headers = []string{"x-team: a"}; return at },
		"without texts": func(at, _ otlp.Collector) otlp.Collector { at.Text = false; return at },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			first, second := otlptest.New(t), otlptest.New(t)
			first.AnswerNext(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "100")
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			at := to(first)
			at.Text = true
			e := start(t, at)
			e.Record(some(3)...)
			e.wait("the first request", func() bool { return strings.Contains(e.log.String(), "HTTP 503") })
			e.Record(some(5)...)
			e.Set(at)
			if !e.has(otlp.Dropped, 0)() {
				t.Errorf("with the same settings, counted is %v", e.counted)
			}
			e.Set(next(at, to(second)))
			e.wait("the others to be dropped", e.has(otlp.Dropped, 8))
			e.Record(some(1)...)
			e.wait("a later one", e.has(otlp.Sent, 1))
			if n := len(first.Spans()) + len(second.Spans()); n != 1 || strings.Contains(e.log.String(), "accepts spans again") {
				t.Errorf("%d spans came, and the log says\n%s", n, e.log.String())
			}
		})
	}
}

// When traces are turned off, the log doesn't say that the collector accepts spans.
func TestWhatWaitsWhenTracesAreTurnedOffIsDropped(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	c.AnswerNext(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	e := start(t, to(c))
	e.Record(some(3)...)
	e.wait("the first request", func() bool { return strings.Contains(e.log.String(), "HTTP 503") })
	e.Set(otlp.Collector{})
	e.wait("the spans to be dropped", e.has(otlp.Dropped, 3))
	if !e.has(otlp.Refused, 0)() || strings.Contains(e.log.String(), "accepts spans again") {
		t.Errorf("counted is %v, and the log says\n%s", e.counted, e.log.String())
	}
}

// Without TLS, headers and texts never leave this machine, even if a name resolves to another address.
func TestHeadersAndTextsStayOnThisMachineWithoutTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []otlp.Collector{{URL: "http://192.0.2.1:1/", Text: true}, {URL: "http://192.0.2.1:1/", Headers: []string{"a: b"}}} {
		if err := otlp.Check(t.Context(), c, otlp.Service{}); err == nil || !strings.Contains(err.Error(), posting.ErrElsewhere.Error()) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The report of a failure doesn't repeat what the collector answered, because the answer may contain what was sent.
func TestABadAnswerIsNotRepeated(t *testing.T) {
	t.Parallel()
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = conn.Write([]byte("what was said\r\n\r\n"))
		_ = conn.Close()
	}))
	defer bad.Close()
	if err := otlp.Check(t.Context(), otlp.Collector{URL: bad.URL}, otlp.Service{}); err == nil || strings.Contains(err.Error(), "said") {
		t.Errorf("it says %v", err)
	}
}

func TestTheCheckAsksTheCollector(t *testing.T) {
	t.Parallel()
	c := otlptest.New(t)
	if err := otlp.Check(t.Context(), to(c), otlp.Service{Version: "1.2.3"}); err != nil || len(c.Requests()) != 1 {
		t.Errorf("after %d requests, it says %v", len(c.Requests()), err)
	}
	c.AnswerNext(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	if err := otlp.Check(t.Context(), to(c), otlp.Service{}); err == nil || err.Error() != "HTTP 404" {
		t.Errorf("a collector that has no such path: %v", err)
	}
}
