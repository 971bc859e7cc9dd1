// Package files represents the files that go with a message, and holds the texts about them for platforms and
// people.
//
// A message either contains a whole file (bus.File) or names it (bus.FileRef): a named file is in a Store that
// workers and gateways share.
package files

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/bus"
	"parley/channels/markup"
)

// ErrMissing says that a file that a message names does not exist, or has changed.
var ErrMissing = errors.New("the file is no longer there")

// A Store holds the files that messages name. Each message that names files has references to them until it is
// delivered or given up; when its last reference is removed, a file is deleted.
type Store interface {
	// Read returns a file's content; ErrMissing if the store does not have it.
	Read(f bus.FileRef) ([]byte, error)
	// Refer records that a session's message names these files, so that they are kept for it; it is called before
	// the message is published. It returns ErrMissing if the store does not have them.
	Refer(session, message string, files []bus.FileRef) error
	// Release removes a message's references to these files.
	Release(message string, files []bus.FileRef) error
}

// A File is one file that goes with a message.
type File struct {
	Name string // its name as platforms and people see it
	Size int64

	inline []byte
	voice  bool // see bus.File
	ref    *bus.FileRef
	text   bool // whether the content is the message's own text
}

// TextFile returns the message's text as a file, for a text that is too long for a chat.
func TextFile(out bus.Outbound) File {
	return File{Name: "message.md", Size: int64(len(out.Text)), inline: []byte(out.Text), text: true}
}

// IsText reports whether the file is the message's own text.
func (f File) IsText() bool { return f.text }

// Of returns the files that go with a message, in order.
func Of(out bus.Outbound) []File {
	var all []File
	if f := out.File; f != nil {
		all = append(all, File{Name: cleanName(f.Name), Size: int64(len(f.Data)), inline: f.Data, voice: f.Voice})
	}
	for _, f := range out.Files {
		all = append(all, File{Name: cleanName(f.Name), Size: f.Size, ref: &f, voice: f.Voice})
	}
	return all
}

// IsReference reports whether the message names the file instead of containing it.
func (f File) IsReference() bool { return f.ref != nil }

// Load returns the file with its content. It returns ErrMissing if the store does not have the file, or if there is
// no store.
func (f File) Load(s Store) (bus.File, error) {
	if f.ref == nil {
		return bus.File{Name: f.Name, Data: f.inline, Voice: f.voice}, nil
	}
	if s == nil {
		return bus.File{}, ErrMissing
	}
	content, err := s.Read(*f.ref)
	if err != nil {
		return bus.File{}, fmt.Errorf("read a file to be sent: %w", err)
	}
	return bus.File{Name: f.Name, Data: content, Voice: f.voice}, nil
}

// NotAttachedNote returns a sentence for people that takes the place of a file that can't be sent.
func (f File) NotAttachedNote() string {
	if f.ref != nil && f.ref.Path != "" {
		return fmt.Sprintf("(The file %s (%s) is in the workspace.)", markup.Verbatim(f.ref.Path), formatSize(f.Size))
	}
	return fmt.Sprintf("(I couldn't attach the file %s (%s) here.)", markup.Verbatim(f.Name), formatSize(f.Size))
}

// longestName is the length of the longest file name that file systems accept, in bytes.
const longestName = 255

// cleanName returns a file name that is safe to give to platforms: it can't end a request's header, name a folder
// or change the direction of writing.
func cleanName(name string) string {
	var kept strings.Builder
	for _, r := range name {
		if !bus.IsClean(string(r)) || strings.ContainsRune(`/\"`, r) {
			r = '_'
		}
		if kept.Len()+utf8.RuneLen(r) > longestName {
			break
		}
		kept.WriteRune(r)
	}
	if name := kept.String(); strings.Trim(name, ". ") != "" {
		return name
	}
	return "file"
}

// formatSize returns a size for people: bytes, kB or MB.
func formatSize(bytes int64) string {
	switch {
	case bytes == 1:
		return "1 byte"
	case bytes < 1000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
