package transcript

import (
	"fmt"
	"slices"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// What a model that judges a call is shown of the conversation. The log may be long, and the model is asked while
// somebody waits, so it is shown little.
const (
	earlierSaid   = 2     // messages of the person from before the turn
	maxSaidShown  = 8     // messages of the turn
	saidHead      = 2_200 // characters of the beginning of one message, and of its end
	saidTail      = 800
	quotesShown   = 3   // quotes of one message
	strangerTexts = 5   // texts by strangers
	strangerHead  = 900 // characters of the beginning of each, and of its end
	strangerTail  = 300
)

// A Redact takes secrets out of a text. It gets whole texts, because it can't recognize a part of a secret.
type Redact func(text string) string

// Said returns what a person said to the agent, for a model that judges a call of the turn own: the newest messages
// before the turn that are still shown, and those of the turn, each in its frame. In the turn, what others in the
// conversation said is in a quote, and what a schedule asks for or another agent wrote is in the frame of the past:
// none of it is the person's own words. What strangers may have influenced is left out, because Strangers returns it.
func Said(records []journal.Record, own, person string, redact Redact) (earlier, now []string) {
	var before, since []frame
	newest, _ := NewestSummary(records)
	files, tasked, edits := newFileLists(records), isTasked(records, own), newestEdits(records)
	for i := range records {
		r := &records[i]
		switch d := r.Data.(type) {
		case sessions.User:
			if edited, ok := edits[r.Cause]; ok && edited.Person == r.Person {
				d.Text = edited.Text
			}
			switch {
			case d.Untrusted:
			case r.Turn == own && (tasked || d.Schedule != ""):
				since = append(since, func() string { return frameAssigned(d, redact) })
			case r.Turn == own && r.Person != person:
				since = append(since, func() string {
					return frameText(frames.Quote, bothEnds(redact(d.Text), saidHead, saidTail), "kind", "message", "from", r.Person, "name", d.Name)
				})
			case r.Turn == own:
				since = append(since, func() string { return frameSaid(r, d, files.filesOf(r.Cause), redact) })
			case r.Person == person && d.Schedule == "" && !tasked && !newest.Hides(r.N):
				before = append(before, func() string { return frameSaid(r, d, files.filesOf(r.Cause), redact) })
			}
		case sessions.AskEnded:
			if r.Turn == own && isAnswer(d) {
				since = append(since, func() string {
					d.Question, d.Answer = redact(d.Question), bothEnds(redact(d.Answer), saidHead, saidTail)
					return frameAnswer(r.Person, d)
				})
			}
		}
	}
	return lastOf(before, earlierSaid), lastOf(since, maxSaidShown)
}

// newestEdits returns the newest edit of each message, by the message's id.
func newestEdits(records []journal.Record) map[string]sessions.Quote {
	var edits map[string]sessions.Quote
	for i := range records {
		n, ok := records[i].Data.(sessions.Notice)
		if !ok || n.MessageID == "" || len(n.Quotes) != 1 || n.Quotes[0].Kind != bus.Edited {
			continue
		}
		if edits == nil {
			edits = map[string]sessions.Quote{}
		}
		edits[n.MessageID] = n.Quotes[0]
	}
	return edits
}

// isTasked reports whether a turn works on a task that another agent wrote.
func isTasked(records []journal.Record, own string) bool {
	return slices.ContainsFunc(records, func(r journal.Record) bool { return r.Kind == sessions.KindTasked && r.Turn == own })
}

// frameAssigned returns what another agent wrote, or what a schedule asks for, in its frame.
func frameAssigned(u sessions.User, redact Redact) string {
	kind := "task"
	if u.Schedule != "" {
		kind = "schedule"
	}
	return frameText(frames.Past, bothEnds(redact(u.Text), saidHead, saidTail), "kind", kind, "by", u.Name)
}

// frameSaid returns a message in its frame, shortened. Words that were spoken by a stranger are left out.
func frameSaid(r *journal.Record, u sessions.User, files []file, redact Redact) string {
	u.Text = bothEnds(redact(u.Text), saidHead, saidTail)
	u.Quotes = slices.Clone(u.Quotes[:min(len(u.Quotes), quotesShown)])
	for i := range u.Quotes {
		u.Quotes[i].Text = bothEnds(redact(u.Quotes[i].Text), strangerHead, strangerTail)
	}
	files = slices.Clone(files)
	for i, f := range files {
		if f.got == nil || f.got.SpokenWords == "" {
			continue
		}
		got := *f.got
		if got.Untrusted {
			got.SpokenWords = ""
		} else {
			got.SpokenWords = bothEnds(redact(got.SpokenWords), saidHead, saidTail)
		}
		files[i].got = &got
	}
	return frameMessage(r.Person, u, files)
}

// Strangers returns the newest texts that strangers may have written among what a model was shown before entry n,
// for a model that judges a call of the turn own. Each is shortened, and in a frame that says where it comes from.
// further is how many older ones there are.
func Strangers(records []journal.Record, own string, n int64, redact Redact) (texts []string, further int) {
	var all []frame
	newest, _ := NewestSummary(records)
	uses := map[string]sessions.ToolUse{}
	for i := range records {
		r := records[i]
		if use, is := r.Data.(sessions.ToolUse); is {
			uses[r.Call] = use
		}
		if r.N >= n || newest.Hides(r.N) && (own == "" || r.Turn != own) || !isFromOthers(r, records) {
			continue
		}
		all = append(all, frameStrangers(&r, uses[r.Call], redact)...)
	}
	return lastOf(all, strangerTexts), max(0, len(all)-strangerTexts)
}

// frameStrangers returns the texts of an entry that strangers may have written, each in its frame.
func frameStrangers(r *journal.Record, use sessions.ToolUse, redact Redact) []frame {
	quote := func(text string, attributes ...string) frame {
		return func() string {
			return frameText(frames.Quote, bothEnds(redact(text), strangerHead, strangerTail), attributes...)
		}
	}
	var quotes []sessions.Quote
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		return []frame{func() string {
			return quote(string(d.Content), "kind", "result", "tool", use.Name, "of", redact(string(use.Args)))()
		}}
	case sessions.Fetched:
		return []frame{quote(d.SpokenWords, "kind", "file", "of", d.Path)}
	case sessions.User:
		if d.Untrusted {
			return []frame{quote(d.Text, "kind", "task", "by", d.Name)}
		}
		quotes = d.Quotes
	case sessions.Notice:
		quotes = d.Quotes
	}
	var all []frame
	for _, q := range quotes {
		if q.MayBeFromStrangers(r.Kind, r.Person) {
			all = append(all, quote(q.Text, "kind", quoteKind(q), "from", q.Person, "name", q.Name))
		}
	}
	return all
}

// A frame makes a text in its frame, without secrets. Few of a conversation's texts are shown, and taking the secrets out of
// all would take long.
type frame func() string

// lastOf makes the last n of some texts.
func lastOf(all []frame, n int) []string {
	var texts []string
	for _, show := range all[max(0, len(all)-n):] {
		texts = append(texts, show())
	}
	return texts
}

// bothEnds returns a text, or its beginning and its end, of that many characters each, and says how many characters
// between them are left out: what somebody takes back often stands at the end.
func bothEnds(text string, first, last int) string {
	head, left := frames.Cut(text, first)
	if left <= last {
		return text
	}
	before, _ := frames.Cut(text, first+left-last)
	return fmt.Sprintf("%s\n[… %d characters …]\n%s", head, left-last, text[len(before):])
}
