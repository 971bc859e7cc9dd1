package nodelinks_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/nodelinks"
	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/mqtt/mqtttest"
	"parley/tools/nodes/tunnel"
	"parley/tools/nodes/wire"
)

// A device can join through a broker only with the key and the name that its connection belongs to.
func TestJoiningThroughABroker(t *testing.T) {
	b := mqtttest.New(t)
	s := newStage(t, &config.Config{MQTT: config.MQTT{URL: b.URL(), Prefix: "parley"}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.RunBroker(ctx) }()
	defer func() {
		stop()
		must(t, <-ended)
	}()
	var invited nodelinks.Invitation
	status, answer := s.ask("POST", "/v1/nodes/invite", "{}")
	if must(t, json.Unmarshal([]byte(answer), &invited)); status != http.StatusOK || invited.Broker != b.URL() {
		t.Fatalf("the invitation is %d %s", status, answer)
	}
	code, knows, ok := tunnel.ParseCode(invited.BrokerCode)
	if !ok || code != invited.Code {
		t.Fatalf("the code is %s, %t", invited.BrokerCode, ok)
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	other, _, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	n := tunnel.Node{Place: tunnel.Place{Broker: mqtt.Server{URL: b.URL()}, Prefix: "parley"}, Name: "pi", Key: key, Knows: knows}
	post := func(body string) (*http.Response, error) {
		over := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return n.Dial(ctx) }}
		return (&http.Client{Transport: over}).Post("http://parley/"+wire.JoinPath, "application/json", strings.NewReader(body))
	}
	for late := time.Now().Add(20 * time.Second); ; { // until the server is connected to the broker and has announced itself
		w, err := post("what")
		if err == nil {
			w.Body.Close()
			break
		}
		if time.Now().After(late) {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{"what", http.StatusBadRequest, "isn't a request to join"},
		{joinBody(t, "aaaaa-aaaaa", "pi", public), http.StatusForbidden, wire.RefusedCode},
		{joinBody(t, code, "pi", other), http.StatusUnprocessableEntity, wire.RefusedForm},
		{joinBody(t, code, "attic", public), http.StatusUnprocessableEntity, wire.RefusedForm},
		{joinBody(t, code, "pi", public), http.StatusOK, `"name":"pi"`},
		{joinBody(t, code, "pi", public), http.StatusOK, `"name":"pi"`}, // as after a crash
		{joinBody(t, strings.ToUpper(code), "pi", bytes.Repeat([]byte{1}, 32)), http.StatusUnprocessableEntity, wire.RefusedForm},
	} {
		w, err := post(c.body)
		must(t, err)
		said, err := io.ReadAll(w.Body)
		must(t, err)
		w.Body.Close()
		if w.StatusCode != c.status || !strings.Contains(string(said), c.says) {
			t.Errorf("%s: it was answered %d %s", c.body, w.StatusCode, said)
		}
	}
}
