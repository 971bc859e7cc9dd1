package notifications

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"parley/channels/discord/discordtest"
	"parley/cmd/parley/parleytest"
)

// value returns the value of a metric from the metrics page, or "" if the page does not contain it.
func value(page, metric string) string {
	_, after, found := strings.Cut("\n"+page, "\n"+metric+" ")
	if !found {
		return ""
	}
	line, _, _ := strings.Cut(after, "\n")
	return line
}

func TestMetricsOfAServer(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	o.discord.Fail("POST messages", "", 0, discordtest.Answer(400, `{"code": 50001, "message": "Missing Access"}`))
	p := o.Up()
	id := o.alert(alertOf("DiskFull", "critical", "firing", time.Now())).ID()
	o.delivered(id)
	o.WaitSaid(fallbackChat, 1)
	if got := o.Ask("GET", "/metrics", ""); got.Status != 401 {
		t.Errorf("without a token it is %d", got.Status)
	}
	scrape := func() string { return o.Ask("GET", "/metrics", "", o.OwnerHeader()...).Body }
	var page string
	parleytest.WaitFor(t, "the dead letter, and the end of all deliveries", func() bool {
		page = scrape()
		return value(page, `parley_bus_dead{topic="outbound/ops-discord"}`) == "1" && value(page, `parley_bus_leased{topic="outbound/slack"}`) == "0" &&
			value(page, `parley_sends_total{channel="telegram",result="sent"}`) == "2"
	})
	for metric, want := range map[string]string{
		`parley_bus_waiting{topic="outbound/slack"}`:                 "0",
		`parley_bus_waiting{topic="inbound"}`:                        "0",
		`parley_bus_leased{topic="outbound/slack"}`:                  "0",
		`parley_bus_oldest_seconds{topic="outbound/slack"}`:          "0",
		`parley_channel_up{channel="slack"}`:                         "1",
		`parley_channel_up{channel="ops-discord"}`:                   "1",
		`parley_channel_up{channel="telegram"}`:                      "1",
		`parley_sends_total{channel="slack",result="sent"}`:          "1",
		`parley_sends_total{channel="telegram",result="sent"}`:       "2",
		`parley_sends_total{channel="ops-discord",result="failed"}`:  "1",
		`parley_sends_total{channel="ops-discord",result="unknown"}`: "0",
		`parley_sends_unknown{channel="slack"}`:                      "0",
		`parley_send_seconds_count{channel="slack"}`:                 "1",
		`parley_turns_total{result="done"}`:                          "0",
		`parley_steps_total`:                                         "0",
		`parley_tool_batches_total`:                                  "0",
		`parley_tool_batch_concurrency_max`:                          "0",
		`parley_tool_batch_saved_seconds_total`:                      "0",
		`parley_events_dropped_total`:                                "0",
	} {
		if got := value(page, metric); got != want {
			t.Errorf("%s is %q, want %q", metric, got, want)
		}
	}
	if !strings.Contains(page, "\nparley_build_info{") {
		t.Error("there is no build_info")
	}
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		if strings.HasPrefix(problem.Metric, "parley_") {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
	// A value, or the program's revision, may contain the digits of a chat's id by chance.
	names := regexp.MustCompile(`(?m)^parley_build_info.*| \S+$`).ReplaceAllString(page, "")
	for _, leak := range []string{"DiskFull", alertsSlack, alertsDiscord, opsSecrets["slack"]} {
		if strings.Contains(names, leak) {
			t.Errorf("the metrics tell %q", leak)
		}
	}
	p.Stop()
}

// The metrics page also contains the metrics of a turn.
func TestMetricsOfATurn(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.ToolsModel, "")
	o := parleytest.ListenHTTP(w)
	p := o.Up()
	w.Telegram.Say(2, 2, "go")
	w.WaitSaid(2, 1)
	var page string
	const done = `parley_turn_seconds_count{result="done"}`                      // counted last
	for deadline := time.Now().Add(2 * time.Minute); value(page, done) != "1"; { // the answer may arrive a moment before
		if time.Now().After(deadline) {
			t.Fatalf("%s is %q", done, value(page, done))
		}
		page = o.Ask("GET", "/metrics", "", o.OwnerHeader()...).Body
	}
	for metric, want := range map[string]string{
		`parley_turn_seconds_count{result="done"}`:                           "1",
		`parley_steps_total`:                                                 "4",
		`parley_turn_steps_sum`:                                              "4",
		`parley_answer_seconds_count`:                                        "1",
		`parley_tool_recoveries_total{result="failed"}`:                      "0",
		`parley_tool_calls_total{result="ok",tool="write_file"}`:             "1",
		`parley_tool_calls_total{result="permission_denied",tool="message"}`: "1",
		`parley_tool_seconds_count{tool="read_file"}`:                        "1",
		`parley_model_calls_total{model="scripted",result="ok"}`:             "4",
		`parley_channel_up{channel="telegram"}`:                              "1",
	} {
		if got := value(page, metric); got != want {
			t.Errorf("%s is %q, want %q", metric, got, want)
		}
	}
	for _, name := range []string{"parley_tool_last_error_timestamp_seconds{", "parley_model_tokens_total{", "parley_model_first_token_seconds_count{"} {
		if !strings.Contains(page, "\n"+name) {
			t.Errorf("there is no %s", name)
		}
	}
	p.Stop()
}

