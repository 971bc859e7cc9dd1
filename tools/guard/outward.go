package guard

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"parley/tools"
)

// The rule of two: a model that has read what strangers may have written, and can see what is
// private, must not also act on the outside without a person's approval. What it has read may be
// orders.

// describeOutward says what a call would do to the outside beyond answering the person who asks;
// "" if nothing.
func (g *Guard) describeOutward(call tools.Call) string {
	switch call.Name {
	case message:
		for _, p := range g.addressedParts(readArguments(call)) {
			if p.text != call.At {
				return "it would send a message to " + displayLine(p.text)
			}
		}
		return ""
	case webFetch:
		return g.describeRequest(call)
	case "memory_write":
		if scope := readArguments(call).Scope; scope != "" && scope != "session" {
			return "it would write into a memory that other conversations read"
		}
		return ""
	case "schedule":
		if readArguments(call).Action == "list" {
			return ""
		}
		return "it would have something done later"
	case "sessions_send":
		return "it would have something done elsewhere or later"
	}
	if slices.Contains(commandTools(), call.Name) && (g.cfg.Networked == nil || g.cfg.Networked(call)) {
		return "it would run what reaches the network"
	}
	if server, _, foreign := strings.Cut(call.Name, "__"); foreign && (g.cfg.Networked == nil || g.cfg.Networked(call)) {
		return fmt.Sprintf("it would call a tool of %s", server)
	}
	return ""
}

// describeRequest says what a request to a web server would send out; "" if nothing. Even the
// address of a page may carry information out, if the model has put it together from what it
// knows.
func (g *Guard) describeRequest(call tools.Call) string {
	a := readArguments(call)
	if method := strings.ToUpper(a.Method); method != "" && method != http.MethodGet && method != http.MethodHead {
		return fmt.Sprintf("it would send a %s to %s", method, displayLine(a.URL))
	}
	for name := range a.Headers {
		if !g.isHarmless(name, a.Headers[name]) {
			return fmt.Sprintf("it would send the header %s to %s", displayLine(name), displayLine(a.URL))
		}
	}
	if call.Seen != nil && call.Seen(a.URL, returnsForeignText) {
		return ""
	}
	return fmt.Sprintf("it would fetch %s, an address that neither a person wrote nor a result held", displayLine(a.URL))
}

// harmlessHeaders returns the HTTP headers that only say in which form an answer is wanted, each
// with a pattern of the values that are allowed: those in which hardly anything can be smuggled out.
func harmlessHeaders() map[string]*regexp.Regexp {
	const (
		quality  = `(; ?q=[01](\.\d)?)?`
		media    = `(\*/\*|text/(\*|html|plain|markdown|csv|xml)|application/(\*|json|ld\+json|xml|xhtml\+xml|atom\+xml|rss\+xml|pdf|vnd\.github\+json)|image/(\*|png|jpeg|gif|webp|svg\+xml))` + quality
		language = `(\*|[a-z]{2}(-[A-Z]{2})?)` + quality
	)
	return map[string]*regexp.Regexp{
		"Accept":          regexp.MustCompile(`^` + media + `(, ?` + media + `){0,4}$`),
		"Accept-Language": regexp.MustCompile(`^` + language + `(, ?` + language + `){0,2}$`),
		"Range":           regexp.MustCompile(`^bytes=\d{0,10}-\d{0,10}$`),
	}
}

// isHarmless reports whether a header of a request carries no information out.
func (g *Guard) isHarmless(name, value string) bool {
	plain := g.harmlessHeaders[http.CanonicalHeaderKey(name)]
	return plain != nil && plain.MatchString(value)
}

// returnsForeignText reports whether a tool's results consist only of text by others, so that a
// model cannot have made the tool print text of its own.
func returnsForeignText(tool string) bool { return tool == webFetch || tool == webSearch }

// applyRuleOfTwo has a person asked about a call that acts on the outside, if the agent has read
// something before that strangers may have written.
func (g *Guard) applyRuleOfTwo(call tools.Call) tools.Verdict {
	if !call.Untrusted || !g.cfg.AskUntrusted {
		return tools.Verdict{}
	}
	what := g.describeOutward(call)
	if what == "" {
		return tools.Verdict{}
	}
	return askBecauseUntrusted(what)
}

// askBecauseUntrusted returns the decision that a person is asked about a call, with what the
// call would do as the reason.
func askBecauseUntrusted(what string) tools.Verdict {
	return askVerdict("this conversation holds what strangers may have written, such as a web page or a forwarded message, and %s", what)
}

// describeNetworkedReader says what could carry to the outside the file that a call writes: a job that
// was started before anything untrusted was read, and may read the file later, or run it. It returns
// "" if nothing could.
func (g *Guard) describeNetworkedReader(ctx context.Context, call tools.Call) string {
	_, _, foreign := strings.Cut(call.Name, "__")
	switch fileUseOf(call.Name) {
	case replacesNamed, editsNamed, runsCommand:
	default:
		if !foreign {
			return ""
		}
	}
	if !call.Untrusted || !g.cfg.AskUntrusted || g.cfg.NetworkedReader == nil {
		return ""
	}
	reader, err := g.cfg.NetworkedReader(ctx, call)
	switch {
	case err != nil:
		return "it would write files, and whether anything that reaches the network reads them is not known now"
	case reader == "":
		return ""
	}
	return fmt.Sprintf("it would write files that %s may read, which reaches the network", reader)
}
