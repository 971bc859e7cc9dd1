package undo

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/sessions/snapshots"
)

// How much of a list is shown in one chat message.
const (
	mostNamed  = 12 // names of files in one line
	mostListed = 10 // changes in the answer to /undo list
	mostName   = 80 // bytes of one name, whose end is shown
)

// replyTexts makes the answers to /undo, for a chat in which commands begin with prefix.
type replyTexts struct{ prefix string }

func (s replyTexts) usageText() string {
	return fmt.Sprintf("Say `%[1]sundo` to undo my last change, `%[1]sundo list` to see what can be undone, or `%[1]sundo NUMBER` to undo a change from that list.", s.prefix)
}

func (s replyTexts) nothingText(n int) string {
	if n == 0 {
		return "There's nothing to undo: I haven't changed any files here lately."
	}
	return fmt.Sprintf("There's no change %d. `%sundo list` shows the ones I know about.", n, s.prefix)
}

func (s replyTexts) notTheirsText(r snapshots.Record) string {
	return fmt.Sprintf("Somebody else asked for change %d, so only they or an owner can undo it. `%sundo list` shows the others.", r.N, s.prefix)
}

func (s replyTexts) jobsText(n int) string {
	what, done := "A job is running", "it's done"
	if n > 1 {
		what, done = fmt.Sprintf("%d jobs are running", n), "they're done"
	}
	return fmt.Sprintf("%s in the background and may still change files. Wait until %s, or say `%sstop`, and then try again.", what, done, s.prefix)
}

func (s replyTexts) waitingText() string {
	return fmt.Sprintf("I haven't finished that yet: I'm waiting for an answer. Answer me or say `%sstop` first, and then try again.", s.prefix)
}

// undoneText returns the answer that says what an undo has changed.
func (s replyTexts) undoneText(own, undone snapshots.Record) string {
	if own.Result == nil {
		return fmt.Sprintf("I can't undo that: %s.", undone.Problem)
	}
	var b strings.Builder
	if len(own.Result.Restored) == 0 {
		fmt.Fprintf(&b, "I couldn't undo any of change %d, so all files are as they were.", undone.N)
	} else {
		what := "what I changed"
		if undone.UndoneRecord != 0 {
			what = "the undo"
		}
		fmt.Fprintf(&b, "I've undone %s (change %d, %s UTC).", what, undone.N, undone.At.UTC().Format("2006-01-02 15:04"))
	}
	back, removed := splitRemoved(own.Result.Restored)
	s.writeNames(&b, "Restored", back)
	s.writeNames(&b, "Removed", removed)
	var left []string
	for _, l := range own.Result.Left {
		left = append(left, fmt.Sprintf("%s (%s)", quoted(displayPath(l.Path, false)), l.Reason))
	}
	s.writeNames(&b, "Left as is", left)
	if undone.Problem != "" {
		fmt.Fprintf(&b, "\nThere may be more that I don't know of: %s.", undone.Problem)
	}
	if len(own.Result.Restored) > 0 {
		fmt.Fprintf(&b, "\n\n`%sundo %d` reverses this.", s.prefix, own.N)
	}
	return b.String()
}

// splitRemoved returns the paths that an undo restored, and those that it removed because the undone turn had
// created them.
func splitRemoved(all []snapshots.RestoredPath) (back, removed []string) {
	for _, d := range all {
		name := quoted(displayPath(d.Path, d.IsDir))
		if d.What == snapshots.Created {
			removed = append(removed, name)
		} else {
			back = append(back, name)
		}
	}
	return back, removed
}

// writeNames writes a list of at most mostNamed names.
func (s replyTexts) writeNames(b *strings.Builder, what string, names []string) {
	if len(names) == 0 {
		return
	}
	more := ""
	if over := len(names) - mostNamed; over > 0 {
		names, more = names[:mostNamed], fmt.Sprintf(" and %d more", over)
	}
	fmt.Fprintf(b, "\n- %s: %s%s", what, strings.Join(names, ", "), more)
}

// listText returns the answer that lists what can be undone.
func (s replyTexts) listText(all []snapshots.Record, now time.Time) string {
	var b strings.Builder
	listed := 0
	for _, r := range slices.Backward(all) {
		if listed == mostListed {
			break
		}
		listed++
		fmt.Fprintf(&b, "\n- **%d**, %s: %s", r.N, agoText(now.Sub(r.At)), s.lineText(all, r))
	}
	if listed == 0 {
		return s.nothingText(0)
	}
	return "What I've changed here, newest first:\n" + b.String() + fmt.Sprintf("\n\n`%sundo NUMBER` undoes one of them, `%[1]sundo` the newest one that hasn't been undone yet.", s.prefix)
}

func (s replyTexts) lineText(all []snapshots.Record, r snapshots.Record) string {
	var parts []string
	if r.UndoneRecord != 0 {
		parts = append(parts, fmt.Sprintf("undo of %d", r.UndoneRecord))
	}
	switch {
	case r.OpenTree != "":
		parts = append(parts, "still in progress")
	case r.Problem != "" && len(r.Changes) == 0:
		parts = append(parts, "I can't undo it: "+r.Problem)
	default:
		var names []string
		for _, c := range r.Changes {
			names = append(names, quoted(displayPath(c.Path, c.IsDir()))+" "+c.KindWord())
		}
		const most = 3
		if over := len(names) - most; over > 0 {
			names = append(names[:most], fmt.Sprintf("%d more", over))
		}
		if len(names) == 0 {
			names = []string{"nothing"}
		}
		parts = append(parts, strings.Join(names, ", "))
	}
	if snapshots.IsUndone(all, r.N) {
		parts = append(parts, "undone")
	}
	return strings.Join(parts, "; ")
}

// agoText says in words how long ago something happened.
func agoText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// displayPath returns a path in the form that people and models see.
func displayPath(name snapshots.Name, dir bool) string {
	text := strings.ToValidUTF8(string(name), "\uFFFD")
	if dir {
		text += "/"
	}
	return text
}

// quoted returns a name in backquotes, without characters that could end the quotation or begin a new line.
func quoted(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '`' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return '\uFFFD'
		}
		return r
	}, name)
	if len(name) > mostName {
		name = "…" + strings.ToValidUTF8(name[len(name)-mostName:], "")
	}
	return "`" + name + "`"
}

const (
	textNotKept      = "I don't keep copies of what I change here, so I can't undo it: `[workspace] undo_turns` is 0."
	textTooManyFiles = "I can't undo that: there are too many files here for me to save their current state first."
)
