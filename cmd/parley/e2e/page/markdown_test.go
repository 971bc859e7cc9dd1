package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"

	"parley/cmd/parley/parleytest"
)

// samples returns texts with Markdown as models write it.
func samples() []string {
	return []string{
		"plain text\nover two lines\n\nand a second paragraph",
		"**bold**, *italic*, __bold__, _italic_, ***both***, ~~gone~~, `code`, ``co`de``, snake_case_name and 2 * 3 * 4",
		"a **bold with `code` and *italic* in it** end",
		"# One\n\n## Two\n\n### Three\n\ntext # no heading",
		"- one\n- two\n  - nested\n  - more\n    - deeper\n- three",
		"1. one\n2. two\n\n   a paragraph in it\n\n3. three",
		"- [ ] open\n- [x] done",
		"* star\n* list\n\n+ plus\n+ list",
		"- one\n\n  ```\n  code\n  ```\n- two\n\n> - in a quote\n>   - and deeper",
		"1. first\n   - inner\n   - inner two\n2. second\n   ```go\n   func f() {}\n   ```",
		"> quoted\n> on\n>\n> again\n\nnot quoted",
		"```go\nfunc main() {\n\tprintln(\"<b>\")\n}\n```\n\n~~~\nwaves ``` here\n~~~",
		"```\nnever closed\n- is code",
		"text\n```\ncode right below\n```\ntext right below",
		"| a | b |\n|---|:-:|\n| 1 | `x|y` |\n| 2 \\| 3 | **b** |\n\nbehind",
		"[a link](https://example.com/a_(b)?c=d&e=f \"title\") and <https://example.com/x> and https://example.com/y_z, (https://example.com/p).",
		"[mail](mailto:ann@example.com) [bad](javascript:alert(1)) [relative](/etc/passwd)",
		"a line  \nbroken hard\\\nand again",
		"---\n\n***\n\ntext\n\n___",
		"escaped \\*stars\\* and \\_lines\\_ and \\`ticks\\` &amp; &lt;tag&gt; &#95; &copy;",
		"<b>html</b> <script>x</script>\n\n<div>\nblock\n</div>",
		"Para with list right below:\n- one\n- two",
		"Steps:\n1. one\n1. two\n1. three",
		"5. five\n6. six",
		"* a\n\n  b\n\n* c",
		"**Note:** text**not bold** x",
		"3 < 4 && 5 > 2 and a*b*c and __init__.py",
		"Line with trailing colon:\n\n    indented code\n    more\n\nend",
		"- a\n- b\n\n\n- c\n\ntext",
		"Title\n=====\n\ntext\n\nLess\nimportant\n---\nmore\n***\nand # more #\n\n## closed ##\n\n# C#",
		"born in\n1815. Then\n1. a list",
		"- # heading\n- > quote\n- - inner\n- ```\n  code\n  ```\n- 1. one",
		"Wir **müssen** „das“ prüfen – 日本語の**太字**です。",
	}
}

// skeleton is JavaScript that reduces rendered Markdown to its elements and texts, in the same form for the page and
// for the server.
const skeleton = `(root => {
	const names = {H1: 'H', H2: 'H', H3: 'H', H4: 'H', H5: 'H', H6: 'H', DEL: 'S', B: 'STRONG', I: 'EM'};
	const shown = new Set(['P', 'H', 'UL', 'OL', 'LI', 'BLOCKQUOTE', 'PRE', 'CODE', 'STRONG', 'EM', 'S', 'A', 'TABLE', 'TR', 'TH', 'TD', 'HR', 'BR']);
	const walk = node => {
		if (node.nodeType === 3) return /^(T(ABLE|HEAD|BODY|R)|[UO]L)$/.test(node.parentNode.tagName) ? '' : node.textContent.replace(/\s+/g, ' ');
		if (node.nodeType !== 1 || node.classList.contains('code-bar')) return '';
		if (node.classList.contains('as-written')) return '<P>' + node.textContent.trim().split(/ *\n */).join('<BR></>') + '</>';
		const inside = node.tagName === 'PRE' ? node.textContent.trimEnd() : [...node.childNodes].map(walk).join('');
		const name = names[node.tagName] || node.tagName;
		if (!shown.has(name)) return inside;
		const more = name === 'A' ? ' ' + node.getAttribute('href') : name === 'OL' && node.start > 1 ? ' ' + node.start : '';
		return '<' + name + more + '>' + inside.trim() + '</>';
	};
	return walk(root).replace(/ ?(<\/?[A-Z>]+>?) ?/g, '$1').trim();
})`

