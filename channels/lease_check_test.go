package channels

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/bus"
)

func TestARequestIsNotSentAfterItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			got = append(got, string(body))
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: LeaseCheckedTransport(http.DefaultTransport)}
	defer client.CloseIdleConnections()
	long := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name  string
		right LeaseCheck
		late  bool
	}{
		{"just asked", LeaseCheck{time.Now().Add(time.Hour), func(context.Context) error { return bus.ErrFenced }}, false},
		{"still held", LeaseCheck{long, func(context.Context) error { return nil }}, false},
		{"lost", LeaseCheck{long, func(context.Context) error { return bus.ErrFenced }}, true},
	} {
		req, err := http.NewRequestWithContext(WithLeaseCheck(t.Context(), c.right), http.MethodPost, server.URL, strings.NewReader(c.name))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if late := errors.Is(err, errLeaseLost); late != c.late || !c.late && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if fault := FaultOf(err); c.late && fault.Fault != Retry {
			t.Errorf("%s: %v, want it tried again", c.name, fault)
		}
	}
	server.Close() // waits for what is under way
	if all := strings.Join(got, "|"); all != "just asked|still held" {
		t.Errorf("the server got %q", all)
	}
}
