package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/blocks"
	"parley/agent/llm"
	"parley/bus"
)

// A watcher sees each word within milliseconds. Where very many answers come at once, their
// words come in fewer events, and none is lost.
func TestWordsComeAtOnceUnlessAnswersAreMany(t *testing.T) {
	for _, tc := range []struct {
		answers         int
		latest          time.Duration
		fewest, highest int // events
	}{{1, 2 * time.Millisecond, 100, 100}, {5000, 40 * time.Millisecond, 20, 30}} {
		synctest.Test(t, func(t *testing.T) {
			pace := new(Counter)
			pace.open.Add(int64(tc.answers - 1))
			var mu sync.Mutex // of all that follows
			var said strings.Builder
			var written time.Time
			events, late := 0, time.Duration(0)
			s := New(pace, 0, func(e bus.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Type == bus.BlockDelta {
					events++
					said.WriteString(e.Delta)
					late = max(late, time.Since(written))
				}
			}, func(llm.BlockKind) func(string, bool) string { return func(p string, _ bool) string { return p } })
			for range 100 {
				mu.Lock()
				written = time.Now()
				mu.Unlock()
				s.Delta(llm.Delta{Kind: llm.BlockText, Text: "word "})
				time.Sleep(10 * time.Millisecond)
			}
			s.End()
			s.Close()
			mu.Lock()
			defer mu.Unlock()
			if said.String() != strings.Repeat("word ", 100) || events < tc.fewest || events > tc.highest || late > tc.latest {
				t.Errorf("beside %d answers: %d events, the last word of one after %v", tc.answers-1, events, late)
			}
			if left := pace.open.Load(); left != int64(tc.answers-1) {
				t.Errorf("%d answers are counted", left)
			}
		})
	}
}

// Whatever watchers were told of an answer while it came, in the end they know what the log has.
func TestWatchersEndWithWhatIsWritten(t *testing.T) {
	text := func(said string) blocks.Block { return blocks.Block{Kind: "text", Text: said} }
	use := func(tool, input string) blocks.Block {
		return blocks.Block{Kind: "tool_use", Tool: tool, Call: "c-" + tool, Detail: bus.Detail{Input: json.RawMessage(input)}}
	}
	said := func(block int, said string) llm.Delta {
		return llm.Delta{Block: block, Kind: llm.BlockText, Text: said}
	}
	called := func(block int, tool, piece string) llm.Delta {
		return llm.Delta{Block: block, Kind: llm.BlockToolUse, Name: tool, Text: piece}
	}
	long := strings.Repeat("é", blocks.MostOfCall)
	for name, tc := range map[string]struct {
		came   []llm.Delta
		logged []blocks.Block
		want   string // the course; texts in it are only counted if they are long
	}{
		"as it came": {[]llm.Delta{said(0, "a"), said(0, "b"), called(1, "x", `{"n"`), called(1, "", `: 1}`)}, []blocks.Block{text("ab"), use("x", `{"n":1}`)},
			`start 5 text|delta a|delta b|start 6 tool_use|delta {"n"|delta : 1}|stop 5|stop 6 {"n":1}`},
		"nothing came": {nil, []blocks.Block{text("ab"), use("x", `{}`)}, `start 5 text|delta ab|stop 5|start 6 tool_use|stop 6 {}`},
		"the end of a block came too late to be shown": {[]llm.Delta{said(0, "a"), called(1, "x", "{}"), said(0, "b")}, []blocks.Block{text("ab"), use("x", `{}`)},
			`start 5 text|delta a|start 6 tool_use|delta {}|delta b|stop 5|stop 6 {}`},
		"something else was shown": {[]llm.Delta{said(0, "ax")}, []blocks.Block{text("ab")}, `start 5 text|delta ax|start 5 text|delta ab|stop 5`},
		"a call is left out": {[]llm.Delta{called(0, "x", "{}"), said(1, "a")}, []blocks.Block{text("a")},
			`start 5 tool_use|delta {}|start 6 text|delta a|reset 5|start 5 text|delta a|stop 5`},
		"the last call is left out": {[]llm.Delta{said(0, "a"), called(1, "x", "{}")}, []blocks.Block{text("a")},
			`start 5 text|delta a|start 6 tool_use|delta {}|stop 5|reset 6`},
		"it came again": {[]llm.Delta{said(0, "a"), {Void: true}, said(0, "b")}, []blocks.Block{text("b")}, `start 5 text|delta a|reset 5|start 5 text|delta b|stop 5`},
		"a long input": {[]llm.Delta{called(0, "x", `{"a":"`), called(0, "", long), called(0, "", long)}, []blocks.Block{use("x", `{}`)},
			fmt.Sprintf(`start 5 tool_use|delta {"a":"|delta of %d|stop 5 {}`, blocks.MostOfCall-len(`{"a":"`))},
	} {
		t.Run(name, func(t *testing.T) {
			var course []string
			s := New(new(Counter), 5, func(e bus.Event) {
				step := strings.TrimPrefix(e.Type, "block_") + " "
				switch {
				case e.Type == bus.BlockDelta && len(e.Delta) > 100:
					step += fmt.Sprint("of ", len(e.Delta))
				case e.Type == bus.BlockDelta:
					step += e.Delta
				case e.Type == bus.BlockStart:
					step += fmt.Sprint(e.Block, " ", e.Kind)
				case e.Detail != nil:
					step += fmt.Sprint(e.Block, " ", string(e.Input))
				default:
					step += fmt.Sprint(e.Block)
				}
				if e.Type == bus.BlockStop && e.Kind == "tool_use" && e.Call != "c-"+e.Tool {
					t.Errorf("%+v", e)
				}
				course = append(course, step)
			}, func(llm.BlockKind) func(string, bool) string { return func(p string, _ bool) string { return p } })
			for _, d := range tc.came {
				s.Delta(d)
				s.last = time.Time{} // each piece goes out at once
			}
			s.End()
			s.Close()
			s.Written(tc.logged)
			if got := strings.Join(course, "|"); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
