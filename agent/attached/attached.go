// Package attached keeps track of the files that came with a turn's messages, as recorded in the turn's
// entries.
package attached

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// A File is a file that came with a message.
type File struct {
	sessions.Attached
	N      int64  // the number of the file's entry
	Person string // who sent the file
	// Forwarded reports that the sender forwarded somebody else's message.
	Forwarded bool
	fetched   *sessions.Fetched // nil until the file is fetched, or fetching has failed
}

// Files are the files of one turn, in the order in which they arrived.
type Files struct {
	all       []File
	forwards  bool     // the last message is somebody else's that the sender forwarded
	unfetched []string // messages for people about files that have no entries
}

// Apply updates the files with the turn's next log entry: a message, a file that came with it, the outcome of
// fetching the file, or a notice that it is not fetched. It ignores other entries.
func (f *Files) Apply(r journal.Record) {
	switch d := r.Data.(type) {
	case sessions.User:
		f.forwards = slices.ContainsFunc(d.Quotes, func(q sessions.Quote) bool { return q.Kind == bus.Forwarded })
	case sessions.Notice:
		if d.Code == sessions.NoticeUnfetched {
			f.unfetched = append(f.unfetched, d.Text)
		}
	case sessions.Attached:
		f.all = append(f.all, File{Attached: d, N: r.N, Person: r.Person, Forwarded: f.forwards})
	case sessions.Fetched:
		for i := range f.all {
			if f.all[i].N == d.Attached {
				f.all[i].fetched = &d
			}
		}
	}
}

// UnfetchedNotices returns entries with a notice for each file of a message, for a turn that fetches none of
// them. Each notice tells people why.
func UnfetchedNotices(turn string, in bus.Inbound, why string) []sessions.Entry {
	var entries []sessions.Entry
	for _, a := range in.Attachments {
		text := fmt.Sprintf("I didn't get %s: %s. You can send it again once that changes.", nameOf(a.Name, a.Kind), why)
		e := journal.NewEntry(turn, sessions.KindNotice, sessions.Notice{Code: sessions.NoticeUnfetched, Text: text, MessageID: in.ID})
		e.Person = in.From.ID
		entries = append(entries, e)
	}
	return entries
}

// Entries returns the entries by which a turn's log records the files that came with a message and have to be
// fetched.
func Entries(turn string, in bus.Inbound) []sessions.Entry {
	var entries []sessions.Entry
	for _, a := range in.Attachments {
		e := journal.NewEntry(turn, sessions.KindAttached, sessions.Attached{
			Message: in.ID, Kind: a.Kind, Name: a.Name, Type: a.Type, Size: a.Size, Ref: a.Ref, Quoted: a.Quoted,
		})
		e.Person = in.From.ID
		entries = append(entries, e)
	}
	return entries
}

// A Trace says what a session's log knows about a message.
type Trace struct {
	Person string // who said it; "" if the log doesn't contain the message
	// Paths are the files in the workspace that came only with this message, including the pictures that were
	// made from them for models.
	Paths []string
}

// TraceOf returns the Trace of a message. It looks through all entries of a session,
// including those that a summary covers.
func TraceOf(entries iter.Seq2[sessions.Entry, error], message string) (Trace, error) {
	var t Trace
	others := map[string]bool{} // pictures that other messages or tools have too, because their content is the same
	for e, err := range entries {
		if err != nil {
			return t, err
		}
		switch {
		case e.Kind == sessions.KindFetched:
			f, err := sessions.Decode[sessions.Fetched](e)
			if err != nil {
				return t, fmt.Errorf("entry %d: %w", e.N, err)
			}
			if f.Message == message && f.Path != "" {
				t.Paths = append(t.Paths, f.Path)
			}
			if f.Picture != nil && f.Message == message {
				t.Paths = append(t.Paths, f.Picture.View)
			} else if f.Picture != nil {
				others[f.Picture.View] = true
			}
		case e.Kind == sessions.KindPicture:
			p, err := sessions.Decode[sessions.Picture](e)
			if err != nil {
				return t, fmt.Errorf("entry %d: %w", e.N, err)
			}
			others[p.View] = !slices.Contains(t.Paths, p.Path) || others[p.View]
		case e.Cause == message:
			t.Person = e.Person
		}
	}
	t.Paths = slices.DeleteFunc(t.Paths, func(path string) bool { return others[path] })
	return t, nil
}

// HasUnfetched reports whether any file is still to be fetched.
func (f *Files) HasUnfetched() bool {
	return slices.ContainsFunc(f.all, func(a File) bool { return a.fetched == nil })
}

// HasVoice reports whether a message came with a recording of its sender's own speech.
func (f *Files) HasVoice() bool {
	return slices.ContainsFunc(f.all, func(a File) bool { return a.Kind == bus.Voice && !a.Forwarded && !a.Quoted })
}

// atOnce is how many files of a turn are fetched at the same time.
const atOnce = 4

// EachUnfetched calls fn for each file that is still to be fetched, for up to atOnce files at the same time. It
// returns all errors, joined.
func (f *Files) EachUnfetched(fn func(File) error) error {
	free := make(chan struct{}, atOnce)
	errs := make([]error, len(f.all))
	var doing sync.WaitGroup
	for i, a := range f.all {
		if a.fetched != nil {
			continue
		}
		doing.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			errs[i] = fn(a)
		})
	}
	doing.Wait()
	return errors.Join(errs...)
}

// Notes returns texts that tell people which files could not be fetched or transcribed, and why.
func (f *Files) Notes() []string {
	var notes []string
	for _, text := range f.unfetched {
		notes = append(notes, "_("+text+")_")
	}
	for _, a := range f.all {
		name := nameOf(a.Name, a.Kind)
		switch got := a.fetched; {
		case got == nil:
		case got.Problem != "":
			notes = append(notes, fmt.Sprintf("_(I didn't get %s: %s.)_", name, got.Problem))
		case got.UnheardReason != "":
			notes = append(notes, fmt.Sprintf("_(I couldn't listen to %s: %s.)_", name, got.UnheardReason))
		}
	}
	return notes
}

// nameOf returns the words for a file in a text for people: its name, or "the" and its kind.
func nameOf(name, kind string) string {
	return cmp.Or(inlineName(name), "the "+cmp.Or(inlineName(kind), "file"))
}

// inlineName returns a file's name formatted as inline code in Markdown, or "" if it has none.
func inlineName(name string) string {
	name = strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(name, "`", "'"), "\uFFFD")), " ")
	if name == "" {
		return ""
	}
	return "`" + name + "`"
}
