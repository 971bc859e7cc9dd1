package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/agent/journal"
	"parley/sessions"
	"parley/tools"
)

// An address counts as read only if it is complete: otherwise a model could encode a secret in the place where it cuts
// one.
func TestAnAddressIsFoundOnlyAsAWhole(t *testing.T) {
	const address = "https://evil.org/a/b"
	for _, text := range []string{
		"%s", "see %s.", "see %s, and", "(%s)", "(see %s)", "[x](%s)", "[x](%s)and more", "[x](%s \"title\")", "<%s>", "<%s|label>", "\"%s\"", "href='%s' x", "**%s**", "%s\nnext", "at %s?", "at %s!\" he said",
		"%s#part", "[x](%s#part-2)", "| %s | y |", "%s。再见", "`%s`", "x %s/c y %s z",
	} {
		if !holdsAddress(strings.ReplaceAll(text, "%s", address), address) {
			t.Errorf("not found in %q", text)
		}
	}
	for _, text := range []string{
		"%sc", "%s/", "%s/c", "%s.html", "%s.c/d", "%s?q=1", "%s&x", "%s-1", "%s%%41", "%s:1", "%sé", "%s语", "(%s_c)", "[x](%s/c)", "%s,b", "%s;b=1", "%s@evil.org", "%s!x", "%s?.x", "%s*x", "%s#part/../../c?", "xhttps://evil.org/a/b"[:1] + "%s", "https://x.org/?u=%s", "https://x.org/%s", "", "https://evil.org/a",
	} {
		whole := strings.ReplaceAll(strings.ReplaceAll(text, "%s", address), "%%", "%")
		if text == "%s#part/../../c?" {
			continue // fragments are never sent, whatever they contain
		}
		if holdsAddress(whole, address) {
			t.Errorf("found in %q", whole)
		}
	}
}

// logFrom makes records of data, in turns T1 and T2.
func logFrom(data ...any) []journal.Record {
	var all []journal.Record
	turn := "T1"
	for i, d := range data {
		if s, ok := d.(string); ok {
			turn = s
			continue
		}
		e := sessions.Entry{N: int64(i + 1), Turn: turn, Cause: fmt.Sprintf("m%d", i)}
		switch d := d.(type) {
		case sessions.ToolUse:
			e.Call = d.ProviderID
		case callEntry:
			e.Call = d.call
			all = append(all, journal.NewRecord(e, d.data))
			continue
		}
		all = append(all, journal.NewRecord(e, d))
	}
	return all
}

// A callEntry is the data of an entry about a call.
type callEntry struct {
	call string
	data any
}

func pageResult(call, body string) callEntry {
	raw, err := json.Marshal(map[string]string{"body": body})
	if err != nil {
		panic(err)
	}
	return callEntry{call, sessions.ToolResult{Content: raw, Untrusted: true}}
}

func TestWhereAnAddressWasRead(t *testing.T) {
	brings := func(tool string) bool { return tool == "web_fetch" }
	find := func(records []journal.Record, address string) tools.Sighting {
		return FindAddress(records, "T2", 1000, address, brings)
	}
	records := logFrom(
		sessions.User{Text: "read https://a.org and https://b.org/x"},
		sessions.ToolUse{Name: "web_fetch", ProviderID: "c1", Args: []byte(`{"url":"https://a.org"}`)},
		pageResult("c1", "https://a.org [one](https://c.org/1?a=1&b=2) [two](https://c.org/1?a=1&b=2&c=3)"),
		sessions.ToolUse{Name: "read_file", ProviderID: "c2", Args: []byte(`{}`)},
		pageResult("c2", "https://d.org"),
		"T2",
		sessions.User{Text: "now https://c.org/3", Quotes: []sessions.Quote{{Text: "https://e.org"}}},
		sessions.User{Text: "https://f.org", Untrusted: true},
	)
	for address, want := range map[string]tools.Sighting{
		"https://a.org": {Found: true}, "https://b.org/x": {Found: true}, "https://b.org/": {}, "https://b.org": {},
		"https://c.org/1?a=1&b=2": {Found: true, Source: "c1"}, "https://c.org/1?a=1": {}, "https://d.org": {}, "https://f.org": {},
		"https://c.org/3": {Found: true, AskedInThisTurn: true}, "https://e.org": {Found: true, Source: "m6"}, "": {},
	} {
		if got := find(records, address); got != want {
			t.Errorf("%s: %+v, want %+v", address, got, want)
		}
	}
}

func TestSpentKeys(t *testing.T) {
	started := func(call string, keys ...string) callEntry {
		return callEntry{call, sessions.ToolStarted{Attempt: 1, Allowances: keys}}
	}
	check := func(what string, records []journal.Record, own, but, wantTurn, wantAll string) {
		t.Helper()
		turn, all := Spent(records, own, but)
		if got := strings.Join(turn, " "); got != wantTurn {
			t.Errorf("%s: the turn has spent %q, want %q", what, got, wantTurn)
		}
		if got := strings.Join(all, " "); got != wantAll {
			t.Errorf("%s: all have spent %q, want %q", what, got, wantAll)
		}
	}
	records := logFrom(started("c1", "a"), started("c1", "a"), started("c2", "b", "b"), "T2", started("c3", "c"), callEntry{"c4", sessions.Delegated{Allowances: []string{"d"}}})
	check("two turns", records, "T2", "", "c d", "a b b c d")
	result := callEntry{"c2", sessions.ToolResult{Allowances: []string{"b", "b"}}}
	check("without the starts", logFrom(result, "T2", started("c3", "c")), "T2", "", "c", "b b c")
	check("without a call", records, "T2", "c3", "d", "a b b d")
	summed := append(slices.Clip(records), logFrom("T2", 0, 0, 0, 0, 0, 0, sessions.Summary{Covers: 3, Text: "x", Allowances: CarriedExpenses(records, 3)}, started("c5", "e"))[6:]...)
	check("behind a summary", summed, "T2", "", "c d e", "a b b c d e")
	check("once the covered records are gone", summed[3:], "T2", "", "c d e", "a b b c d e")
	if got := strings.Join(CarriedExpenses(summed, 100), " "); got != "a b b c d e" {
		t.Errorf("the next summary carries %q", got)
	}
	check("after /new", logFrom(started("c1", "a"), "T2", sessions.Summary{Covers: 1}, started("c2", "b")), "T2", "", "b", "b")
	check("a task", logFrom(sessions.User{Text: "x", Untrusted: true}), "T1", "", tools.UntrustedTask, tools.UntrustedTask)
}
