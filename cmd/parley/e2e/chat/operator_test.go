package chat

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/hometest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
)

// witness plays a model that says whether its prompt contains the operator's answer, marked as the operator's and not as
// its own.
func witness(r agenttest.Request) agenttest.Response {
	if bytes.Contains(r.Body, []byte("said-here-by-operator")) && bytes.Contains(r.Body, []byte("we repair it at **noon**")) {
		return agenttest.Reply("as the operator said")
	}
	return agenttest.Reply("I know of nothing")
}

const operatorsAnswer = `{"session": "main:telegram:2", "as": "operator", "text": "we repair it at **noon**"}`

// If the server is killed at any step after it accepted an operator's answer, people get the answer once, the session's
// log contains it once, the agent knows about it, and no turn begins.
func TestAnOperatorsAnswerKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"send:begun/2", "send:held/2", "send:sent/2", "send:marked/2", "send:told", "send:settled/2", "notice:before", "notice"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.ListenHTTP(parleytest.New(t, witness, ""))
			first := w.Up("PARLEY_KILL_AT=" + at)
			w.Telegram.Say(2, 2, "when will it be repaired?")
			w.WaitSaid(2, 1)
			header := append(w.OwnerHeader(), "Idempotency-Key", "k")
			p := first
			parleytest.WaitFor(t, "the answer to be accepted", func() bool { // a client without an answer sends the request again
				if p == first && first.HasEnded() {
					p = w.Up()
				}
				got, err := w.TryAsk("POST", "/v1/messages", operatorsAnswer, header...)
				return err == nil && got.Status == http.StatusAccepted
			})
			parleytest.WaitFor(t, "the kill", first.HasEnded)
			if p == first {
				p = w.Up()
			}
			if got := w.Ask("POST", "/v1/messages", operatorsAnswer, header...); got.Status != http.StatusAccepted {
				t.Errorf("the same request again: %d %s", got.Status, got.Body)
			}
			parleytest.WaitFor(t, "the log to have it", func() bool {
				return w.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'notice'") > 0
			})
			w.Telegram.Say(2, 2, "thanks")
			var texts []string
			parleytest.WaitFor(t, "the answer to the thanks", func() bool {
				texts = parleytest.Texts(w.Telegram.Sent(2))
				return texts[len(texts)-1] == "as the operator said"
			})
			p.Stop()
			spoken := 0
			for _, text := range texts {
				if text == "Operator:\n\nwe repair it at noon" {
					spoken++
				}
			}
			cut := w.InterruptedSends()
			if spoken < 1 || spoken > 1+cut || len(texts) != 2+spoken {
				t.Errorf("the chat has %q; %d sends were cut off", texts, cut)
			}
			wantOperator(t, w.Home, "main:telegram:2", 2)
		})
	}
}

// wantOperator checks that a session's log contains the operator's answer once, and this many turns.
func wantOperator(t *testing.T, home, key string, turns int) {
	t.Helper()
	h := hometest.Open(t, home)
	defer h.Close()
	said, begun := 0, 0
	for e, err := range h.Store.Read(t.Context(), key, 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case sessions.KindTurnStarted:
			begun++
		case sessions.KindNotice:
			n, err := sessions.Decode[sessions.Notice](e)
			if err != nil || n.Code != sessions.NoticeOperator || e.Person != "web:owner" || !strings.HasSuffix(e.Cause, "#told") {
				t.Errorf("%s has %+v of %s, %v", key, n, e.Cause, err)
			}
			said++
		}
	}
	if said != 1 || begun != turns {
		t.Errorf("%s has %d words of the operator and %d turns, want 1 and %d", key, said, begun, turns)
	}
}
