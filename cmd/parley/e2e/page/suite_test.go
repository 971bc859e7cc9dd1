package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/channels/markup"
	"parley/channels/markup/markuptest"
)

// A shownText is what a page shows of a text: as HTML, with the numbers of lists and without buttons, and as a
// skeleton.
type shownText struct{ HTML, Skeleton string }

// shows makes a page show each text as the answer of a turn, and returns what it shows for each.
func (s *stage) shows(x *tab, texts []string) []shownText {
	s.t.Helper()
	var turns, blocks []string
	for n, text := range texts {
		turns = append(turns, fmt.Sprintf(`{"turn":"t%d","causes":[],"state":"done"}`, n))
		blocks = append(blocks, fmt.Sprintf(`{"turn":"t%d","block":0,"kind":"text","text":%s,"done":true}`, n, quoted(text)))
	}
	s.tell(0, "snapshot", `{"turns":[`+strings.Join(turns, ",")+`],"blocks":[`+strings.Join(blocks, ",")+`]}`)
	x.wait("all turns", fmt.Sprintf("document.querySelectorAll('.turn').length === %d", len(texts)))
	shown := eval[[]shownText](x, `[...document.querySelectorAll('.turn')].map(t => {
		const copy = t.querySelector('.markdown')?.cloneNode(true);
		if (!copy) return {HTML: '', Skeleton: ''};
		const Skeleton = `+skeleton+`(copy);
		copy.querySelectorAll('button').forEach(b => b.remove());
		copy.querySelectorAll('ol').forEach(l => [...l.children].forEach((i, n) => i.prepend(l.start + n + '. ')));
		return {HTML: copy.innerHTML, Skeleton};
	})`)
	s.tell(0, "snapshot", `{"turns":[],"blocks":[]}`)
	x.wait("an empty page", "!document.querySelector('.turn')")
	return shown
}

// checkShown is JavaScript that checks that the Markdown on a page cannot load or run anything, and that its links lead
// to the web.
const checkShown = `(() => {
	const tags = new Set('DIV P H3 H4 PRE CODE SPAN BUTTON TABLE THEAD TBODY TR TH TD HR BLOCKQUOTE OL UL LI A STRONG EM S BR'.split(' '));
	const attributes = new Set('class tabindex role aria-label scope start href target rel type'.split(' '));
	const wrong = [];
	for (const e of document.querySelectorAll('.markdown, .markdown *')) {
		if (!tags.has(e.tagName)) wrong.push('<' + e.tagName + '>');
		for (const a of e.attributes) if (!attributes.has(a.name)) wrong.push(e.tagName + ' ' + a.name + '=' + a.value);
		if (e.tagName === 'A' && !/^(https?:|mailto:)/i.test(e.getAttribute('href'))) wrong.push('a link to ' + e.getAttribute('href'));
	}
	return wrong;
})()`

// The page passes the suite that tests the server's Markdown for terminals and platforms, as far as both promise the
// same: no example of the specifications loses any text, and no text can run a script. The page renders at least as
// many examples like the server as before.
func TestThePagePassesTheSuiteOfMarkup(t *testing.T) {
	t.Parallel()
	const asServer = 669
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	eval[bool](x, `(window.wrong = [], new MutationObserver(() => window.wrong.push(...`+checkShown+`)).observe(document.body, {childList: true, subtree: true}), true)`)
	server := markup.New()
	examples := markuptest.Examples(t, "../../../../channels/markup/testdata/spec")
	same := 0
	for some := range slices.Chunk(examples, 60) {
		var texts, rendered []string
		for _, e := range some {
			var html strings.Builder
			for _, p := range server.Render(e.Markdown, markup.HTML, 0) {
				html.WriteString(p.Text)
			}
			texts, rendered = append(texts, e.Markdown), append(rendered, quoted(html.String()))
		}
		shown := s.shows(x, texts)
		skeletons := eval[[]string](x, "["+strings.Join(rendered, ",")+"].map(html => "+skeleton+"(new DOMParser().parseFromString(html, 'text/html').body))")
		for n, e := range some {
			want, got := markuptest.Letters(markuptest.Shown(t, e.HTML)), markuptest.Letters(markuptest.Shown(t, shown[n].HTML))
			if !markuptest.IsWithin(want, got) {
				t.Errorf("%s: %q is shown as %q", e.Name, e.Markdown, shown[n].HTML)
			}
			if shown[n].Skeleton == skeletons[n] {
				same++
			}
		}
	}
	if t.Logf("%d of %d examples are shown as the server renders them", same, len(examples)); same < asServer {
		t.Errorf("only %d examples are shown as the server renders them, want %d", same, asServer)
	}
	s.shows(x, markuptest.Hostile())
	if wrong := eval[[]string](x, "[...new Set(window.wrong)]"); len(wrong) > 0 {
		t.Errorf("the page has %q", wrong)
	}
}

// Quotes and lists that are nested too deeply stay as they were written, and no text is lost.
func TestWhatIsNestedTooDeepStaysAsItWasWritten(t *testing.T) {
	t.Parallel()
	const times = 2000
	s := newStage(t)
	x := s.open(newBrowser(t))
	<-s.lastID
	marks := []string{"> ", "- ", "1. ", "> - "}
	var texts []string
	for _, mark := range marks {
		texts = append(texts, strings.Repeat(mark, times)+"word")
	}
	for n, shown := range s.shows(x, texts) {
		if !strings.Contains(shown.HTML, "word") || strings.Count(shown.Skeleton, strings.TrimSpace(marks[n])) < times/2 {
			t.Errorf("%q repeated is shown as %.400s", marks[n], shown.HTML)
		}
		if most := 40; strings.Count(shown.HTML, "<li>")+strings.Count(shown.HTML, "<blockquote>") > most {
			t.Errorf("%q repeated has more than %d levels", marks[n], most)
		}
	}
}
