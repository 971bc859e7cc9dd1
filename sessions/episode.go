package sessions

import (
	"fmt"
	"strings"
)

// NoticeEpisode is the code of a notice that sums up a turn that has used tools: what was asked, what was
// done, and what was found. It is written at the end of the turn, and replaces the turn where a
// conversation no longer contains it. Of is the message that asked; when that is deleted, the notice is
// emptied too. Releases without the field Episode show the text, which contains none of these words.
const NoticeEpisode = "episode"

// textEpisode is the text of an episode's notice, for releases that do not know episodes.
const textEpisode = "A turn that used tools ended here."

// MaxEpisode is the maximum length of all texts of an episode together, in bytes.
const MaxEpisode = 300

// An Episode sums up a turn. Its texts contain no line ends, no secrets and no invisible characters.
type Episode struct {
	Entry     int64  `json:"entry"`           // the number of the message that asked, or of the turn's first entry
	Question  string `json:"asked,omitempty"` // what a person asked, in their own words
	Deeds     []Deed `json:"did,omitempty"`   // in order
	MoreCalls int    `json:"more,omitempty"`  // how many more calls there were
	Answer    string `json:"found,omitempty"` // what the agent answered
	State     string `json:"state,omitempty"` // how the turn ended, unless it is TurnCompleted
	// Untrusted says that strangers may have written some of what the agent had read by the end of the
	// turn; Answer and Deed.Subject, which are the agent's own words, may repeat it.
	Untrusted bool `json:"untrusted,omitempty"`
}

// A Deed is what a turn did with one tool.
type Deed struct {
	Tool    string `json:"tool"`           // an existing tool, or OtherTool
	Calls   int    `json:"n"`              // how many calls
	Subject string `json:"with,omitempty"` // what describes the first call best, such as a path or a command
	// Outcome is how the last call ended, if none succeeded: a value of CallsCount.Outcome.
	Outcome string `json:"outcome,omitempty"`
}

// Notice returns the notice of an episode. of is the id of the message that asked.
func (e Episode) Notice(of string) Notice {
	return Notice{Code: NoticeEpisode, Text: textEpisode, MessageID: of, Episode: &e}
}

// OneLine returns the episode as one line: what was asked, what was done, and what was found.
func (e Episode) OneLine() string {
	var parts []string
	for _, part := range []string{e.Question, e.DeedsInWords(true), e.Answer} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " → ")
}

// DeedsInWords says what was done. Unless all is true, the text contains only names of tools, numbers, and how
// the calls ended, none of which a stranger can have written.
func (e Episode) DeedsInWords(all bool) string {
	var parts []string
	for _, d := range e.Deeds {
		part := d.Tool
		if d.Calls > 1 {
			part += fmt.Sprintf(" ×%d", d.Calls)
		}
		if all && d.Subject != "" {
			part += " " + d.Subject
		}
		if d.Outcome != "" {
			part += " (" + d.Outcome + ")"
		}
		parts = append(parts, part)
	}
	if e.MoreCalls > 0 {
		parts = append(parts, fmt.Sprintf("%d more", e.MoreCalls))
	}
	return strings.Join(parts, "; ")
}

// IsEpisode reports whether an entry only sums up its turn. People are not shown it in addition to the
// turn.
func (e Entry) IsEpisode() bool {
	if e.Kind != KindNotice {
		return false
	}
	n, err := Decode[Notice](e)
	return err == nil && n.Code == NoticeEpisode
}
