package transcript

import (
	"fmt"
	"slices"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// Limits on how much of the conversation a model that judges a call is shown. The log may be long, and people wait for
// the model.
const (
	maxEarlierMessages = 2     // messages of the person from before the turn
	maxTurnMessages    = 8     // messages of the turn
	messageHead        = 2_200 // characters of the beginning of one message, and of its end
	messageTail        = 800
	maxQuotesShown     = 3   // quotes of one message
	maxStrangerTexts   = 5   // texts by strangers
	strangerHead       = 900 // characters of the beginning of each, and of its end
	strangerTail       = 300
)

// A Redact takes secrets out of a text. It gets whole texts, because it can't recognize a part of a secret.
type Redact func(text string) string

// SaidForJudge returns a person's words to the agent, for a model that judges a call of the turn own: the newest
// messages before the turn that are still shown, and those of the turn, each in its frame. Within the turn, other
// people's words are in a quote, and a schedule's request or another agent's task is in the frame of the past, because
// neither is the person's own words. Text that strangers may have influenced is left out, because StrangerTexts returns
// it.
func SaidForJudge(records []journal.Record, own, person string, redact Redact) (earlier, now []string) {
	var before, since []lazyFrame
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
					return frameText(frames.Quote, bothEnds(redact(d.Text), messageHead, messageTail), "kind", "message", "from", r.Person, "name", d.Name)
				})
			case r.Turn == own:
				since = append(since, func() string { return frameSaid(r, d, files.filesOf(r.Cause), redact) })
			case r.Person == person && d.Schedule == "" && !tasked && !newest.Hides(r.N):
				before = append(before, func() string { return frameSaid(r, d, files.filesOf(r.Cause), redact) })
			}
		case sessions.AskEnded:
			if r.Turn == own && isAnswer(d) {
				since = append(since, func() string {
					d.Question, d.Answer = redact(d.Question), bothEnds(redact(d.Answer), messageHead, messageTail)
					return frameAnswer(r.Person, d)
				})
			}
		}
	}
	return renderLast(before, maxEarlierMessages), renderLast(since, maxTurnMessages)
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

// frameAssigned returns another agent's task, or a schedule's request, in its frame.
func frameAssigned(u sessions.User, redact Redact) string {
	kind := "task"
	if u.Schedule != "" {
		kind = "schedule"
	}
	return frameText(frames.Past, bothEnds(redact(u.Text), messageHead, messageTail), "kind", kind, "by", u.Name)
}

// frameSaid returns a message in its frame, shortened. A stranger's spoken words are left out.
func frameSaid(r *journal.Record, u sessions.User, files []file, redact Redact) string {
	u.Text = bothEnds(redact(u.Text), messageHead, messageTail)
	u.Quotes = slices.Clone(u.Quotes[:min(len(u.Quotes), maxQuotesShown)])
	for i := range u.Quotes {
		u.Quotes[i].Text = bothEnds(redact(u.Quotes[i].Text), strangerHead, strangerTail)
	}
	files = slices.Clone(files)
	for i, f := range files {
		if f.fetched == nil || f.fetched.SpokenWords == "" {
			continue
		}
		got := *f.fetched
		if got.Untrusted {
			got.SpokenWords = ""
		} else {
			got.SpokenWords = bothEnds(redact(got.SpokenWords), messageHead, messageTail)
		}
		files[i].fetched = &got
	}
	return frameMessage(r.Person, u, files)
}

// StrangerTexts returns the newest texts that strangers may have written among those that a model was shown before
// entry n, for a model that judges a call of the turn own. Each is shortened, and in a frame that says where it comes
// from. further is how many older ones there are.
func StrangerTexts(records []journal.Record, own string, n int64, redact Redact) (texts []string, further int) {
	var all []lazyFrame
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
	return renderLast(all, maxStrangerTexts), max(0, len(all)-maxStrangerTexts)
}

// frameStrangers returns the texts of an entry that strangers may have written, each in its frame.
func frameStrangers(r *journal.Record, use sessions.ToolUse, redact Redact) []lazyFrame {
	quote := func(text string, attributes ...string) lazyFrame {
		return func() string {
			return frameText(frames.Quote, bothEnds(redact(text), strangerHead, strangerTail), attributes...)
		}
	}
	var quotes []sessions.Quote
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		return []lazyFrame{func() string {
			return quote(string(d.Content), "kind", "result", "tool", use.Name, "of", redact(string(use.Args)))()
		}}
	case sessions.Fetched:
		return []lazyFrame{quote(d.SpokenWords, "kind", "file", "of", d.Path)}
	case sessions.User:
		if d.Untrusted {
			return []lazyFrame{quote(d.Text, "kind", "task", "by", d.Name)}
		}
		quotes = d.Quotes
	case sessions.Notice:
		quotes = d.Quotes
	}
	var all []lazyFrame
	for _, q := range quotes {
		if q.MayBeFromStrangers(r.Kind, r.Person) {
			all = append(all, quote(q.Text, "kind", quoteKind(q), "from", q.Person, "name", q.Name))
		}
	}
	return all
}

// A lazyFrame returns a text in its frame, without secrets. Only few of a conversation's texts are shown, and removing
// the secrets from all of them would take long.
type lazyFrame func() string

// renderLast returns the last n texts.
func renderLast(all []lazyFrame, n int) []string {
	var texts []string
	for _, show := range all[max(0, len(all)-n):] {
		texts = append(texts, show())
	}
	return texts
}

// bothEnds returns a text, or its beginning and its end, of that many characters each, and says how many characters are
// left out. It keeps the end because people often take something back there.
func bothEnds(text string, first, last int) string {
	head, left := frames.Cut(text, first)
	if left <= last {
		return text
	}
	before, _ := frames.Cut(text, first+left-last)
	return fmt.Sprintf("%s\n[… %d characters …]\n%s", head, left-last, text[len(before):])
}
