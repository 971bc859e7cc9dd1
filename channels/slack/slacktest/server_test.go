package slacktest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"parley/channels/slack/slacktest"
)

// testTimeout limits how long a test waits for anything.
const testTimeout = 2 * time.Minute

type rig struct {
	*slacktest.Server
	t   *testing.T
	url string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := slacktest.New("xoxb-1", "xapp-1")
	api, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &rig{s, t, api}
}

// call calls a method and returns its answer.
func (r *rig) call(method string, form url.Values) map[string]any {
	r.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	if form.Get("token") == "" {
		form.Set("token", "xoxb-1")
	}
	return r.readJSON(http.PostForm(r.url+method, form))
}

func (r *rig) readJSON(resp *http.Response, err error) map[string]any {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	answer := map[string]any{}
	if bytes.HasPrefix(data, []byte("[")) {
		data = []byte(`{"list":` + string(data) + `}`)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		r.t.Fatalf("%s: %v", data, err)
	}
	return answer
}

// A socketClient reads frames from a socket.
type socketClient struct {
	conn   *websocket.Conn
	frames chan map[string]any
}

func (r *rig) connect() *socketClient {
	r.t.Helper()
	address, ok := r.call("apps.connections.open", url.Values{"token": {"xapp-1"}})["url"].(string)
	if !ok {
		r.t.Fatal("no address")
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(r.t.Context(), address, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = resp.Body.Close()
	r.t.Cleanup(func() { _ = conn.Close() })
	c := &socketClient{conn, make(chan map[string]any, 100)}
	go func() { // ends when the connection is closed
		defer close(c.frames)
		for {
			frame := map[string]any{}
			if conn.ReadJSON(&frame) != nil {
				return
			}
			c.frames <- frame
		}
	}()
	if hello := r.nextFrame(c); hello["type"] != "hello" {
		r.t.Errorf("it begins with %v", hello)
	}
	return c
}

func (r *rig) nextFrame(c *socketClient) map[string]any {
	r.t.Helper()
	select {
	case frame := <-c.frames:
		return frame
	case <-time.After(testTimeout):
		r.t.Fatal("nothing comes")
		return nil
	}
}

func (r *rig) ack(c *socketClient, frame map[string]any) {
	r.t.Helper()
	if err := c.conn.WriteJSON(map[string]any{"envelope_id": frame["envelope_id"]}); err != nil {
		r.t.Fatal(err)
	}
}

func TestUnacknowledgedEventsGoToAnotherSocket(t *testing.T) {
	r := newRig(t)
	r.Say("D1", "U1", "early") // no socket is open yet
	one := r.connect()
	first := r.nextFrame(one)
	if r.Unacked() != 1 {
		t.Errorf("%d are not acknowledged", r.Unacked())
	}
	two := r.connect()
	_ = one.conn.Close()
	second := r.nextFrame(two)
	if second["envelope_id"] != first["envelope_id"] || second["retry_attempt"] != 1.0 {
		t.Errorf("first %v, then %v", first, second)
	}
	r.ack(two, second)
	deadline := time.After(testTimeout)
	for r.Unacked() != 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("the acknowledgement does not count")
		}
	}
}

func TestUnacknowledgedEventsAreSentAgain(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	r.Say("D1", "U1", "hi")
	first, second := r.nextFrame(c), r.nextFrame(c)
	if first["envelope_id"] != second["envelope_id"] {
		t.Errorf("first %v, then %v", first, second)
	}
}

func TestAMentionCausesTwoEvents(t *testing.T) {
	r := newRig(t)
	c := r.connect()
	r.Say("C1", "U1", "hi <@"+slacktest.Bot+">")
	kinds := map[any]bool{}
	for range 2 {
		frame := r.nextFrame(c)
		r.ack(c, frame)
		payload, _ := frame["payload"].(map[string]any)
		event, _ := payload["event"].(map[string]any)
		kinds[event["type"]] = true
	}
	if !kinds["message"] || !kinds["app_mention"] {
		t.Errorf("told as %v", kinds)
	}
}

func TestHistory(t *testing.T) {
	r := newRig(t)
	root := r.Say("C1", "U1", "root")
	r.Reply("C1", root, "U2", "reply")
	if a := r.call("chat.postMessage", url.Values{"channel": {"C1"}, "text": {"mine"}, "metadata": {`{"event_type":"e","event_payload":{"key":"k"}}`}}); a["ok"] != true {
		t.Fatal(a)
	}
	read := func(method string, form url.Values) string {
		var texts []string
		messages, _ := r.call(method, form)["messages"].([]any)
		for _, m := range messages {
			m, _ := m.(map[string]any)
			text, _ := m["text"].(string)
			texts = append(texts, text)
		}
		return strings.Join(texts, " ")
	}
	if got := read("conversations.history", url.Values{"channel": {"C1"}}); got != "mine root" {
		t.Errorf("history: %s", got)
	}
	if got := read("conversations.history", url.Values{"channel": {"C1"}, "oldest": {root}}); got != "mine" {
		t.Errorf("history since: %s", got)
	}
	if got := read("conversations.history", url.Values{"channel": {"C1"}, "limit": {"1"}, "cursor": {"1"}}); got != "root" {
		t.Errorf("second page: %s", got)
	}
	if got := read("conversations.replies", url.Values{"channel": {"C1"}, "ts": {root}}); got != "root reply" {
		t.Errorf("replies: %s", got)
	}
	if a := r.call("conversations.replies", url.Values{"channel": {"C1"}, "ts": {"1.1"}}); a["error"] != "thread_not_found" {
		t.Errorf("no such thread: %v", a)
	}
	if got := r.Sent("C1"); len(got) != 1 || got[0].Key != "k" {
		t.Errorf("sent %+v", got)
	}
}

func TestControlPaths(t *testing.T) {
	r := newRig(t)
	base := strings.TrimSuffix(r.url, "/api/") + "/_control/"
	said := r.readJSON(http.Post(base+"say", "application/json", strings.NewReader(`{"channel":"D1","user":"U1","text":"hi"}`)))
	if said["ts"] == "" || r.Unacked() != 1 {
		t.Errorf("said %v", said)
	}
	r.call("chat.postMessage", url.Values{"channel": {"D1"}, "text": {"hello"}})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if _, err := r.WaitSent(ctx, "D1", 1); err != nil {
		t.Fatal(err)
	}
	if sent, _ := r.readJSON(http.Get(base + "sent?channel=D1"))["list"].([]any); len(sent) != 1 {
		t.Errorf("sent %v", sent)
	}
	if state := r.readJSON(http.Get(base + "state")); state["unacked"] != 2.0 { // the app also gets events for its own messages
		t.Errorf("state %v", state)
	}
	if a := r.call("auth.test", url.Values{"token": {"xoxb-wrong"}}); a["error"] != "invalid_auth" {
		t.Errorf("a wrong token: %v", a)
	}
}
