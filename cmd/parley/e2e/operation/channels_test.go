package operation

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// A channel contains what the status says about one channel.
type channel struct {
	Name, Platform, Bot string
	Up                  bool
	Since               *time.Time
	LastIn              *time.Time `json:"last_in"`
	LastOut             *time.Time `json:"last_out"`
}

// telegramOf returns what a process says about its Telegram channel, and the whole body of its answer.
func telegramOf(o *parleytest.HTTPWorld) (c channel, body string) {
	o.T.Helper()
	body = o.Ask("GET", "/v1/status?brief=true", "", parleytest.Bearer("reader-token-of-the-test")...).Body
	var now struct{ Channels []channel }
	parleytest.Must(o.T, json.Unmarshal([]byte(body), &now))
	for _, one := range now.Channels {
		if one.Name == "telegram" {
			return one, body
		}
	}
	return c, body
}

// Each gateway of a fleet reports the same about a channel, no matter which gateway holds it: its state, since when,
// the bot's name, and the time of the last message.
func TestEachGatewayTellsOfAllChannels(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	began := time.Now().Truncate(time.Second)
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[tokens.reader]\ntoken = \"reader-token-of-the-test\"\nmay = [\"read\"]\n", redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir()))
	first := parleytest.ListenHTTP(w)
	w.ServeAs("gateway,worker")
	first.Ready(t)
	known := func(o *parleytest.HTTPWorld) (c channel, body string) {
		t.Helper()
		parleytest.WaitFor(t, "the channel to be known", func() bool { c, body = telegramOf(o); return c.Up && c.Bot != "" && c.Since != nil })
		return c, body
	}
	holder, body := known(first)
	if holder.Platform != "telegram" || holder.Bot != "@parleybot" || holder.Since.Before(began) || holder.LastIn != nil || holder.LastOut != nil {
		t.Errorf("before anything was said it is %s", body)
	}
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	address := parleytest.FreeAddress(t)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), strings.TrimPrefix(first.URL, "http://"), address, 1)), 0o600))
	second := parleytest.HTTPAt(w, address)
	w.ServeAs("gateway")
	second.Ready(t)
	if other, body := known(second); other.Bot != holder.Bot || !other.Since.Equal(*holder.Since) {
		t.Errorf("the other gateway says %s", body)
	}
	w.Telegram.Say(2, 2, "the secret of the day")
	w.WaitSaid(2, 1)
	for _, o := range []*parleytest.HTTPWorld{first, second} {
		parleytest.WaitFor(t, "the messages to be known", func() bool {
			c, body := telegramOf(o)
			if strings.Contains(body, "secret of the day") {
				t.Fatalf("the status has what was said: %s", body)
			}
			return c.LastIn != nil && c.LastOut != nil && !c.LastIn.Before(began) && time.Since(*c.LastOut) < time.Minute
		})
	}
}
