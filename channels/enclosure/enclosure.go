// Package enclosure is the files that go with a message, and what is said of them to platforms and people.
//
// A message carries a file whole (bus.File), or names it (bus.FileRef): then a Store has
// it, which workers and gateways share.
package enclosure

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/bus"
	"parley/channels/markup"
)

// ErrMissing says that a file that a message names is not there, or not the same any more.
var ErrMissing = errors.New("the file is not there any more")

// A Store has the files that messages name. Each message that names some refers to
// them until it is through; with the last reference they go.
type Store interface {
	// Read returns a file's content; ErrMissing if it is not there.
	Read(f bus.FileRef) ([]byte, error)
	// Refer notes that a message of a session names these files, before it is
	// published; ErrMissing if they are not there.
	Refer(session, message string, files []bus.FileRef) error
	// Release takes a message's references back.
	Release(message string, files []bus.FileRef) error
}

// An Enclosure is one file that goes with a message.
type Enclosure struct {
	Name string // as platforms and people are told of it
	Size int64

	inline []byte
	ref    *bus.FileRef
	text   bool // the message's own text
}

// OfText is the message's text as a file, for where it is too long for a chat.
func OfText(out bus.Outbound) Enclosure {
	return Enclosure{Name: "message.md", Size: int64(len(out.Text)), inline: []byte(out.Text), text: true}
}

// IsText tells whether the file is the message's own text.
func (e Enclosure) IsText() bool { return e.text }

// Of are the files that go with a message, in their order.
func Of(out bus.Outbound) []Enclosure {
	var all []Enclosure
	if f := out.File; f != nil {
		all = append(all, Enclosure{Name: cleanName(f.Name), Size: int64(len(f.Data)), inline: f.Data})
	}
	for _, f := range out.Files {
		all = append(all, Enclosure{Name: cleanName(f.Name), Size: f.Size, ref: &f})
	}
	return all
}

// Named tells whether the message names the file, and does not carry it.
func (e Enclosure) Named() bool { return e.ref != nil }

// Load is the file with its content. ErrMissing if a store does not have it, or there
// is no store.
func (e Enclosure) Load(s Store) (bus.File, error) {
	if e.ref == nil {
		return bus.File{Name: e.Name, Data: e.inline}, nil
	}
	if s == nil {
		return bus.File{}, ErrMissing
	}
	content, err := s.Read(*e.ref)
	if err != nil {
		return bus.File{}, fmt.Errorf("read a file to be sent: %w", err)
	}
	return bus.File{Name: e.Name, Data: content}, nil
}

// NotAttached stands in for the file where none can be sent.
func (e Enclosure) NotAttached() string {
	if e.ref != nil && e.ref.Path != "" {
		return fmt.Sprintf("(The file %s of %s is in the workspace.)", markup.Verbatim(e.ref.Path), formatSize(e.Size))
	}
	return fmt.Sprintf("(The file %s of %s could not be attached here.)", markup.Verbatim(e.Name), formatSize(e.Size))
}

// longestName is what file systems take, in bytes.
const longestName = 255

// cleanName is a file's name as platforms are told of it: nothing in it ends a
// header, names a folder or changes the direction of writing.
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
