package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/data/erase"
)

// slowForgetter takes a long time to erase.
type slowForgetter struct{ takes time.Duration }

func (f slowForgetter) PersonSoon(context.Context, string) (erase.Receipt, error) {
	time.Sleep(f.takes)
	return erase.Receipt{What: "a person"}, nil
}

func (f slowForgetter) SessionSoon(ctx context.Context, key string) (erase.Receipt, error) {
	return f.PersonSoon(ctx, key)
}

// A connection is a caller's, which takes nothing once a deadline has passed.
type connection struct {
	*httptest.ResponseRecorder
	deadline time.Time
	set      bool // whether the answer has a deadline
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

// However long something takes that was asked for, the answer to it is not cut off once it is done. Who
// does not read the answer is not waited for, though.
func TestAnAnswerIsNotCutOffAfterItWasDone(t *testing.T) {
	x := newRig(t)
	synctest.Test(t, func(t *testing.T) {
		x.cfg.Forget = slowForgetter{time.Hour}
		r := httptest.NewRequest(http.MethodPost, "/v1/forget", strings.NewReader(`{"user": "telegram:42"}`))
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
