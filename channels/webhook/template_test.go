package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/outbox"
	"parley/channels/webhook"
)

func TestTemplates(t *testing.T) {
	const nasty = "**x** [a](http://b) @everyone"
	body, err := json.Marshal(map[string]any{"s": nasty, "url": "http://h/a_b(c)", "n": 12, "l": []any{"a", "b_c"}, "e": "", "at": "2026-01-02T03:04:05+01:00"})
	if err != nil {
		t.Fatal(err)
	}
	d := newRig(t, testConfig{kind: webhook.JSON})
	for template, want := range map[string]string{
		`{{ .s }}`:                                              `\*\*x\*\* &#91;a\](http://b\) @` + "\u200b" + `everyone`,
		`{{ raw .s }}`:                                          nasty,
		`{{ if eq .s "` + nasty + `" }}=`:                       ``,
		`**{{ .n }}**{{ .missing }}`:                            `**12**`,
		`{{ .missing.deeper.still }}x`:                          `x`,
		`{{ with .e }}{{ . }}{{ end }}x`:                        `x`,
		`{{ join ", " .l }}`:                                    `a, b\_c`,
		`{{ .l }}`:                                              `&#91;"a","b\_c"\]`,
		`[there]({{ .url }})`:                                   `[there](http://h/a_b%28c%29)`,
		`{{ link .s .url }}`:                                    `[\*\*x\*\* &#91;a\](http://b\) @` + "\u200b" + `everyone](http://h/a_b%28c%29)`,
		`{{ link "plain" .s }}`:                                 `plain`,
		`{{ .e | default "none_here" }}`:                        `none\_here`,
		`{{ truncate 3 .s }}`:                                   `\*\*…`,
		`{{ code .s }}`:                                         "`" + nasty + "`",
		`{{ date "2 Jan 15:04" .at }}`:                          `2 Jan 02:04`,
		`{{ range .l }}- {{ . }}{{ "\n" }}{{ end }}`:            "- a- b\\_c",
		`{{ $x := .n }}{{ $x = .l }}{{ upper (index $x 0) }}`:   `A`,
		`{{ define "x" }}{{ .s }}{{ end }}{{ template "x" . }}`: `\*\*x\*\* &#91;a\](http://b\) @` + "\u200b" + `everyone`,
		"{{ if .n }}a{{ else }}b{{ end }}\n\n\n\nc  ":           "a\n\nc",
	} {
		if strings.HasPrefix(template, "{{ if eq") {
			template += "{{ end }}"
			want = "="
		}
		t.Run(template, func(t *testing.T) {
			d.template = template
			d.restart()
			d.mustAccept(d.request("", string(body)))
			if got := d.onlyMessage().Text; got != want {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func TestTemplateThatPrintsNothing(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.JSON, template: `{{ if .loud }}{{ .loud }}{{ end }} `})
	if a := d.mustAccept(d.request("", `{"quiet":1}`)); a.ID != "" || len(d.takeOutbound()) != 0 {
		t.Errorf("it was sent: %+v", a)
	}
}

func TestTemplateThatFails(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.JSON, template: `{{ index .steps 5 }}`})
	d.mustAccept(d.exampleRequest("json.build"))
	got := d.onlyMessage().Text
	for _, want := range []string{"webhook hook failed", "template:1:3", "Here's what was posted", "```json\n{", `"took": 12.5`} {
		if !strings.Contains(strings.ReplaceAll(got, "\\", ""), want) {
			t.Errorf("it says %q, without %q", got, want)
		}
	}
}

func TestTemplateThatWritesTooMuch(t *testing.T) {
	items := strings.Repeat(`"éééééééééé",`, 5000)
	d := newRig(t, testConfig{kind: webhook.JSON, template: "{{ range .l }}- {{ . }}\n{{ end }}"})
	d.mustAccept(d.request("", `{"l":[`+items+`"x"]}`))
	got := d.onlyMessage().Text
	if n := len([]rune(got)); n > 8010 || n < 7900 || !strings.HasSuffix(got, "- éééééééééé\n\n…") {
		t.Errorf("%d characters, ending in %q", n, got[len(got)-40:])
	}
	raw := newRig(t, testConfig{kind: webhook.JSON})
	raw.mustAccept(raw.request("", `{"l":[`+items+`"x"]}`))
	if n := len([]rune(raw.onlyMessage().Text)); n > 8050 {
		t.Errorf("%d characters of raw fields", n)
	}
}

// A recordingOutbox is an outbox that only records the texts.
type recordingOutbox struct{ texts []string }

func (l *recordingOutbox) Accept(_ context.Context, r outbox.Request) (outbox.Status, error) {
	l.texts = append(l.texts, r.Text)
	return outbox.Status{ID: "m", Destinations: make([]outbox.Destination, 1)}, nil
}

func (l *recordingOutbox) Record(context.Context, outbox.Request, []bus.Address) (channels.Submission, error) {
	return channels.Submission{}, nil
}

// eachWithoutKey calls f with each version of v in which one key is missing.
func eachWithoutKey(v any, f func()) {
	switch x := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(x)) {
			old := x[key]
			delete(x, key)
			f()
			x[key] = nil
			f()
			x[key] = old
			eachWithoutKey(old, f)
		}
	case []any:
		for _, item := range x {
			eachWithoutKey(item, f)
		}
	}
}

