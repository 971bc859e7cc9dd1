package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"parley/channels/why"
	"parley/cmd/parley/terminal"
)

// Why prints what became of messages, step by step, the latest ones last.
func Why(out io.Writer, told why.Report) error {
	var b strings.Builder
	for i := len(told.Messages) - 1; i >= 0; i-- {
		story := told.Messages[i]
		fmt.Fprintf(&b, "%s: %s\n", terminal.Cell(story.Message), terminal.Cell(story.Outcome))
		for _, step := range story.Steps {
			at := strings.Repeat(" ", len(time.DateTime))
			if !step.At.IsZero() {
				at = moment(step.At)
			}
			fmt.Fprintf(&b, "  %s  %s\n", at, terminal.Cell(step.Text))
		}
		fmt.Fprintf(&b, "  → %s\n\n", terminal.Cell(story.Says))
	}
	for _, hint := range told.Hints {
		fmt.Fprintln(&b, terminal.Cell(hint))
	}
	_, err := io.WriteString(out, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}
