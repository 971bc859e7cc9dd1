package pages

import (
	"fmt"
	"strings"
)

// Limits for a document that has no pages of its own, and is split into parts.
const (
	// partSize is the approximate length of a part, in bytes.
	partSize = 4000
	// MostText limits how much text is read, in bytes; a note says that the rest is left out.
	MostText = 32 << 20
)

// A Parts is a Document whose text was read as a whole and split into parts. The zero Parts is
// empty and ready to use.
type Parts struct {
	all  []Page
	open strings.Builder
	size int
	note string
	full bool
}

// Add appends a block of text, a paragraph or a table, to the part that is being filled, or
// begins a new part with it. Long blocks are split at the ends of lines.
func (p *Parts) Add(block string) {
	block = strings.TrimRight(block, "\n ")
	for block != "" && !p.IsFull() {
		if p.open.Len() > 0 && p.open.Len()+len(block) > partSize {
			p.End("")
		}
		piece := block
		if len(piece) > 2*partSize {
			piece = firstLines(piece, partSize)
		}
		block = strings.TrimLeft(block[len(piece):], "\n")
		if p.open.Len() > 0 {
			p.open.WriteString("\n\n")
		}
		p.open.WriteString(strings.TrimRight(piece, "\n"))
		p.size += len(piece)
	}
}

// firstLines returns the beginning of a text, at most most bytes long: up to the end of a line or,
// if the first line is longer, up to the end of a character.
func firstLines(text string, most int) string {
	if end := strings.LastIndexByte(text[:most], '\n'); end > most/4 {
		return text[:end+1]
	}
	return strings.ToValidUTF8(text[:most], "")
}

// End completes the part that is being filled, and sets its title.
func (p *Parts) End(title string) {
	if p.open.Len() == 0 {
		return
	}
	p.all = append(p.all, Page{Title: title, Text: p.open.String()})
	p.open.Reset()
}

// Put appends a complete part, unless MostText is reached.
func (p *Parts) Put(title, text string) {
	if p.End(""); p.IsFull() {
		return
	}
	p.all = append(p.all, Page{Title: title, Text: text})
	p.size += len(text)
}

// IsFull reports whether MostText is reached, so that no more text needs to be read. The first time that it is, IsFull
// adds a note that says so.
func (p *Parts) IsFull() bool {
	if p.size >= MostText && !p.full {
		p.full = true
		p.AddNote(fmt.Sprintf("only the first %d MB of its text were read", MostText>>20))
	}
	return p.full
}

// AddNote adds a sentence to what Note returns.
func (p *Parts) AddNote(note string) {
	if p.note != "" {
		p.note += "; "
	}
	p.note += note
}

// Count implements Document: it closes the last part first.
func (p *Parts) Count() int {
	p.End("")
	return len(p.all)
}

// Page implements Document; n counts from 1.
func (p *Parts) Page(n int) (Page, error) { return p.all[n-1], nil }

// Note implements Document: it returns the sentences that AddNote has added.
func (p *Parts) Note() string { return p.note }
