package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/cmd/parley/terminal"
	"parley/sessions"
)

// Found is the answer to GET /v1/search.
type Found struct {
	Hits []struct {
		Session   string        `json:"session"`
		Title     string        `json:"title"`
		N         int64         `json:"n"`
		Kind      sessions.Kind `json:"kind"`
		At        time.Time     `json:"at"`
		Person    string        `json:"person"`
		Name      string        `json:"name"`
		Tool      string        `json:"tool"`
		Text      string        `json:"text"`
		Untrusted bool          `json:"untrusted"`
		Link      string        `json:"link"`
	} `json:"hits"`
}

// Print prints what was found, the best matches first.
func (f Found) Print(out io.Writer) error {
	var b strings.Builder
	for _, h := range f.Hits {
		who := cmp.Or(h.Tool, h.Name, h.Person, string(h.Kind))
		switch h.Kind {
		case sessions.KindText:
			who = textAgent
		case sessions.KindSummary:
			who = textSummary
		case sessions.NoticeEpisode:
			who = textDone
		}
		mark := ""
		if h.Untrusted {
			mark = textByStrangers
		}
		fmt.Fprintf(&b, "%s  %s%s  %s #%d\n", moment(h.At), terminal.Cell(who), mark, terminal.Cell(h.Session), h.N)
		fmt.Fprintf(&b, "  %s\n", terminal.Cell(h.Text))
		if h.Link != "" {
			fmt.Fprintf(&b, "  %s\n", terminal.Cell(h.Link))
		}
		b.WriteByte('\n')
	}
	if len(f.Hits) == 0 {
		b.WriteString(textNothingFound)
	}
	_, err := io.WriteString(out, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}
