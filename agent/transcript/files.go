package transcript

import (
	"strconv"
	"strings"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/sessions"
)

// A file is a file that came with a message. got is nil until it is fetched.
type file struct {
	sessions.Attached
	fetched *sessions.Fetched
}

// fileLists holds the files in a log, by the message that they came with.
type fileLists struct {
	byMessage map[string][]file
	hasEntry  map[string]bool // messages that have an entry of their own
	listed    map[string]bool // messages whose files orphans has returned
}

// newFileLists collects the files of all messages in the records.
func newFileLists(records []journal.Record) *fileLists {
	l := &fileLists{byMessage: map[string][]file{}, hasEntry: map[string]bool{}, listed: map[string]bool{}}
	type place struct {
		message string
		i       int
	}
	places := map[int64]place{}
	if !haveFiles(records) { // most logs have none
		return l
	}
	for _, r := range records {
		switch d := r.Data.(type) {
		case sessions.User:
			l.hasEntry[r.Cause] = true
		case sessions.Attached:
			places[r.N] = place{d.Message, len(l.byMessage[d.Message])}
			l.byMessage[d.Message] = append(l.byMessage[d.Message], file{Attached: d})
		case sessions.Fetched:
			if p, ok := places[d.Attached]; ok {
				l.byMessage[p.message][p.i].fetched = &d
			}
		}
	}
	return l
}

// haveFiles reports whether any of the messages came with files.
func haveFiles(records []journal.Record) bool {
	for i := range records {
		if records[i].Kind == sessions.KindAttached {
			return true
		}
	}
	return false
}

// filesOf returns the files that came with a message.
func (l *fileLists) filesOf(message string) []file { return l.byMessage[message] }

// orphans returns the files of a message that has no entry of its own. Later calls for the same message return
// nil.
func (l *fileLists) orphans(message string) []file {
	if l.hasEntry[message] || l.listed[message] {
		return nil
	}
	l.listed[message] = true
	return l.byMessage[message]
}

// frameFiles writes the frames of a message's files, including the words of transcribed recordings.
func frameFiles(b *strings.Builder, files []file) {
	for _, f := range files {
		kind, size, words := f.Type, f.Size, ""
		if f.fetched != nil && f.fetched.Path != "" {
			kind, size, words = f.fetched.Type, f.fetched.Size, f.fetched.SpokenWords
		}
		b.WriteString("<" + frames.Attachment)
		frames.WriteAttribute(b, "kind", f.Kind)
		frames.WriteAttribute(b, "name", f.Name)
		frames.WriteAttribute(b, "type", kind)
		if size > 0 {
			frames.WriteAttribute(b, "bytes", strconv.FormatInt(size, 10))
		}
		switch {
		case f.fetched == nil:
			frames.WriteAttribute(b, "problem", "it was not fetched")
		case f.fetched.Problem != "":
			frames.WriteLongAttribute(b, "problem", f.fetched.Problem)
		default:
			frames.WriteLongAttribute(b, "path", f.fetched.Path)
			frames.WriteLongAttribute(b, "unheard", f.fetched.UnheardReason)
		}
		b.WriteString(">")
		if words != "" {
			b.WriteString("\n" + frames.Escape(words) + "\n")
		}
		b.WriteString("</" + frames.Attachment + ">\n")
	}
}

// addAttached adds the pictures that came with a message, if pictures from that turn are still shown.
func (r *rendering) addAttached(files []file, turn string) {
	for _, f := range files {
		if f.fetched == nil || f.fetched.Picture == nil || !r.shown[turn] { // the frame already contains its path
			continue
		}
		r.addPicture(*f.fetched.Picture, true)
	}
}
