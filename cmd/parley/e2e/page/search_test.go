package page

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/cmd/parley/parleytest"
)

// A search finds what was said, and a hit leads to its place in the conversation, however old it is. From there, a
// person can read on in both directions. The search fits on a phone and is accessible.
func TestWhatWasSaidIsFoundOnThePage(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, "")
	const turns = 50
	for n := range turns {
		text := fmt.Sprintf("message %d.", n)
		if n == 20 {
			text += " The word is frobozz."
		}
		a := o.Ask("POST", "/v1/messages", fmt.Sprintf(`{"to": "agent", "session": "long", "text": %q}`, text), o.OwnerHeader()...)
		parleytest.WaitFor(t, "the message to be answered", func() bool { return o.Model.Asked() > n })
		if a.Status != 202 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	o.Telegram.Say(2, 2, "frobozz, too")
	o.WaitSaid(2, 1)
	x := enter(newBrowser(t), o, 1280, 800)
	const search = ".sessions input"
	eval[bool](x, "(document.querySelector('.sessions input').focus(), true)")
	x.write(search, "frobozz")
	x.wait("three or more hits", "document.querySelectorAll('.found li').length >= 3")
	if got := x.text(".found"); !strings.Contains(got, "The word is frobozz.") || !strings.Contains(got, "frobozz, too") || !strings.Contains(got, "User 2") {
		t.Errorf("the hits are %q", got)
	}
	eval[bool](x, "([...document.querySelectorAll('.found a')].find(a => a.textContent.includes('message 20') && !a.textContent.includes('you said')).click(), true)")
	x.waitText(".sought", "message 20. The word is frobozz.")
	x.wait("it to be in sight", `(() => {
		const at = document.querySelector('.sought').getBoundingClientRect(), box = document.querySelector('.scroll').getBoundingClientRect();
		return at.top >= box.top && at.bottom <= box.bottom && document.activeElement === document.querySelector('.sought');
	})()`)
	if all := x.text(".scroll"); strings.Contains(all, "message 0.") || strings.Contains(all, "message 49.") || !strings.Contains(all, "message 19.") || !strings.Contains(all, "message 21.") {
		t.Errorf("around it is %q", all)
	}
	for _, more := range []string{"Show earlier messages", "Show later messages"} {
		for range 10 {
			if !eval[bool](x, fmt.Sprintf("[...document.querySelectorAll('.scroll button')].some(b => b.textContent === %q)", more)) {
				break
			}
			x.press(more)
			x.wait("what is read", "!document.querySelector('.scroll button[aria-busy=true]')")
		}
	}
	if n := x.count(".answer", "you said message"); n != turns {
		t.Errorf("read to both ends, there are %d answers", n)
	}
	folder := os.Getenv("PARLEY_TEST_PAGE")
	for _, scheme := range []string{"light", "dark"} {
		x.look(scheme)
		x.fits("search")
		x.picture("search-" + scheme)
		if folder != "" {
			axe, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
			parleytest.Must(t, err)
			eval[bool](x, string(axe)+"; true")
			for _, found := range (visit{x, o}).axe() {
				t.Errorf("%s: %s", scheme, found)
			}
		}
	}
	eval[bool](x, "([...document.querySelectorAll('.head a')].find(a => a.textContent === 'Latest messages').click(), true)")
	x.waitText(".answer", fmt.Sprintf("you said message %d.", turns-1))
	x.wait("the field to write in", "document.querySelector('textarea')")

	at := eval[string](x, "document.querySelector('.found a').hash")
	small := enter(newBrowser(t), o, 390, 844)
	eval[bool](small, fmt.Sprintf("(location.hash = %q, true)", at))
	small.waitText(".sought", "frobozz")
	small.fits("a hit on a phone")
	eval[bool](small, "(location.hash = '#/chat', true)")
	small.write(search, "zyxwvu")
	small.waitText(".found .empty", "No messages found with these words.")
	small.fits("no hit on a phone")
}

// hit returns the result of a search: one entry of the stage's session.
func hit(n int, text string, more string) string {
	return fmt.Sprintf(`{"hits":[{"session":"main:web:owner:x","n":%d,"kind":"user","at":"2026-01-02T03:04:05Z","person":"web:owner","text":%q%s}]}`, n, text, more)
}

