package api_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
)

// A connection wraps a caller's connection and refuses to write once a deadline has passed.
type connection struct {
	*httptest.ResponseRecorder
	deadline time.Time
	set      bool // whether a write deadline is set
}

func (c *connection) SetWriteDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

func (c *connection) Write(p []byte) (int, error) {
	c.set = !c.deadline.IsZero()
	if c.set && !time.Now().Before(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	return c.ResponseRecorder.Write(p)
}

// A slow request still gets its whole answer: the time to write starts when the answer is ready. A caller who doesn't
// read the answer is cut off.
func TestAnAnswerIsNotCutOffAfterItWasDone(t *testing.T) {
	x := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		x.cfg.Further = []exchange.Route{{Pattern: "POST /v1/slow", May: exchange.Caller.IsAdmin, Serve: func(w *exchange.Answer, _ *http.Request) error {
			time.Sleep(time.Hour)
			return w.JSON(http.StatusOK, "a person")
		}}}
		r := httptest.NewRequest(http.MethodPost, "/v1/slow", strings.NewReader(`{}`))
		r.Host = "parley.internal"
		r.Header.Set("Authorization", "Bearer "+adminToken)
		r.Header.Set("Content-Type", "application/json")
		c := &connection{ResponseRecorder: httptest.NewRecorder()}
		api.New(x.cfg).ServeHTTP(c, r)
		if c.Code != http.StatusOK || !strings.Contains(c.Body.String(), "a person") {
			t.Errorf("after an hour the answer is %d %q", c.Code, c.Body)
		}
		if !c.set {
			t.Error("whoever does not read the answer is waited for without end")
		}
	})
}
