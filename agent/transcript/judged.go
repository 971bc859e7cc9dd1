package transcript

import (
	"fmt"
	"slices"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/sessions"
)

// What a model that judges a call is shown of the conversation. The log may be long, and the model is asked while
// somebody waits, so it is shown little.
const (
	earlierSaid   = 2     // messages of the person from before the turn
	mostSaidShown = 8     // messages of the turn
	saidShown     = 3_000 // characters of one message
	quotesShown   = 3     // quotes of one message
	quoteShown    = 1_000 // characters of each
	strangerTexts = 5     // texts by strangers
	strangerHead  = 900   // characters of the beginning of each, and of its end
	strangerTail  = 300
)

// Said returns what a person said to the agent, for a model that judges a call of the turn own: the newest messages
// before the turn that are still shown, then those of the turn, each in its frame. A text that a model wrote is in
// the frame of what agents wrote; one that strangers may have influenced is left out, because Strangers returns it.
func Said(records []journal.Record, own, person string) []string {
	newest, _ := NewestSummary(records)
	files, tasked := newFileLists(records), isTasked(records, own)
	var earlier, now []string
	for i := range records {
		r := &records[i]
		var text string
		switch d := r.Data.(type) {
		case sessions.User:
			if d.Untrusted || r.Turn != own && (r.Person != person || tasked || newest.Hides(r.N)) {
				continue
			}
			text = frameSaid(r, d, files.filesOf(r.Cause), tasked)
		case sessions.AskEnded:
			if r.Turn != own || !isAnswer(d) {
				continue
			}
			d.Answer = shortened(d.Answer, saidShown)
			text = frameAnswer(r.Person, d)
		default:
			continue
		}
		if r.Turn == own {
			now = append(now, text)
		} else {
			earlier = append(earlier, text)
		}
	}
	return slices.Concat(lastOf(earlier, earlierSaid), lastOf(now, mostSaidShown))
}

// isTasked reports whether a turn works on a task that another agent wrote.
func isTasked(records []journal.Record, own string) bool {
	return slices.ContainsFunc(records, func(r journal.Record) bool { return r.Kind == sessions.KindTasked && r.Turn == own })
}

// frameSaid returns a message in its frame, shortened.
func frameSaid(r *journal.Record, u sessions.User, files []file, tasked bool) string {
	u.Text = shortened(u.Text, saidShown)
	if tasked {
		return frameText(frames.Past, u.Text, "kind", "task", "by", u.Name)
	}
	u.Quotes = slices.Clone(u.Quotes[:min(len(u.Quotes), quotesShown)])
	for i := range u.Quotes {
		u.Quotes[i].Text = shortened(u.Quotes[i].Text, quoteShown)
	}
	files = slices.Clone(files)
	for i, f := range files {
		if f.got != nil && f.got.Words != "" {
			got := *f.got
			got.Words = shortened(got.Words, saidShown)
			files[i].got = &got
		}
	}
	return frameMessage(r.Person, u, files)
}

// Strangers returns the newest texts that strangers may have written among what a model was shown before entry n,
// for a model that judges a call of the turn own. Each is shortened, and in a frame that says where it comes from.
// further is how many older ones there are.
func Strangers(records []journal.Record, own string, n int64) (texts []string, further int) {
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
		texts = append(texts, frameStrangers(&r, uses[r.Call])...)
	}
	further = max(0, len(texts)-strangerTexts)
	return texts[further:], further
}

// frameStrangers returns the texts of an entry that strangers may have written, each in its frame.
func frameStrangers(r *journal.Record, use sessions.ToolUse) []string {
	var quotes []sessions.Quote
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		return []string{frameText(frames.Quote, bothEnds(string(d.Content)), "kind", "result", "tool", use.Name, "of", string(use.Args))}
	case sessions.Fetched:
		return []string{frameText(frames.Quote, bothEnds(d.Words), "kind", "file", "of", d.Path)}
	case sessions.User:
		if d.Untrusted {
			return []string{frameText(frames.Quote, bothEnds(d.Text), "kind", "task", "by", d.Name)}
		}
		quotes = d.Quotes
	case sessions.Notice:
		quotes = d.Quotes
	}
	var texts []string
	for _, q := range quotes {
		if q.IsFromOthers(r.Kind, r.Person) {
			texts = append(texts, frameText(frames.Quote, bothEnds(q.Text), "kind", quoteKind(q), "from", q.Person, "name", q.Name))
		}
	}
	return texts
}

// lastOf returns the last n of some texts.
func lastOf(texts []string, n int) []string { return texts[max(0, len(texts)-n):] }

// shortened returns at most the first characters of a text, and says how many are left out.
func shortened(text string, most int) string {
	head, left := frames.Cut(text, most)
	if left == 0 {
		return text
	}
	return fmt.Sprintf("%s [… %d more characters]", head, left)
}

// bothEnds returns the beginning and the end of a text, and says how many characters between them are left out.
func bothEnds(text string) string {
	head, left := frames.Cut(text, strangerHead)
	if left <= strangerTail {
		return text
	}
	before, _ := frames.Cut(text, strangerHead+left-strangerTail)
	return fmt.Sprintf("%s\n[… %d characters …]\n%s", head, left-strangerTail, text[len(before):])
}