// The page marks hits that strangers may have written, and no other hits.
func TestHitsOfStrangersAreMarked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mux.HandleFunc("GET /v1/search", func(w http.ResponseWriter, r *http.Request) {
		more := ""
		if r.FormValue("q") == "theirs" {
			more = `,"untrusted":true`
		}
		_, _ = w.Write([]byte(hit(1, "found for "+r.FormValue("q"), more)))
	})
	x := s.open(newBrowser(t))
	<-s.lastID
	x.wait("the field", "document.querySelector('.sessions input')")
	for marks, words := range []string{"ours", "theirs"} {
		x.search(words)
		x.waitText(".found li", "found for "+words)
		if n := x.count(".found li .badge.warn", "strangers may have written it"); n != marks {
			t.Errorf("%s has %d marks: %q", words, n, x.text(".found"))
		}
	}
	x.fits("a mark")
}

// search types words into the search field.
func (x *tab) search(words string) {
	x.t.Helper()
	eval[bool](x, fmt.Sprintf("(i => (i.value = %q, i.dispatchEvent(new Event('input', {bubbles: true})), true))(document.querySelector('.sessions input'))", words))
}

// The page searches once for the same words, whatever happens on the server. The previous hits stay until the new ones
// arrive.
func TestWordsAreSearchedOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var searches, lists atomic.Int64
	answers := make(chan string)
	s.mux.HandleFunc("GET /v1/search", func(w http.ResponseWriter, r *http.Request) {
		searches.Add(1)
		select {
		case answer := <-answers:
			_, _ = w.Write([]byte(answer))
		case <-r.Context().Done():
		}
	})
	s.sessions = func(w http.ResponseWriter, _ *http.Request) {
		lists.Add(1)
		_, _ = w.Write([]byte(`{"sessions":[]}`))
	}
	x := s.open(newBrowser(t))
	<-s.lastID
	x.wait("the field", "document.querySelector('.sessions input')")
	x.search("alpha")
	answers <- hit(1, "all about alpha", "")
	x.waitText(".found li", "all about alpha")
	for range 2 { // the page reads the list of sessions after the first event, before the second one is sent
		before := lists.Load()
		s.happens("turn_complete", `{"session":"main:web:owner:x"}`)
		parleytest.WaitFor(t, "the sessions to be read again", func() bool { return lists.Load() > before })
	}
	if n := searches.Load(); n != 1 {
		t.Fatalf("there were %d searches for the same words", n)
	}
	x.search("beta")
	parleytest.WaitFor(t, "the next search", func() bool { return searches.Load() == 2 })
	if n := x.count(".found li", "all about alpha"); n != 1 {
		t.Errorf("what the first search found is there %d times", n)
	}
	answers <- hit(2, "all about beta", "")
	x.waitText(".found li", "all about beta")
	if all := x.text(".found"); strings.Contains(all, "alpha") {
		t.Errorf("what the first search found is still there: %q", all)
	}
}

// If a person opens another hit while earlier messages load, the page shows that hit, and no error.
func TestAnotherHitWhileEarlierMessagesAreRead(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	entries := entriesOf(100)
	reads := make(chan struct{}, 1)
	s.mux.HandleFunc("GET /v1/sessions/{key}", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("after") == "379" { // asks for the 60 entries before those around the first hit
			reads <- struct{}{}
			<-r.Context().Done()
			return
		}
		serveEntries(w, r, entries)
	})
	const at = "#/chat/main%3Aweb%3Aowner%3Ax/"
	x := newBrowser(t).open(s.url+"/"+at+"500", 1280, 800)
	x.waitText(".sought", "file 83")
	x.press("Show earlier messages")
	<-reads
	eval[bool](x, fmt.Sprintf("(location.hash = %q, true)", at+"300"))
	x.waitText(".sought", "File 49")
	if wrong := x.text(".note.error"); wrong != "" {
		t.Errorf("it says %q", wrong)
	}
}

// A hit links to its message on its platform if the address is a web address.
func TestAHitLeadsToItsPlatform(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.mux.HandleFunc("GET /v1/search", func(w http.ResponseWriter, r *http.Request) {
		links := map[string]string{"web": "https://example.org/there", "script": "javascript:alert(1)", "mail": "mailto:a@example.org", "none": ""}
		_, _ = w.Write([]byte(hit(1, "found for "+r.FormValue("q"), fmt.Sprintf(`,"link":%q`, links[r.FormValue("q")]))))
	})
	x := s.open(newBrowser(t))
	<-s.lastID
	x.wait("the field", "document.querySelector('.sessions input')")
	for _, words := range []string{"script", "mail", "none", "web"} {
		x.search(words)
		x.waitText(".found li", "found for "+words)
		want := "[]"
		if words == "web" {
			want = `["https://example.org/there noopener noreferrer _blank"]`
		}
		if got := eval[string](x, "JSON.stringify([...document.querySelectorAll('.found .there')].map(a => `${a.href} ${a.rel} ${a.target}`))"); got != want {
			t.Errorf("for %s there are the links %s, want %s", words, got, want)
		}
	}
	x.fits("a link to a platform")
}
