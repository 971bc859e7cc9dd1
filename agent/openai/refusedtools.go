package openai

import (
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"parley/tools"
)

// A toolFinder returns the positions, in the list of tools, of the tools that a refusal is about. said reports that
// they come from the refusal's message only, which may repeat people's words.
type toolFinder func(r *refusal, x *exchange) (places []int, said bool)

// suspectTools are tools that were left out because the text of a refusal seems to name them or their positions. If the
// request without them is refused in the same words, or fails without a refusal, later requests have them again: the
// text was about something else.
type suspectTools struct {
	tools []tools.Spec
	gist  string // what the refusal says; see refusal.gist
}

// leaveOut leaves out of further requests the tools that the server has refused, according to find. It returns
// false if there are none, or if the server accepts the tools once they are shorter or fewer.
func (d *suspectTools) leaveOut(x *exchange, err error, find toolFinder) (learned bool) {
	r, ok := errors.AsType[*refusal](err)
	if !ok || !r.mayConcernTool() {
		return false
	}
	if _, bounds := x.dialect.learnBounds(r); bounds {
		return false // the tools will be accepted once they are shorter, or fewer
	}
	why := "the model's server refuses it"
	if word := r.codeWord(); word != "" {
		why += " (" + word + ")"
	}
	places, said := find(r, x)
	if gist := r.gist(); len(places) > 0 && (!said || gist != d.gist) {
		*d = suspectTools{gist: gist} // leaving out the earlier ones has helped
	}
	for _, i := range places {
		if x.server.tools.Refuse(x.tools[i], why) {
			learned = true
			if said {
				d.tools = append(d.tools, x.tools[i])
			}
		}
	}
	return learned
}

// settle shows the tools again that were left out without effect, once a request has failed with err. It does nothing
// if err is a refusal for another reason: then leaving them out has helped.
func (d *suspectTools) settle(s *server, err error) {
	if r, ok := errors.AsType[*refusal](err); len(d.tools) == 0 || ok && r.gist() != d.gist {
		return
	}
	s.tools.Readmit(d.tools)
	s.cfg.Log.Warn("leaving tools out did not help; they are shown again", slog.String("model", s.cfg.Name), slog.Int("tools", len(d.tools)))
	*d = suspectTools{}
}

// gist returns what a refusal says, without the words that change from one request to the next.
func (r *refusal) gist() string {
	const id = 12 // a word of this length that contains digits is an id or a time
	words := strings.FieldsFunc(r.message, func(c rune) bool { return strings.ContainsRune(" ,;:()'\"", c) })
	return strings.Join(slices.DeleteFunc(words, func(w string) bool {
		return len(w) >= id && strings.ContainsAny(w, "0123456789") && !strings.ContainsAny(w, "[.")
	}), " ")
}

// findLocated finds the tools whose positions a refusal states. It finds none if the request has the same words, which
// the message may only repeat.
func findLocated(r *refusal, x *exchange) (places []int, said bool) {
	if places, _ = placesIn(r.param); len(places) == 0 {
		form := ""
		if places, form = r.placesInMessage(); x.contains(form) {
			return nil, true // the message repeats what was asked
		}
		said = true
	}
	return slices.DeleteFunc(places, func(i int) bool { return i >= len(x.tools) }), said
}

// findNamed finds the tools that a refusal names, if it is about how tools are declared and not about calls of
// them.
func findNamed(r *refusal, x *exchange) (places []int, said bool) {
	if !r.mentions("schema", "declar", "parameters", "description", "properties", "invalid tool", "invalid function") {
		return nil, true
	}
	for i, s := range x.tools {
		form := "(?i)\\b(?:function|tool|declaration)s?(?: name)?[ :]+[\"'`“‘]?" + regexp.QuoteMeta(s.Name) + "(?:[\"'`”’ :;,]|$)"
		if regexp.MustCompile(form).MatchString(r.message) {
			places = append(places, i)
		}
	}
	return places, true
}
