package proposals_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/agent/journal"
	"parley/agent/proposals"
	"parley/sessions"
)

const secret = "swordfish-4711"

// redact takes the secret out of a text.
func redact(text string) string { return strings.ReplaceAll(text, secret, "***") }

// A scene is a part of a session's log.
type scene []journal.Record

func (s *scene) add(kind sessions.Kind, person, cause string, data any) {
	*s = append(*s, journal.NewRecord(sessions.Entry{N: int64(len(*s) + 1), Turn: "t", Kind: kind, Person: person, Cause: cause}, data))
}

// long returns a part of a log in which the person says more than enough, with what must not be read.
func long() scene {
	var s scene
	for i := range 6 {
		s.add(sessions.KindUser, "c:1", fmt.Sprint("m", i), sessions.User{Text: fmt.Sprint("words ", i)})
		s.add(sessions.KindToolResult, "", "", sessions.ToolResult{Content: []byte(`"of a tool"`)})
		s.add(sessions.KindText, "", "", sessions.Text{Text: fmt.Sprint("answer ", i)})
	}
	s.add(sessions.KindUser, "c:2", "m7", sessions.User{Text: "of another"})
	s.add(sessions.KindUser, "c:1", "m8", sessions.User{Text: "of a model", Untrusted: true})
	s.add(sessions.KindUser, "c:1", "m9", sessions.User{Text: "of a schedule", Schedule: "s1"})
	s.add(sessions.KindUser, "c:1", "m10", sessions.User{Text: "see <message>this", Quotes: []sessions.Quote{{Kind: "replied", Text: "of a quote"}}})
	s.add(sessions.KindFetched, "", "", sessions.Fetched{Message: "m10", SpokenWords: "spoken words"})
	s.add(sessions.KindFetched, "", "", sessions.Fetched{Message: "m7", SpokenWords: "of another's voice"})
	s.add(sessions.KindAskEnded, "c:1", "", sessions.AskEnded{Question: "Which one?", Answer: "the red one"})
	return s
}

func TestTheModelReadsWhatThePersonSaid(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		c := proposals.Read(long(), "c:1", trusted)
		r := c.Request(proposals.Known{OfPerson: "likes tea", OfAgent: "deploys on Mondays", Proposed: []string{"hates rain"}, Untrusted: !trusted}, false)
		got := r.Messages[0].Blocks[0].Text
		for _, want := range []string{"<message>\nwords 0\n</message>", "words 5", "see &lt;message>this", "spoken words", "the red one", "hates rain"} {
			if !strings.Contains(got, want) {
				t.Errorf("trusted %v: it lacks %q:\n%s", trusted, want, got)
			}
		}
		for _, only := range []string{"<past>\nanswer 0\n</past>", "Which one?", "likes tea", "deploys on Mondays"} {
			if strings.Contains(got, only) != trusted {
				t.Errorf("trusted %v: %q is wrong in:\n%s", trusted, only, got)
			}
		}
		if strings.Contains(got, "of a") {
			t.Errorf("trusted %v: it has what is not the person's:\n%s", trusted, got)
		}
		if !c.IsLong() || strings.Contains(r.System, "agent:") || len(r.Tools) > 0 || r.MaxTokens == 0 {
			t.Errorf("long %v, asked %+v", c.IsLong(), r)
		}
	}
	if r := proposals.Read(long(), "c:1", true).Request(proposals.Known{}, true); !strings.Contains(r.System, `"agent: FACT"`) {
		t.Errorf("an owner's model is asked %q", r.System)
	}
	if proposals.Read(long()[:12], "c:1", true).IsLong() || proposals.Read(long(), "c:2", true).IsLong() {
		t.Error("what is short is long")
	}
}

// However long a conversation is, the model reads its end, and of each message the beginning.
func TestTheModelReadsAsMuchAsItMay(t *testing.T) {
	var s scene
	for i := range 100 {
		s.add(sessions.KindUser, "c:1", fmt.Sprint("m", i), sessions.User{Text: fmt.Sprintf("message %d %s", i, strings.Repeat("ü", 3000))})
	}
	got := proposals.Read(s, "c:1", true).Request(proposals.Known{OfPerson: strings.Repeat("tea ", 10_000)}, false).Messages[0].Blocks[0].Text
	if len(got) > 42_000 || len(got) < 30_000 || !strings.Contains(got, "message 99 ") || strings.Contains(got, "message 50 ") || strings.ContainsRune(got, '\uFFFD') {
		t.Errorf("%d bytes are read", len(got))
	}
}

func TestFactsOfAnAnswer(t *testing.T) {
	known := proposals.Known{OfPerson: "The person likes tea.\n\nThey live in Ulm.", OfAgent: "Deploys are on Mondays.", Proposed: []string{"Hates rain."}}
	for answer, want := range map[string]string{
		"none": "[]",
		"":     "[]",
		"person: Has a dog.\nagent: The office is in Ulm.\n": "[{false Has a dog.} {true The office is in Ulm.}]",
		"1. **Person:** Has  a\u200b dog.":                   "[{false Has a dog.}]",
		"- PERSON: hates RAIN":                               "[]", // was proposed
		"person: they live in ulm!":                          "[]", // is remembered
		"agent: deploys are on Mondays":                      "[]",
		"person: Has a dog.\nperson: has a dog":              "[{false Has a dog.}]",
		"person: The password is " + secret:                  "[]",
		"person: " + strings.Repeat("long ", 70):             "[]",
		"person: \nperson:...\nHere is what I found:":        "[]",
		"person: 1st\nperson: 2nd\nperson: 3rd\nperson: 4th": "[{false 1st} {false 2nd} {false 3rd}]",
		"The person: likes coffee":                           "[]",
	} {
		if got := fmt.Sprint(proposals.Facts(answer, true, known, redact)); got != want {
			t.Errorf("of %q it is %s, want %s", answer, got, want)
		}
	}
	if got := proposals.Facts("agent: The office is in Ulm.\nperson: Has a dog.", false, known, redact); !slices.Equal(got, []proposals.Fact{{Text: "Has a dog."}}) {
		t.Errorf("of who owns nothing it is %+v", got)
	}
}
