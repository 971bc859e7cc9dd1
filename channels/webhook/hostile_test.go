package webhook_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"parley/channels/webhook"
	"parley/tools/testrace"
)

func TestMain(m *testing.M) { os.Exit(testrace.Run(m.Run)) }

// allocatedMB returns how many megabytes are allocated while do runs.
func allocatedMB(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) >> 20
}

// nestedJSON returns JSON with a given depth and with a value at each level.
func nestedJSON(depth int) string {
	return `{"alerts":[{}],"a":` + strings.Repeat("[1,", depth) + "1" + strings.Repeat("]", depth) + "}"
}

// Deeply nested JSON is refused before it is decoded. Shown with indentation, a few kilobytes of it once took
// gigabytes.
func TestDeepJSONIsRefused(t *testing.T) {
	for _, kind := range []string{webhook.JSON, webhook.GitHub, webhook.Alertmanager} {
		for _, template := range []string{"", "{{ json . }}", "{{ index .a 99 }}", "{{ .a }}"} {
			d := newRig(t, testConfig{kind: kind, template: template})
			for name, body := range map[string]string{
				"deep": nestedJSON(9000), "33 levels": nestedJSON(32), "unclosed": `{"a":` + strings.Repeat("[", 9000),
				"objects": strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000),
				"values":  `{"a":[` + strings.Repeat("1,", 100_001) + "1]}",
			} {
				var a response
				if mb := allocatedMB(func() { a = d.send(d.request("push", body)) }); mb > 8 {
					t.Errorf("%s, %s: %d MB were allocated", kind, name, mb)
				}
				if a.status != http.StatusBadRequest || !strings.Contains(a.Error.Message, "levels deep") && !strings.Contains(a.Error.Message, "100,000 values") {
					t.Errorf("%s, %s: %d %+v", kind, name, a.status, a.Error)
				}
			}
			if n := len(d.takeOutbound()); n != 0 {
				t.Errorf("%d messages were sent", n)
			}
		}
	}
}

// The largest accepted post takes little more memory than its size, whether a template shows it or a template
// has failed.
func TestLargeJSONIsShownWithinLimits(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	deep := strings.Repeat("[", 29) + strings.Repeat("7,", 90_000) + "7" + strings.Repeat("]", 29)
	for name, body := range map[string]string{
		"at the bottom": `{"a":` + deep + `,"alerts":[{"labels":` + "{}" + `}]}`,
		"one text":      `{"a":"` + strings.Repeat("<", 900_000) + `","alerts":[{}]}`,
		"many keys":     `{"a":{` + objectWithKeys(40_000) + `"x":1},"alerts":[{}]}`,
		"as deep as may": func() string {
			return nestedJSON(30)
		}(),
	} {
		for _, kind := range []string{webhook.JSON, webhook.GitHub, webhook.Alertmanager} {
			for _, template := range []string{"", "{{ json . }}", "{{ .a }}", "{{ json .a }}", "{{ index .a.b.c 99 }}"} {
				d := newRig(t, testConfig{kind: kind, template: template})
				if mb := allocatedMB(func() { d.mustAccept(d.request("unknown", body)) }); mb > 64 {
					t.Errorf("%s, %s with %q: %d MB were allocated", kind, name, template, mb)
				}
				if text := d.onlyMessage().Text; len(text) > 64<<10 {
					t.Errorf("%s, %s with %q: a text of %d bytes", kind, name, template, len(text))
				}
			}
		}
	}
}

func objectWithKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"key%d":{"b":%d},`, i, i)
	}
	return b.String()
}

// Each mistake has an error message of its own.
func TestMistakesHaveTheirOwnMessages(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.GitHub})
	for body, want := range map[string]string{`[1]`: "isn't a JSON object", `"x"`: "isn't a JSON object", `7`: "isn't a JSON object"} {
		if a := d.send(d.request("push", body)); a.status != 400 || !strings.Contains(a.Error.Message, want) {
			t.Errorf("%s: %d %+v", body, a.status, a.Error)
		}
	}
	for _, coding := range []string{"gzip", "br", "GZIP"} {
		r := d.request("push", "\x1f\x8b")
		r.Header.Set("Content-Encoding", coding)
		if a := d.send(r); a.status != http.StatusUnsupportedMediaType || !strings.Contains(a.Error.Message, "compressed") {
			t.Errorf("%s: %d %+v", coding, a.status, a.Error)
		}
	}
}

// Even for an empty push, the message reads like a sentence.
func TestAnEmptyPush(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.GitHub})
	for body, want := range map[string]string{
		`{}`:                "**GitHub** · somebody pushed no new commits",
		`{"commits":[]}`:    "**GitHub** · somebody pushed no new commits",
		`{"repository":{}}`: "**GitHub** · somebody pushed no new commits",
		`{"repository":{"full_name":"a/b"},"ref":"refs/heads/main","forced":true,"commits":[],"sender":{"login":"x"}}`: "**a/b** · x force-pushed no new commits to `main`",
	} {
		r := d.request("push", body)
		r.Header.Set("X-GitHub-Delivery", body)
		d.mustAccept(r)
		if got := d.onlyMessage().Text; got != want {
			t.Errorf("%s: %q", body, got)
		}
	}
}
