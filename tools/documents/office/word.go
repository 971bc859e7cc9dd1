package office

import (
	"encoding/xml"
	"fmt"
	"path"
	"strings"

	"parley/tools/documents/pages"
	"parley/tools/documents/table"
)

// A word is a DOCX that is being read.
type word struct {
	parts   *pages.Parts
	links   map[string]relation
	styles  map[string]style
	numbers numbering
	items   []string // of the list that is being read
}

// A style is what of a paragraph's style matters here.
type style struct {
	based string
	level int // of a heading; 0 is none
	list  listRef
}

func readWord(a *archive, main string, parts *pages.Parts) error {
	w := &word{parts: parts, styles: map[string]style{}}
	var err error
	if w.links, err = a.relations(main); err != nil {
		return err
	}
	if err := a.optional(w.part(main, "styles"), w.readStyles); err != nil {
		return err
	}
	if err := a.optional(w.part(main, "numbering"), w.numbers.read); err != nil {
		return err
	}
	err = a.read(main, func(r *reader) error {
		return r.walk(func(e xml.StartElement) error {
			if e.Name.Local == "body" {
				return w.blocks(r, w.add)
			}
			return nil
		})
	})
	w.endList()
	if err != nil {
		return err
	}
	for _, kind := range []string{"footnotes", "endnotes"} {
		if err := a.optional(w.part(main, kind), func(r *reader) error { return w.readNotes(r, kind) }); err != nil {
			return err
		}
	}
	return nil
}

// part is the name of the part of a kind.
func (w *word) part(main, kind string) string {
	for _, r := range w.links {
		if r.kind == kind {
			return r.target
		}
	}
	return path.Join(path.Dir(main), kind+".xml")
}

func (w *word) readStyles(r *reader) error {
	return r.walk(func(e xml.StartElement) error {
		if e.Name.Local != "style" || len(w.styles) > maxParts {
			return nil
		}
		id := attribute(e, "styleId")
		var s style
		err := r.walk(func(e xml.StartElement) error {
			switch e.Name.Local {
			case "name":
				name := strings.ToLower(attribute(e, "val"))
				if n, ok := strings.CutPrefix(name, "heading "); ok {
					s.level = number(n)
				} else if name == "title" {
					s.level = 1
				}
			case "basedOn":
				s.based = attribute(e, "val")
			case "outlineLvl":
				s.level = outline(e)
			case "numPr":
				return s.list.read(r)
			}
			return nil
		})
		w.styles[id] = s
		return err
	})
}

// outline is the level of a heading that an element says; 0 is none.
func outline(e xml.StartElement) int {
	if n := number(attribute(e, "val")); n < 9 {
		return n + 1
	}
	return 0
}

// style is a style with what it has from those that it is based on.
func (w *word) style(id string) style {
	s := w.styles[id]
	for base, n := s.based, 0; base != "" && n < 20; n++ {
		b := w.styles[base]
		if s.level == 0 {
			s.level = b.level
		}
		if s.list.id == "" {
			s.list = b.list
		}
		base = b.based
	}
	return s
}

// A block is a paragraph or a table.
type block struct {
	text string
	item bool // of a list
}

// add adds a block to the document. Items of a list stay together.
func (w *word) add(b block) {
	switch {
	case strings.TrimSpace(b.text) == "":
	case b.item:
		w.items = append(w.items, b.text)
	default:
		w.endList()
		w.parts.Add(b.text)
	}
}

func (w *word) endList() {
	if len(w.items) > 0 {
		w.parts.Add(strings.Join(w.items, "\n"))
		w.items = nil
	}
}

// blocks reads what a body, a cell, a note or a box of text holds.
func (w *word) blocks(r *reader, add func(block)) error {
	return r.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return w.paragraph(r, add)
		case "tbl":
			text, err := w.table(r)
			add(block{text: text})
			return err
		case "sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag", "AlternateContent", "Choice":
			if w.parts.Full() {
				return nil
			}
			return w.blocks(r, add)
		}
		return nil
	})
}

// table reads a table. What is in its cells stands in one line each.
func (w *word) table(r *reader) (string, error) {
	var rows []string
	err := w.rows(r, func(cells []string) {
		rows = append(rows, table.Row(cells))
		if len(rows) == 1 {
			rows = append(rows, table.Rule(len(cells)))
		}
	})
	return strings.Join(rows, "\n"), err
}

func (w *word) rows(r *reader, add func(cells []string)) error {
	return r.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "tr":
			cells, err := w.row(r)
			if len(cells) > 0 {
				add(cells)
			}
			return err
		case "sdt", "sdtContent", "customXml", "ins":
			return w.rows(r, add)
		}
		return nil
	})
}

func (w *word) row(r *reader) (cells []string, err error) {
	err = r.each(func(e xml.StartElement) error {
		if e.Name.Local != "tc" {
			return nil
		}
		cell, span, err := w.cell(r)
		cells = append(cells, cell)
		for ; span > 1 && len(cells) < 500; span-- {
			cells = append(cells, "")
		}
		return err
	})
	return cells, err
}

func (w *word) cell(r *reader) (text string, span int, err error) {
	var all []string
	add := func(b block) {
		if b.text = strings.TrimSpace(b.text); b.text != "" {
			all = append(all, b.text)
		}
	}
	err = r.each(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return w.paragraph(r, add)
		case "tbl":
			text, err := w.table(r)
			add(block{text: text})
			return err
		case "tcPr":
			return r.each(func(e xml.StartElement) error {
				if e.Name.Local == "gridSpan" {
					span = number(attribute(e, "val"))
				}
				return nil
			})
		case "sdt":
			return r.each(func(e xml.StartElement) error {
				if e.Name.Local == "sdtContent" {
					return w.blocks(r, add)
				}
				return nil
			})
		}
		return nil
	})
	return strings.Join(all, " / "), span, err
}

// readNotes adds the notes at the foot of pages, or at the end.
func (w *word) readNotes(r *reader, kind string) error {
	return r.walk(func(e xml.StartElement) error {
		if e.Name.Local != "footnote" && e.Name.Local != "endnote" {
			return nil
		}
		var all []string
		id, special := attribute(e, "id"), attribute(e, "type")
		err := w.blocks(r, func(b block) { all = append(all, strings.TrimSpace(b.text)) })
		if text := strings.TrimSpace(strings.Join(all, " ")); text != "" && (special == "" || special == "normal") {
			w.parts.Add(fmt.Sprintf("[^%s%s]: %s", mark(kind), id, text))
		}
		return err
	})
}

// mark tells the notes at the end from those at the foot.
func mark(kind string) string {
	if strings.HasPrefix(kind, "endnote") {
		return "e"
	}
	return ""
}