// The page shows Markdown with the same elements as the server, whose rendering chats get in their own formats.
func TestMarkdownIsShownAsTheServerRendersIt(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	for _, sample := range samples() {
		text, err := json.Marshal(sample)
		parleytest.Must(t, err)
		var rendered struct{ HTML string }
		a := o.Ask("POST", "/v1/render", `{"markdown": `+string(text)+`}`, o.OwnerHeader()...)
		if err := json.Unmarshal([]byte(a.Body), &rendered); err != nil {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":[],"state":"done"}],"blocks":[{"turn":"t1","block":0,"kind":"text","text":`+string(text)+`,"done":true}]}`)
		want := eval[string](x, skeleton+"(new DOMParser().parseFromString("+quoted(rendered.HTML)+", 'text/html').body)")
		x.wait("the answer", "document.querySelector('.answer .markdown')?.firstChild")
		got := eval[string](x, skeleton+"(document.querySelector('.answer .markdown'))")
		if got != want {
			t.Errorf("%q\n shown as %s\nrendered %s\n%s", sample, got, want, strings.TrimSpace(rendered.HTML))
		}
		s.tell(0, "snapshot", `{"turns":[],"blocks":[]}`)
		x.wait("an empty page", "!document.querySelector('.answer')")
	}
}

// An answer that arrives in pieces always looks like an answer with the same text that arrives at once.
func TestAGrowingAnswerIsShownAsAWholeOneIs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	step := 0
	// say appends a text to block n of the turn, or restarts the block with the text.
	say := func(n int, anew bool, text string) {
		if anew {
			step++
			s.tell(step, "block_start", block(n, "text"))
		}
		step++
		s.tell(step, "block_delta", block(n, "text", "delta", quoted(text)))
	}
	for n, sample := range append(samples(), "1. one\n2. two\n\n3. three\n\n-") {
		size := 6
		if n == len(samples()) {
			size = 1 // a size at which each letter matters
		}
		s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":[],"state":"running"}],"blocks":[]}`)
		sample = "before\n\n" + sample + "\n\nbehind"
		shown := "…"
		at := 0
		say(0, true, shown)
		say(1, true, "~")
		say(2, true, "~")
		for piece := range slices.Chunk([]rune(sample), size) {
			shown += string(piece)
			say(0, false, string(piece))
			whole, other := 1+at%2, 2-at%2 // the tab that shows the whole text now has shown another one before
			say(whole, true, shown)
			say(other, true, "~")
			say(3, true, fmt.Sprint("step ", step))
			x.wait("all that was told", fmt.Sprintf("document.querySelectorAll('.answer')[3]?.textContent === 'step %d'", step-2))
			look := func(n int) string {
				return eval[string](x, fmt.Sprintf("%s(document.querySelectorAll('.answer .markdown')[%d])", skeleton, n))
			}
			at++
			if grown, whole := look(0), look(whole); grown != whole {
				t.Errorf("%q\ngrown to %s\nis whole %s", shown, grown, whole)
				break
			}
		}
	}
}

