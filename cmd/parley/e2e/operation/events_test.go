package operation

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// A watcher reads the server's stream of all events.
type watcher struct {
	t    *testing.T
	text *parleytest.SyncBuffer
}

// watchServer opens the stream with a token. The stream ends with the test.
func watchServer(o *parleytest.HTTPWorld, token string) watcher {
	o.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL+"/v1/events", nil)
	parleytest.Must(o.T, err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := (&http.Client{}).Do(req)
	parleytest.Must(o.T, err)
	v := watcher{o.T, new(parleytest.SyncBuffer)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			fmt.Fprintln(v.text, lines.Text())
		}
	}()
	o.T.Cleanup(func() { cancel(); <-ended })
	v.sees("event: reset\n")
	return v
}

// sees waits until the stream has contained these words.
func (v watcher) sees(words ...string) {
	v.t.Helper()
	for _, w := range words {
		parleytest.WaitFor(v.t, w, func() bool { return strings.Contains(v.text.String(), w) })
	}
}

// A client that watches at a gateway sees what the workers do, and none of what people said.
func TestTheWholeFleetIsWatchedAtAGateway(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[tokens.page]\ntoken = \"page-secret-of-this-test\"\nmay = [\"read\"]\n", redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir()))
	w.ServeAs("worker").WaitServing() // the worker does not listen for HTTP
	o := parleytest.ListenHTTP(w)
	w.ServeAs("gateway")
	o.Ready(t)
	v := watchServer(o, "page-secret-of-this-test")
	w.Telegram.Say(2, 2, "the secret of the day")
	w.WaitSaid(2, 1)
	v.sees("event: turn_start\n", "event: turn_complete\n", `"session":"main:telegram:2","agent":"main"`, `"state":"done"`)
	if strings.Contains(v.text.String(), "secret") {
		t.Errorf("the stream has what was said:\n%s", v.text)
	}
}

// A client that watches the server sees a channel go down and come back.
func TestChannelsAreWatched(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	o := parleytest.ListenHTTP(w)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	_, api, _ := strings.Cut(string(text), `api_url = "http://`)
	address, _, _ := strings.Cut(api, `"`)
	o.Up()
	o.WaitReadiness(200, `"ready":true`)
	v := watchServer(o, strings.TrimPrefix(o.OwnerHeader()[1], "Bearer "))
	parleytest.Must(t, w.Telegram.Close())
	v.sees("event: channel\ndata: {\"id\":\"telegram\",\"state\":\"down\"}\n")
	_, err = w.Telegram.Start(address)
	parleytest.Must(t, err)
	parleytest.WaitFor(t, "the channel to be back", func() bool {
		_, since, _ := strings.Cut(v.text.String(), `"state":"down"}`)
		return strings.Contains(since, `data: {"id":"telegram","state":"up"}`)
	})
}
