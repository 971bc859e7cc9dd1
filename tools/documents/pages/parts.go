package pages

import (
	"fmt"
	"strings"
)

// Bounds of a document that has no pages of its own.
const (
	// partSize is about how long its parts are, in bytes.
	partSize = 4000
	// MostText is how much of it is read: what is beyond is left out, and said.
	MostText = 32 << 20
)

// Parts is a Document that is there as a whole, in parts. The zero value has none.
type Parts struct {
	all  []Page
	open strings.Builder
	size int
	note string
	full bool
}

// Add appends a block of text, a paragraph or a table, to the part that is being
// filled, or begins another with it. Long blocks are parted at the ends of lines.
func (p *Parts) Add(block string) {
	block = strings.TrimRight(block, "\n ")
	for block != "" && !p.Full() {
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

// firstLines is the beginning of a text, up to the end of a line, or at least of a
// character, before most.
func firstLines(text string, most int) string {
	if end := strings.LastIndexByte(text[:most], '\n'); end > most/4 {
		return text[:end+1]
	}
	return strings.ToValidUTF8(text[:most], "")
}

// End closes the part that is being filled.
func (p *Parts) End(title string) {
	if p.open.Len() == 0 {
		return
	}
	p.all = append(p.all, Page{Title: title, Text: p.open.String()})
	p.open.Reset()
}

// Put appends a part that is whole.
func (p *Parts) Put(title, text string) {
	if p.End(""); p.Full() {
		return
	}
	p.all = append(p.all, Page{Title: title, Text: text})
	p.size += len(text)
}

// Full tells whether no more is read.
func (p *Parts) Full() bool {
	if p.size >= MostText && !p.full {
		p.full = true
		p.Say(fmt.Sprintf("only the first %d MB of its text were read", MostText>>20))
	}
	return p.full
}

// Say adds to the note.
func (p *Parts) Say(note string) {
	if p.note != "" {
		p.note += "; "
	}
	p.note += note
}

// Count implements Document.
func (p *Parts) Count() int {
	p.End("")
	return len(p.all)
}

// Page implements Document.
func (p *Parts) Page(n int) (Page, error) { return p.all[n-1], nil }

// Note implements Document.
func (p *Parts) Note() string { return p.note }