// A text that is made to keep a renderer busy becomes no more elements than the page can draw, and the rest stays as it
// was written. It costs the page hardly more work than an ordinary text of the same length.
func TestTextsOfMarksTakeLittleWork(t *testing.T) {
	t.Parallel()
	const (
		bytes        = 100_000
		mostElements = 4000 // as the page has it
		mostWork     = 10   // as a multiple of the work for an ordinary text
	)
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	command(x, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	// show shows a text that repeats a piece, and returns the work for it, without the time for which the page waited
	// for a processor.
	show := func(piece string) (work float64) {
		t.Helper()
		before := x.worked()
		text := strings.Repeat(piece, bytes/len(piece)) + "\n\nthe end"
		s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":[],"state":"done"}],"blocks":[{"turn":"t1","block":0,"kind":"text","text":`+quoted(text)+`,"done":true}]}`)
		x.waitText(".answer", "the end")
		frames(x)
		work = x.worked() - before
		if n := eval[int](x, "document.querySelectorAll('.answer *').length"); n > mostElements*5/4 {
			t.Errorf("a text of %.20q became %d elements", piece, n)
		}
		s.tell(0, "snapshot", `{"turns":[],"blocks":[]}`)
		x.wait("an empty page", "!document.querySelector('.answer')")
		return work
	}
	ordinary := show("## A heading\n\nSome words, **some** of them `marked`.\n\n- one\n- two\n\n")
	for _, piece := range []string{
		"*", "**a", "**a** ", "_a", "`", "`a` ", "[", "[a](", "[a](http://a) ", "![", "<", "&a;", "&lt;", "~~", "> ", "> a\n\n", "- ", "1. ", "| a ", "|-", "|a|b|\n|-|-|\n|c|d|\n\n", "|a|b|\n|-|-|\n" + strings.Repeat("|c|d|\n", 10_000),
		"\\", "\\*", "\\\n", "h", "https://", "#", "# a\n", "---\n", "```\n", "    a\n\nb\n\n", "  \n", "a\n", "a\n\n", strings.Repeat("![", 90) + strings.Repeat("a*b_", 2000) + strings.Repeat("](x)", 90) + "\n\n", "www.a.b" + strings.Repeat("!", 1900) + " ",
		strings.Repeat("|a", 10_000) + "\n" + strings.Repeat("|-", 10_000) + "\n", "- a\n  ", "- a\n", "- a\n  - b\n", "- a\n\n", "a*b_c`d[e",
	} {
		if work := show(piece); work > mostWork*ordinary {
			t.Errorf("a text of %.20q took %.3f s of work, and an ordinary one %.3f s", piece, work, ordinary)
		}
	}
}

// Once a text has produced the maximum number of elements, the rest of it is shown as it was written, and nothing is
// missing. The result is the same whether the text arrives in pieces or at once.
func TestTheRestOfALongTextStaysAsItWasWritten(t *testing.T) {
	t.Parallel()
	const end = "the **very**\nend"
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	step := 0
	tell := func(kind, data string) {
		step++
		s.tell(step, kind, data)
	}
	for _, text := range []string{
		"before\n\n" + strings.Repeat("- **word** [b](http://c)\n", 3000),
		"before\n\n" + strings.Repeat("- a\n\n  word\n", 3000),
		"|a|b|\n|-|-|\n" + strings.Repeat("|c|`word`|\n", 3000),
		strings.Repeat("*one* word\n\n", 4000),
		strings.Repeat("a line with *one* word\n", 4000),
		strings.Repeat("> - a\n>   - word\n", 4000),
		strings.Repeat("```\nword\n```\n", 2000),
	} {
		text += "\n\n" + end
		s.tell(0, "snapshot", `{"turns":[{"turn":"t1","causes":["m1"],"state":"running"}],"blocks":[]}`)
		tell("block_start", block(0, "text"))
		for piece := range slices.Chunk([]byte(text), len(text)/3) {
			tell("block_delta", block(0, "text", "delta", quoted(string(piece))))
			told := fmt.Sprint("step ", step)
			tell("block_start", block(2, "text"))
			tell("block_delta", block(2, "text", "delta", quoted(told)))
			x.waitText(".answer", told)
		}
		tell("block_start", block(1, "text"))
		tell("block_delta", block(1, "text", "delta", quoted(text)))
		tell("block_start", block(2, "text"))
		tell("block_delta", block(2, "text", "delta", `"all is told"`))
		x.waitText(".answer", "all is told")
		const shown = "[...document.querySelectorAll('.answer .markdown')]"
		if !eval[bool](x, shown+"[0].innerHTML === "+shown+"[1].innerHTML") {
			t.Errorf("%.20q differs if it comes in pieces", text)
		}
		if got := eval[string](x, shown+"[0].textContent"); !strings.HasSuffix(got, end) {
			t.Errorf("%.20q ends with %q", text, got[max(0, len(got)-40):])
		}
		if got, want := eval[int](x, shown+"[0].textContent.split('word').length - 1"), strings.Count(text, "word"); got != want {
			t.Errorf("%.20q has %d words, want %d", text, got, want)
		}
		s.tell(0, "snapshot", `{"turns":[],"blocks":[]}`)
		x.wait("an empty page", "!document.querySelector('.answer')")
	}
}

// worked returns for how many seconds the page has worked since the tab was opened.
func (x *tab) worked() float64 {
	x.t.Helper()
	for _, m := range command(x, performance.GetMetrics, cdp.Empty{}).Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	x.t.Fatal("the browser does not say how long it has worked")
	return 0
}
