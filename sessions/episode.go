package sessions

import (
	"fmt"
	"strings"
)

// NoticeEpisode is the code of a notice that says in short what a turn was about that has used tools: what was asked,
// what was done, and what was found. It is written with the end of its turn, and stands for the turn where a
// conversation no longer has it. Of is the message that asked, with which it is emptied. Releases without the field
// Episode show the text, which has none of these words.
const NoticeEpisode = "episode"

// textEpisode is what a release reads of an episode that does not know episodes.
const textEpisode = "A turn that used tools ended here."

// MaxEpisode is how many bytes the texts of an episode have together at most.
const MaxEpisode = 300

// An Episode says in short what a turn was about. Its texts have no line ends, no secrets and no invisible characters.
type Episode struct {
	Entry int64  `json:"entry"`           // the number of the message that asked, or of the turn's first entry
	Asked string `json:"asked,omitempty"` // what a person asked, in their own words
	Did   []Deed `json:"did,omitempty"`   // in their order
	More  int    `json:"more,omitempty"`  // how many calls there were besides
	Found string `json:"found,omitempty"` // what the agent answered
	State string `json:"state,omitempty"` // how the turn ended, unless it is TurnCompleted
	// Untrusted says that strangers may have written some of what the agent had read by the end of the turn: its own
	// words, Found and Deed.With, may repeat it.
	Untrusted bool `json:"untrusted,omitempty"`
}

// A Deed is what a turn did with one tool.
type Deed struct {
	Tool string `json:"tool"`           // one that there is, or OtherTool
	N    int    `json:"n"`              // how many calls
	With string `json:"with,omitempty"` // what tells best what the first one did, such as a path or a command
	// Outcome is how the last call ended, if none of them was successful; one of those of CallsCount.
	Outcome string `json:"outcome,omitempty"`
}

// Notice returns the notice of an episode. of is the id of the message that asked.
func (e Episode) Notice(of string) Notice {
	return Notice{Code: NoticeEpisode, Text: textEpisode, Of: of, Episode: &e}
}

// Line returns the episode as one line: what was asked, what was done, and what was found.
func (e Episode) Line() string {
	var parts []string
	for _, part := range []string{e.Asked, e.Done(true), e.Found} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " → ")
}

// Done says what was done. Unless all is true, it has nothing but names of tools, numbers, and how the calls ended,
// none of which a stranger can have written.
func (e Episode) Done(all bool) string {
	var parts []string
	for _, d := range e.Did {
		part := d.Tool
		if d.N > 1 {
			part += fmt.Sprintf(" ×%d", d.N)
		}
		if all && d.With != "" {
			part += " " + d.With
		}
		if d.Outcome != "" {
			part += " (" + d.Outcome + ")"
		}
		parts = append(parts, part)
	}
	if e.More > 0 {
		parts = append(parts, fmt.Sprintf("%d more", e.More))
	}
	return strings.Join(parts, "; ")
}

// IsEpisode reports whether an entry only says what its turn was about, so that people are shown nothing of it beside
// the turn.
func (e Entry) IsEpisode() bool {
	if e.Kind != KindNotice {
		return false
	}
	n, err := Decode[Notice](e)
	return err == nil && n.Code == NoticeEpisode
}