// Senders leave out fields that they do not have. The built-in templates work whichever field is missing.
func TestBuiltInTemplatesWorkWithoutAnyField(t *testing.T) {
	for _, name := range []string{
		"alertmanager.mixed", "alertmanager.resolved", "github.push", "github.pull_request", "github.issues", "github.issue_comment",
		"github.workflow_run", "github.check_run", "github.release", "github.deployment_status", "github.star", "github.pull_request_review",
	} {
		t.Run(name, func(t *testing.T) {
			kind, rest, _ := strings.Cut(name, ".")
			said := &recordingOutbox{}
			h, err := webhook.New(webhook.Config{
				Name: "hook", Kind: kind, Token: token, Secret: secret, To: []string{"ci"}, Outbox: said, Log: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			d := &rig{TB: t, testConfig: testConfig{kind: kind}}
			var data map[string]any
			if err := json.Unmarshal([]byte(d.readExample(name)), &data); err != nil {
				t.Fatal(err)
			}
			tried, seen := 0, map[string]bool{}
			eachWithoutKey(data, func() {
				body, err := json.Marshal(data)
				if err != nil {
					t.Fatal(err)
				}
				tried++
				said.texts = nil
				w := httptest.NewRecorder()
				h.ServeHTTP(w, d.request(rest, string(body)))
				if data["alerts"] == nil && kind == webhook.Alertmanager {
					return // without alerts, it is not an Alertmanager notification
				}
				if w.Code != http.StatusAccepted || len(said.texts) != 1 {
					t.Fatalf("%s: %d %s, and %d texts", body, w.Code, w.Body, len(said.texts))
				}
				text := said.texts[0]
				seen[text] = true
				if strings.Contains(text, "Here's what was posted") || strings.Contains(text, "no value") || strings.Contains(text, "nil") {
					t.Errorf("it says %q", text)
				}
			})
			if tried < 10 || len(seen) < 3 {
				t.Errorf("only %d tries and %d texts", tried, len(seen))
			}
		})
	}
}

func TestUnknownKindOfEvent(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.GitHub})
	for i, event := range []string{"watch", "repo", "mark", "template", "../x", "member_added"} {
		r := d.request(event, `{"action":"started_now","repository":null,"organization":{"login":"octo-org"},"sender":{"login":"octocat"}}`)
		r.Header.Set("X-GitHub-Delivery", fmt.Sprint(i))
		d.mustAccept(r)
	}
	all := d.takeOutbound()
	if len(all) != 6 || all[0].Text != `**octo\-org** · octocat · watch: started now` {
		t.Errorf("sent: %+v", all)
	}
}