// Readiness names a channel that is not ready, and is restored when its platform is back. This holds for channels that
// receive and for channels that only send.
func TestReadinessFollowsThePlatforms(t *testing.T) {
	t.Parallel()
	t.Run("receiving", func(t *testing.T) {
		w := parleytest.New(t, parleytest.EchoModel, "")
		o := parleytest.ListenHTTP(w)
		text, err := os.ReadFile(w.File)
		if err != nil {
			t.Fatal(err)
		}
		_, api, _ := strings.Cut(string(text), `api_url = "http://`)
		address, _, _ := strings.Cut(api, `"`)
		o.Up()
		w.Telegram.Say(2, 2, "hello")
		w.WaitSaid(2, 1)
		o.WaitReadiness(200, `"ready":true`)
		_ = w.Telegram.Close()
		o.WaitReadiness(503, `"channel telegram":"not connected"`)
		if got := value(o.Ask("GET", "/metrics", "", o.OwnerHeader()...).Body, `parley_channel_up{channel="telegram"}`); got != "0" {
			t.Errorf("channel_up is %q", got)
		}
		if _, err := w.Telegram.Start(address); err != nil {
			t.Fatal(err)
		}
		o.WaitReadiness(200, `"ready":true`)
	})
	t.Run("sending", func(t *testing.T) {
		o := newOps(t, "", unpaced)
		_ = o.discord.Close()
		p := o.Up()
		o.WaitReadiness(503, `"channel ops-discord":"not connected"`) // before anything is sent
		o.alert(alertOf("DiskFull", "critical", "firing", time.Now()))
		if out, _, _ := o.Run("status"); !strings.Contains(out, "channel ops-discord: not connected (") || !strings.Contains(out, "channel slack: connected") {
			t.Errorf("status prints %q", out)
		}
		if _, err := o.discord.Start(o.at["channels.ops-discord"]); err != nil {
			t.Fatal(err)
		}
		o.WaitReadiness(200, `"ready":true`)
		o.everywhere(1)
		p.Stop()
	})
}

// A channel whose token is refused is down from the first minute on, and the other channels keep working.
func TestRefusedTokenStopsNoOtherChannel(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	o.discord.Fail("", "", 0, discordtest.Answer(401, `{"code": 0, "message": "401: Unauthorized"}`))
	p := o.Up()
	parleytest.WaitFor(t, "the log to say so", func() bool { return strings.Contains(p.Stderr.String(), "channels.ops-discord.bot_token") })
	o.WaitReadiness(503, `"channel ops-discord":"not connected"`)
	for n := range 2 {
		id := o.alert(alertOf([]string{"One", "Two"}[n], "critical", "firing", time.Now())).ID()
		parleytest.WaitFor(t, "the other two", func() bool {
			return strings.Count(o.Ask("GET", "/v1/messages/"+id, "", o.OwnerHeader()...).Body, `"sent"`) == 2
		})
	}
	select {
	case err := <-p.Ended:
		t.Errorf("the server ended: %v", err)
	default:
	}
}
