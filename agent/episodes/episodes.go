// Package episodes makes episodes: short records of what a turn with tools did. It makes them from the log
// alone, without a model.
package episodes

import (
	"slices"
	"strings"
	"unicode"

	"parley/agent"
	"parley/agent/excerpt"
	"parley/agent/journal"
	"parley/agent/turn"
	"parley/sessions"
	"parley/tools"
)

// The most bytes that the parts of an episode have, out of sessions.MaxEpisode for all of them. What was found
// gets what the other parts leave.
const (
	maxAskedBytes    = 100 // what a person asked for
	maxToolsBytes    = 120 // which tools were called, and how often
	maxArgumentBytes = 48  // the key argument of a tool's first call
)

// A Maker makes the episodes of one session's turns.
type Maker struct {
	Agent   *agent.Agent
	Redact  agent.Redactor
	Records []journal.Record // of the session, as the log has them
	// Untrusted says that strangers may have written some of what the agent has read so far.
	Untrusted bool
}

// Of returns an entry with the episode of a turn that is about to end in that state with these entries; false
// if the turn used no tools. The same turn always gives the same entry. Secrets are taken out before anything
// is cut, so that no part of one remains.
func (m Maker) Of(t *turn.Turn, state string, ending []sessions.Entry) (sessions.Entry, bool) {
	if !t.HasCalls() {
		return sessions.Entry{}, false
	}
	e := sessions.Episode{Entry: t.FirstEntry, Untrusted: m.Untrusted}
	if state != sessions.TurnCompleted {
		e.State = state
	}
	of := ""
	if asked, said, ok := m.asked(t.ID); ok {
		of, e.Entry = asked.Cause, asked.N
		switch {
		case said.Untrusted: // not the person's own words
		case said.Text == "":
			e.Question = m.oneLine(m.wordsInRecordings(asked.Cause), maxAskedBytes)
		default:
			e.Question = m.oneLine(said.Text, maxAskedBytes)
		}
	}
	m.addDeeds(&e, t, ending)
	e.Answer = m.oneLine(answerIn(ending), sessions.MaxEpisode-len(e.Question)-len(e.DeedsInWords(true)))
	entry := journal.NewEntry(t.ID, sessions.KindNotice, e.Notice(of))
	entry.Person = t.Person
	return entry, true
}

// asked returns the longest message of a turn; false if it has none.
func (m Maker) asked(turn string) (asked journal.Record, said sessions.User, ok bool) {
	for _, r := range m.Records {
		if d, is := r.Data.(sessions.User); is && r.Turn == turn && (!ok || len(d.Text) > len(said.Text)) {
			asked, said, ok = r, d, true
		}
	}
	return asked, said, ok
}

// wordsInRecordings returns the words in a message's recordings that the sender spoke, not those in what they forwarded.
func (m Maker) wordsInRecordings(message string) string {
	var words []string
	for _, r := range m.Records {
		if d, is := r.Data.(sessions.Fetched); is && d.Message == message && !d.Untrusted {
			words = append(words, d.SpokenWords)
		}
	}
	return strings.Join(words, " ")
}

// addDeeds adds what the turn did, tool by tool, as long as there is room. It then adds only how many other calls
// there were.
func (m Maker) addDeeds(e *sessions.Episode, t *turn.Turn, ending []sessions.Entry) {
	outcomes := t.Outcomes(ending)
	for _, step := range t.Steps {
		for _, c := range step.Calls {
			outcome := outcomes[c.ID]
			if outcome == sessions.CallOK {
				outcome = ""
			}
			tool := m.Agent.ToolName(c.Use.Name)
			i := slices.IndexFunc(e.Deeds, func(d sessions.Deed) bool { return d.Tool == tool })
			if i >= 0 {
				d := &e.Deeds[i]
				if d.Calls++; d.Outcome != "" {
					d.Outcome = outcome
				}
				continue
			}
			args := c.Use.Args
			if len(c.Started.Args) > 0 {
				args = c.Started.Args
			}
			e.Deeds = append(e.Deeds, sessions.Deed{Tool: tool, Calls: 1, Subject: m.oneLine(excerpt.KeyArgument(m.Redact.JSON(args)), maxArgumentBytes), Outcome: outcome})
		}
	}
	for len(e.DeedsInWords(true)) > maxToolsBytes {
		last := len(e.Deeds) - 1
		if last == 0 { // only a name, and it is too long
			e.Deeds[0].Tool, e.Deeds[0].Subject = tools.Beginning(e.Deeds[0].Tool, maxArgumentBytes), ""
			break
		}
		e.MoreCalls += e.Deeds[last].Calls
		e.Deeds = e.Deeds[:last]
	}
}

// answerIn returns the text of the answer among a turn's last entries.
func answerIn(ending []sessions.Entry) string {
	var texts []string
	for _, e := range ending {
		if e.Kind != sessions.KindText {
			continue
		}
		if d, err := sessions.Decode[sessions.Text](e); err == nil {
			texts = append(texts, d.Text)
		}
	}
	return strings.Join(texts, " ")
}

// oneLine returns the beginning of a text on one line, without secrets and invisible characters: at most that
// many bytes, cut between characters, and between words where possible. It takes secrets out once more after
// removing the invisible characters, because a secret that contains some can't be recognized.
func (m Maker) oneLine(text string, most int) string {
	const ellipsis = "…"
	text = strings.Map(dropInvisible, strings.ToValidUTF8(m.Redact.Text(text), ""))
	words := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	line := m.Redact.Text(strings.Join(words, " "))
	if len(line) <= most {
		return line
	}
	line = tools.Beginning(line, max(0, most-len(ellipsis)))
	if at := strings.LastIndexByte(line, ' '); at > len(line)/2 {
		line = line[:at]
	}
	return line + ellipsis
}

// dropInvisible drops a character that is invisible or changes the direction of a text, but keeps the characters that
// join others.
func dropInvisible(r rune) rune {
	if unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' {
		return -1
	}
	return r
}
