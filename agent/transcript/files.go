package transcript

import (
	"strconv"
	"strings"

	"parley/agent/journal"
	"parley/sessions"
)

// A file came with a message; got is nil while it is not fetched.
type file struct {
	sessions.Attached
	got *sessions.Fetched
}

// fileLists are the files of a log by the message that they came with.
type fileLists struct {
	by     map[string][]file
	homed  map[string]bool // messages that have a block of their own
	listed map[string]bool // messages whose files were given as orphans
}

func newFileLists(records []journal.Record) *fileLists {
	l := &fileLists{by: map[string][]file{}, homed: map[string]bool{}, listed: map[string]bool{}}
	type place struct {
		message string
		i       int
	}
	places := map[int64]place{}
	for _, r := range records {
		switch d := r.Data.(type) {
		case sessions.User:
			l.homed[r.Cause] = true
		case sessions.Attached:
			places[r.N] = place{d.Message, len(l.by[d.Message])}
			l.by[d.Message] = append(l.by[d.Message], file{Attached: d})
		case sessions.Fetched:
			if p, ok := places[d.Attached]; ok {
				l.by[p.message][p.i].got = &d
			}
		}
	}
	return l
}

// of are the files that came with a message.
func (l *fileLists) of(message string) []file { return l.by[message] }

// orphans are the files of a message that has no block of its own, the first time.
func (l *fileLists) orphans(message string) []file {
	if l.homed[message] || l.listed[message] {
		return nil
	}
	l.listed[message] = true
	return l.by[message]
}

// frameFiles adds the files of a message, and the words of those that were spoken.
func frameFiles(b *strings.Builder, files []file) {
	for _, f := range files {
		kind, size, words := f.Type, f.Size, ""
		if f.got != nil && f.got.Path != "" {
			kind, size, words = f.got.Type, f.got.Size, f.got.Words
		}
		b.WriteString("<" + tagFile)
		writeAttribute(b, "kind", f.Kind)
		writeAttribute(b, "name", f.Name)
		writeAttribute(b, "type", kind)
		if size > 0 {
			writeAttribute(b, "bytes", strconv.FormatInt(size, 10))
		}
		switch {
		case f.got == nil:
			writeAttribute(b, "problem", "it was not fetched")
		case f.got.Problem != "":
			writeLongAttribute(b, "problem", f.got.Problem)
		default:
			writeLongAttribute(b, "path", f.got.Path)
			writeLongAttribute(b, "unheard", f.got.Unheard)
		}
		b.WriteString(">")
		if words != "" {
			b.WriteString("\n" + escapeTags(words) + "\n")
		}
		b.WriteString("</" + tagFile + ">\n")
	}
}

// addAttached shows the pictures that came with a message.
func (r *rendering) addAttached(files []file, turn string) {
	for _, f := range files {
		if f.got == nil || f.got.Picture == nil || !r.shown[turn] { // its path stands in the frame
			continue
		}
		r.addPicture(*f.got.Picture, true)
	}
}
