package sessions_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/sessions"
)

func newEpisode() sessions.Episode {
	return sessions.Episode{
		Entry: 2, Question: "deploy xyzzy", Answer: "It runs as xyzzy.", Untrusted: true, MoreCalls: 3,
		Deeds: []sessions.Deed{{Tool: "exec", Calls: 2, Subject: "make xyzzy"}, {Tool: "web_fetch", Calls: 1, Subject: "https://xyzzy.example", Outcome: sessions.CallFailed}},
	}
}

func TestAnEpisodeOnOneLine(t *testing.T) {
	e := newEpisode()
	if got, want := e.OneLine(), "deploy xyzzy → exec ×2 make xyzzy; web_fetch https://xyzzy.example (failed); 3 more → It runs as xyzzy."; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
	if got, want := e.DeedsInWords(false), "exec ×2; web_fetch (failed); 3 more"; got != want {
		t.Errorf("without what strangers may have written it did %q, want %q", got, want)
	}
	if got := (sessions.Episode{Answer: "x"}).OneLine(); got != "x" {
		t.Errorf("the line is %q", got)
	}
}

// The previous release reads an episode as a notice without content. When the message that asked is deleted, a
// program that knows only those fields empties the episode too, like this release.
func TestThePreviousReleaseReadsAnEpisode(t *testing.T) {
	e, err := sessions.NewEntry("t", sessions.KindNotice, newEpisode().Notice("m1"))
	if err != nil {
		t.Fatal(err)
	}
	var before struct { // the type as that release has it
		Code   string           `json:"code"`
		Text   string           `json:"text"`
		Quotes []sessions.Quote `json:"quotes,omitempty"`
		Of     string           `json:"of,omitempty"`
	}
	if err := json.Unmarshal(e.Data, &before); err != nil {
		t.Fatal(err)
	}
	if before.Code == "" || before.Of != "m1" || before.Text == "" || len(before.Quotes) > 0 || strings.Contains(before.Text, "xyzzy") {
		t.Errorf("that release reads %+v", before)
	}
	left, is := sessions.DataAfterDeletion(e, "m1")
	raw, err := json.Marshal(left)
	if err != nil || !is || strings.Contains(string(raw), "xyzzy") || !strings.Contains(string(raw), before.Text) {
		t.Errorf("of a deleted message there is left %s, %v, %v", raw, is, err)
	}
	if _, is := sessions.DataAfterDeletion(e, "m2"); is {
		t.Error("an episode is emptied with another message")
	}
	if e.Data = raw; !e.IsEpisode() {
		t.Error("what was emptied is shown to people")
	}
}

func TestIsEpisode(t *testing.T) {
	for code, want := range map[string]bool{sessions.NoticeEpisode: true, sessions.NoticeMemory: false, "": false} {
		e, err := sessions.NewEntry("t", sessions.KindNotice, sessions.Notice{Code: code})
		if err != nil || e.IsEpisode() != want {
			t.Errorf("a notice with the code %q is an episode: %t, %v", code, !want, err)
		}
	}
}

func TestBeginsAnew(t *testing.T) {
	for name, c := range map[string]struct {
		summary sessions.Summary
		want    bool
	}{
		"/new":                         {sessions.Summary{Covers: 7}, true},
		"/new with episodes":           {sessions.Summary{Covers: 7, Keep: []int64{6}}, true},
		"a summary":                    {sessions.Summary{Covers: 7, Cleared: 7, Text: "so far", Keep: []int64{6}}, false},
		"a summary that was erased":    {sessions.Summary{Covers: 7, Cleared: 7, Keep: []int64{6}}, false},
		"results that are emptied":     {sessions.Summary{Cleared: 7}, false},
		"a summary of a part, emptied": {sessions.Summary{Covers: 7, Turn: "t"}, false},
	} {
		if got := c.summary.BeginsAnew(); got != c.want {
			t.Errorf("%s begins anew: %t", name, got)
		}
	}
}
