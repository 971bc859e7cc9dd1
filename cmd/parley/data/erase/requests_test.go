package erase_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/hometest"
)

// requests starts the requests of a process that works with a home. stop ends them and returns once they have ended.
func requests(t *testing.T, h *hometest.Home, resumes bool, progress func(erase.Progress)) (r *erase.Requests, stop func()) {
	t.Helper()
	r = erase.NewRequests(erase.RequestsConfig{
		Eraser: func(recorded func(erase.Progress)) *erase.Eraser {
			c := config(h)
			c.Progress = func(p erase.Progress) {
				if progress != nil {
					progress(p)
				}
				recorded(p)
			}
			return erase.New(c)
		},
		Notes: h.Book, Holder: h.Bus, Resumes: resumes, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		if cancel(); !stopped.Swap(true) {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return r, stop
}

// ask sends a request to one of the routes as an owner.
func ask(t *testing.T, r *erase.Requests, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	for _, route := range r.Routes() {
		mux.HandleFunc(route.Pattern, func(w http.ResponseWriter, req *http.Request) {
			a := exchange.New(w, req, exchange.NewBodyReader(time.Minute, time.Minute), time.Minute)
			defer a.Close()
			err := route.Serve(a, req)
			if refusal, ok := errors.AsType[*exchange.Refusal](err); ok {
				a.Refuse(refusal)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, req)
	return w
}

// request returns the request with that id as the API shows it.
func request(t *testing.T, r *erase.Requests, id string) (q erase.Request) {
	t.Helper()
	w := ask(t, r, http.MethodGet, "/v1/forget/"+id, "")
	if err := json.Unmarshal(w.Body.Bytes(), &q); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return q
}

func TestTheReceiptComesOnceAllIsErased(t *testing.T) {
	h := homeWithHistory(t)
	r, _ := requests(t, h, true, nil)
	w := ask(t, r, http.MethodPost, "/v1/forget", `{"user": "`+anna+`"}`)
	var receipt erase.Receipt
	if err := json.Unmarshal(w.Body.Bytes(), &receipt); err != nil || w.Code != http.StatusOK || receipt.What != "person "+anna || receipt.Log.Entries == 0 {
		t.Errorf("%d %s: %v", w.Code, w.Body, err)
	}
	if alone, shared, err := h.Store.SessionsOf(t.Context(), anna); err != nil || len(alone)+len(shared) > 0 {
		t.Errorf("left: %v %v %v", alone, shared, err)
	}
}

func TestWhatCannotBeErasedIsRefused(t *testing.T) {
	r, _ := requests(t, hometest.Open(t, t.TempDir()), true, nil)
	for body, want := range map[string]int{
		`{"session": "main:telegram:42"}`:                        200,
		`{"user": "telegram:42", "session": "main:telegram:42"}`: 422,
		`{}`:                     422,
		`{"user": "42"}`:         422,
		`{"session": "../main"}`: 422,
		`{"person": "x:y"}`:      422,
	} {
		if w := ask(t, r, http.MethodPost, "/v1/forget", body); w.Code != want {
			t.Errorf("%s: status %d, want %d: %s", body, w.Code, want, w.Body)
		}
	}
	if w := ask(t, r, http.MethodGet, "/v1/forget/nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("an unknown request: %d %s", w.Code, w.Body)
	}
}

// An erasure goes on without the caller who asked for it. If the process stops in the middle, the next process erases
// the rest and has the receipt.
func TestAnErasureGoesOnWithoutWhoeverAskedForIt(t *testing.T) {
	for _, at := range erase.Steps() {
		t.Run(string(at), func(t *testing.T) {
			h := homeWithHistory(t)
			reached, goOn := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			first, stop := requests(t, h, true, func(p erase.Progress) {
				if p.Step == at && !once.Swap(true) {
					close(reached)
					<-goOn
				}
			})
			w := ask(t, first, http.MethodPost, "/v1/forget?wait=false", `{"user": "`+anna+`"}`)
			var begun erase.Request
			if err := json.Unmarshal(w.Body.Bytes(), &begun); err != nil || w.Code != http.StatusAccepted || begun.State != erase.Running {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			<-reached
			if q := request(t, first, begun.ID); q.State != erase.Running || q.Receipt != nil {
				t.Errorf("in the middle: %+v", q)
			}
			time.AfterFunc(50*time.Millisecond, func() { close(goOn) }) // so that stop cancels first
			stop()
			if q := request(t, first, begun.ID); q.State != erase.Running {
				t.Fatalf("it ended as %s although it was stopped", q.State)
			}

			second, _ := requests(t, h, true, nil)
			hometest.WaitFor(t, "the receipt", func() bool { return request(t, second, begun.ID).State != erase.Running })
			q := request(t, second, begun.ID)
			if q.State != erase.Done || q.Receipt == nil || q.Receipt.What != "person "+anna {
				t.Fatalf("it ended as %+v", q)
			}
			if !strings.Contains(q.Receipt.String(), "before an interruption") {
				t.Errorf("the receipt doesn't say that it was interrupted:\n%s", q.Receipt)
			}
			if alone, shared, err := h.Store.SessionsOf(t.Context(), anna); err != nil || len(alone)+len(shared) > 0 {
				t.Errorf("left: %v %v %v", alone, shared, err)
			}
		})
	}
}

// Of two processes in a fleet only one erases, and both have the receipt.
func TestOneProcessErasesAtATime(t *testing.T) {
	h := homeWithHistory(t)
	var erasing, most atomic.Int32
	watch := func(p erase.Progress) {
		if p.Step == erase.Mail {
			most.Store(max(most.Load(), erasing.Add(1)))
		}
		if p.Step == erase.Log {
			erasing.Store(0)
		}
	}
	one, _ := requests(t, h, false, watch)
	other, _ := requests(t, h, true, watch)
	q, err := one.Ask(t.Context(), anna, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*erase.Requests{other, one} {
		if got, err := r.Await(t.Context(), q.ID); err != nil || got.State != erase.Done {
			t.Errorf("%+v %v", got, err)
		}
	}
	if most.Load() > 1 {
		t.Error("both erased at once")
	}
}

// A request that was interrupted long ago would also erase what was said since. It is not resumed: it ends with an
// error that says so, and nothing is erased.
func TestAnOldRequestIsNotBegunAgain(t *testing.T) {
	h := homeWithHistory(t)
	old := `{"asked": "` + time.Now().Add(-25*time.Hour).UTC().Format(time.RFC3339) + `", "user": "` + anna + `"}`
	if err := h.Book.SetNote(t.Context(), "forget order", "old", old); err != nil {
		t.Fatal(err)
	}
	r, _ := requests(t, h, true, nil)
	q, err := r.Await(t.Context(), "old")
	if err != nil || q.State != erase.Failed || !strings.Contains(q.Error, "said since") {
		t.Errorf("it ended as %+v, %v", q, err)
	}
	if alone, _, err := h.Store.SessionsOf(t.Context(), anna); err != nil || len(alone) == 0 {
		t.Errorf("erased: %v %v", alone, err)
	}
	hometest.WaitFor(t, "the person to be cleared from the request", func() bool { // after the answer
		n, err := h.Book.Noted(t.Context(), "forget order", "old")
		return err == nil && n.Value == ""
	})
}
