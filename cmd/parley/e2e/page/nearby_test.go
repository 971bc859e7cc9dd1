package page

import (
	"fmt"
	"strings"
	"testing"
)

// Of the earlier parts of a conversation, only the ones that the person is using or was near last have elements. The
// other parts keep their space, and get elements again when the person scrolls near them.
func TestOnlyNearbyPartsHaveElements(t *testing.T) {
	t.Parallel()
	const turns, newest, most = 500, 8, 10 // most as the page has it
	s := newStage(t)
	entries := entriesOf(turns)
	s.keeps(entries)
	x := s.open(newBrowser(t))
	<-s.lastID
	s.snapshot(entries[len(entries)-6*newest:])
	x.waitText(".answer", fmt.Sprintf("File %d", turns-1))
	const full = "[...document.querySelectorAll('.earlier-part')].filter(p => p.firstChild)"
	// The person opens a call in the second part.
	const opened = "document.querySelector('.earlier-part details.call[open]')"
	for parts := 1; eval[bool](x, "!!document.querySelector('.earlier')"); parts++ {
		x.press("Show earlier messages")
		x.wait("earlier messages", fmt.Sprintf("document.querySelectorAll('.earlier-part').length >= %d", parts))
		if parts == 2 {
			eval[bool](x, "(document.querySelector('.earlier-part .call summary').click(), true)")
			x.wait("the call to open", opened)
		}
	}
	parts := eval[int](x, "document.querySelectorAll('.earlier-part').length")
	if parts <= most+2 {
		t.Fatalf("there are only %d parts", parts)
	}
	eval[bool](x, "(document.querySelector('.scroll').scrollTop = 0, true)")
	x.waitText(".answer", "File 0")
	x.wait("parts to be cleared", fmt.Sprintf("%s.length <= %d", full, most+1))
	if !eval[bool](x, "!!"+opened) {
		t.Error("what somebody opened has no elements")
	}
	if !eval[bool](x, "[...document.querySelectorAll('.earlier-part')].every(p => p.offsetHeight > 1000)") {
		t.Error("a part has lost its place")
	}

	middle := parts / 2
	part := fmt.Sprintf("document.querySelectorAll('.earlier-part')[%d]", middle)
	if eval[bool](x, "!!"+part+".firstChild") {
		t.Fatal("a part far away has elements")
	}
	eval[bool](x, "("+part+".scrollIntoView(), true)")
	x.wait("the part", part+".querySelector('.answer')")
	x.wait("fewer parts", fmt.Sprintf("%s.length <= %d", full, most+1))
	const last = "[...document.querySelectorAll('.earlier-part')].at(-1)"
	eval[bool](x, "("+last+".scrollIntoView(), true)")
	x.wait("the newest part", last+".querySelector('.answer')")
	x.waitText(".answer", fmt.Sprintf("File %d", turns-1))
}

// A message on a person's behalf that a turn on the screen already shows is not loaded again from the log. If the page
// shows a shortened text, it says so.
func TestWhatIsOnTheScreenIsNotReadBack(t *testing.T) {
	t.Parallel()
	const turns, newest = 30, 8
	s := newStage(t)
	entries := entriesOf(turns)
	entries = append(entries, map[string]any{"n": len(entries) + 1, "turn": "i1#told", "cause": "i1#told", "kind": "notice", "at": "2026-01-02T03:04:05Z",
		"data": map[string]any{"code": "told", "quotes": []map[string]any{{"kind": "told", "name": "Ann", "text": "lunch at noon"}}}})
	s.keeps(entries)
	x := s.open(newBrowser(t))
	<-s.lastID
	s.snapshot(entries[6*(turns-newest) : 6*turns])
	x.waitText(".answer", fmt.Sprintf("File %d", turns-1))
	s.tell(1, "message", `{"call":"i1","kind":"told","name":"Ann","delta":"lunch at noon","cut":true}`)
	x.waitText(".said.told", "lunch at noon")
	x.waitText(".said.told", "the log has the rest")
	x.press("Show earlier messages")
	x.waitText(".earlier-part .answer", fmt.Sprintf("File %d", turns-newest-1))
	if n := x.count(".scroll", "lunch at noon"); n != 1 {
		t.Errorf("it stands there %d times", n)
	}
}

// The page lays out long code in pieces. A person who copies the code gets it as it was written.
func TestLongCodeIsCopiedAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	var lines []string
	for n := range 300 {
		lines = append(lines, []string{fmt.Sprintf("line %d", n), "\tindented", ""}[n%3])
	}
	code := strings.Join(lines, "\n")
	s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":[],"state":"done"}],"blocks":[{"turn":"t1","block":0,"kind":"text","text":`+quoted("```\n"+code+"\n```")+`,"done":true}]}`)
	x.wait("code in pieces", "document.querySelectorAll('.answer .piece').length > 2")
	if got := eval[string](x, "document.querySelector('.answer pre').textContent"); got != code {
		t.Errorf("shown as %q", got)
	}
	eval[bool](x, "(getSelection().selectAllChildren(document.querySelector('.answer pre')), true)")
	if got := eval[string](x, "getSelection().toString()"); strings.TrimRight(got, "\n") != strings.TrimRight(code, "\n") {
		t.Errorf("copied as %q", got)
	}
	// Each line is as high as one line of text.
	if got := eval[float64](x, "document.querySelector('.answer code').offsetHeight / parseFloat(getComputedStyle(document.querySelector('.answer code')).lineHeight)"); got < 298.5 || got > 300.5 {
		t.Errorf("%d lines are as high as %.1f", len(lines), got)
	}
}
