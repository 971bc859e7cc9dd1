package notifications

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// opsSecrets contains the secrets of the example configuration, by file.
var opsSecrets = map[string]string{
	"slack":        "xoxb-1-test",
	"discord":      "MTEx.test.discord-token",
	"telegram":     parleytest.Token,
	"alertmanager": "alertmanager-token-0000000000",
	"github":       "github-secret-0000000000000000",
	"ci":           "ci-token-00000000000000000000",
}

// These are the chats to which the example configuration sends.
const (
	alertsSlack    = "C0ALERTS"
	buildsSlack    = "C0BUILDS"
	alertsDiscord  = "1122"
	alertsTelegram = int64(-10033)
	fallbackChat   = int64(42)
)

// An ops is a world for notifications: three platforms and a server without a model.
type ops struct {
	*parleytest.HTTPWorld
	slack   *slacktest.Server
	discord *discordtest.Server
	at      map[string]string // the platforms' addresses, HOST:PORT
}

// newOps returns a world with the example configuration as it is documented. Its secrets are in temporary files. Each
// channel gets the settings in more and the api_url of its platform, and the configuration begins with before.
func newOps(t testing.TB, before, more string) *ops {
	t.Helper()
	w, address := &parleytest.World{Telegram: telegramtest.New(parleytest.Token, "parleybot"), Home: t.TempDir(), File: filepath.Join(t.TempDir(), "parley.toml")}, parleytest.FreeAddress(t)
	w.T, _ = t.(*testing.T) // benchmarks have no world
	o := &ops{
		HTTPWorld: parleytest.HTTPAt(w, address),
		slack:     slacktest.New(opsSecrets["slack"], "xapp-none"), discord: discordtest.New(opsSecrets["discord"]),
		at: map[string]string{},
	}
	text := parleytest.ReadSource(t, "cmd/parley/config/testdata/notifications.toml")
	secrets := t.TempDir()
	for name, secret := range opsSecrets {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := before + strings.NewReplacer("/run/secrets", secrets, "0.0.0.0:7275", address).Replace(text)
	for section, start := range map[string]func(string) (string, error){
		"channels.slack": o.slack.Start, "channels.ops-discord": o.discord.Start, "channels.telegram": o.Telegram.Start,
	} {
		api, err := start("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		o.at[section] = strings.Split(api, "/")[2]
		all = strings.Replace(all, "["+section+"]\n", fmt.Sprintf("[%s]\napi_url = %q\n%s\n", section, api, more), 1)
	}
	t.Cleanup(func() {
		_ = o.slack.Close()
		_ = o.discord.Close()
		_ = o.Telegram.Close()
	})
	if err := os.WriteFile(o.File, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// alert posts a body to Alertmanager's webhook.
func (o *ops) alert(body string) parleytest.Answer {
	o.T.Helper()
	return o.Ask("POST", "/webhooks/alertmanager", body, parleytest.Bearer(opsSecrets["alertmanager"])...)
}

// github posts a signed delivery to GitHub's webhook.
func (o *ops) github(event, delivery, body string) parleytest.Answer {
	o.T.Helper()
	mac := hmac.New(sha256.New, []byte(opsSecrets["github"]))
	mac.Write([]byte(body))
	return o.Ask("POST", "/webhooks/github", body, "X-GitHub-Event", event, "X-GitHub-Delivery", delivery,
		"X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
}

// alertOf returns what Alertmanager posts for one alert.
func alertOf(name, severity, status string, began time.Time) string {
	ended := time.Time{}
	if status == "resolved" {
		ended = began.Add(time.Minute)
	}
	labels := map[string]string{"alertname": name, "severity": severity}
	raw, err := json.Marshal(map[string]any{
		"version": "4", "receiver": "parley", "status": status, "externalURL": "http://alertmanager.example.net:9093",
		"groupKey": `{}:{alertname="` + name + `"}`, "groupLabels": map[string]string{"alertname": name},
		"commonLabels": labels, "commonAnnotations": map[string]string{}, "truncatedAlerts": 0,
		"alerts": []map[string]any{{
			"status": status, "labels": labels, "annotations": map[string]string{"summary": "Summary of " + name},
			"startsAt": began.UTC(), "endsAt": ended, "generatorURL": "http://prometheus.example.net:9090/graph", "fingerprint": "f" + name,
		}},
	})
	if err != nil {
		panic(err) // it is all text
	}
	return string(raw)
}

// A barrage is many alerts from several senders at once. Each sender posts one alert after another, and repeats each
// until the server accepts it, as Alertmanager does.
type barrage struct {
	senders, each int
	accepted      atomic.Int64
	refused       sync.Map // the statuses other than 202
	done          chan struct{}
}

// alerts starts a barrage.
func (o *ops) alerts(senders, each int) *barrage {
	s := &barrage{senders: senders, each: each, done: make(chan struct{})}
	var sending sync.WaitGroup
	began := time.Now()
	ctx := o.T.Context()
	for sender := range senders {
		sending.Go(func() {
			for n := range each {
				body := alertOf(fmt.Sprintf("s%02dn%05d", sender, n), "critical", "firing", began)
				for ctx.Err() == nil {
					got, err := o.TryAsk("POST", "/webhooks/alertmanager", body, parleytest.Bearer(opsSecrets["alertmanager"])...)
					if err == nil && got.Status == http.StatusAccepted {
						s.accepted.Add(1)
						break
					}
					if err == nil {
						s.refused.Store(got.Status, got.Body)
					}
					<-time.After(20 * time.Millisecond)
				}
			}
		})
	}
	go func() {
		sending.Wait()
		close(s.done)
	}()
	return s
}

// wait waits until the server has accepted at least this many alerts.
func (s *barrage) wait(t *testing.T, accepted int) {
	t.Helper()
	parleytest.WaitFor(t, fmt.Sprintf("%d alerts to be accepted", accepted), func() bool { return s.accepted.Load() >= int64(accepted) })
}

var alertName = regexp.MustCompile(`s(\d\d)n(\d{5})`)

// check checks the messages of a barrage at one destination: all alerts are there, in the order of each sender, and at
// most as many repeats as twice allows.
func (s *barrage) check(t *testing.T, where string, texts []string, twice int) {
	t.Helper()
	next := map[string]int{}
	again := 0
	for _, text := range texts {
		m := alertName.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s: %q is no alert", where, text)
			continue
		}
		switch want := fmt.Sprintf("%05d", next[m[1]]); {
		case m[2] == want:
			next[m[1]]++
		case m[2] < want:
			again++
		default:
			t.Errorf("%s: sender %s: %s comes when %s should", where, m[1], m[2], want)
		}
	}
	if again > twice {
		t.Errorf("%s: %d alerts came again; %d sends were cut off, and nobody can tell of them", where, again, twice)
	}
	total := 0
	for _, n := range maps.All(next) {
		total += n
	}
	if total != s.senders*s.each {
		t.Errorf("%s: %d of %d alerts came", where, total, s.senders*s.each)
	}
	s.refused.Range(func(status, body any) bool {
		t.Errorf("an alert was answered %v: %v", status, body)
		return true
	})
}

// slackTime returns the time at which Slack got a message.
func slackTime(m slacktest.Message) time.Time {
	seconds, micros, _ := strings.Cut(m.TS, ".")
	s, _ := strconv.ParseInt(seconds, 10, 64) // as Slack writes it
	us, _ := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, us*1000)
}

// silent checks that the server polled nothing, opened no socket, and made no workspaces.
func (o *ops) silent() {
	o.T.Helper()
	if n := o.Telegram.Calls("getUpdates"); n > 0 {
		o.T.Errorf("Telegram was polled %d times", n)
	}
	if slices.Contains(o.slack.Methods(), "apps.connections.open") || o.slack.Sockets() > 0 {
		o.T.Error("a socket was opened at Slack")
	}
	if found, err := os.ReadDir(filepath.Join(o.Home, "workspaces")); err == nil && len(found) > 0 {
		o.T.Errorf("there are workspaces: %v", found)
	}
}

// sends returns the number of sends that the platforms have accepted together.
func (o *ops) sends() int { return o.slack.Sends() + o.discord.Sends() + o.Telegram.Sends() }
