package office

import (
	"encoding/xml"
	"fmt"
	"path"
	"strings"

	"parley/tools/documents/pages"
	"parley/tools/documents/table"
)

// A wordReader is a DOCX document that is being read.
type wordReader struct {
	parts   *pages.Parts
	links   map[string]relation
	styles  map[string]style
	numbers numbering
	items   []string // the items of the list that is being read
}

// A style holds the properties of a paragraph style that matter here.
type style struct {
	based string
	level int // the level of a heading; 0 for no heading
	list  listRef
}

// readWord reads a DOCX file: it adds its paragraphs, tables and notes to parts.
func readWord(a *archive, main string, parts *pages.Parts) error {
	w := &wordReader{parts: parts, styles: map[string]style{}}
	var err error
	if w.links, err = a.relations(main); err != nil {
		return err
	}
	if err := a.readOptional(w.partOf(main, "styles"), w.readStyles); err != nil {
		return err
	}
	if err := a.readOptional(w.partOf(main, "numbering"), w.numbers.read); err != nil {
		return err
	}
	err = a.read(main, func(r *partReader) error {
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
		if err := a.readOptional(w.partOf(main, kind), func(r *partReader) error { return w.readNotes(r, kind) }); err != nil {
			return err
		}
	}
	return nil
}

// partOf returns the name of the part of a certain kind, such as styles, that the part main refers
// to. If main refers to none, it returns the part's usual name.
func (w *wordReader) partOf(main, kind string) string {
	for _, r := range w.links {
		if r.kind == kind {
			return r.target
		}
	}
	return path.Join(path.Dir(main), kind+".xml")
}

func (w *wordReader) readStyles(r *partReader) error {
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

// outline returns the heading level that an element states; 0 for none.
func outline(e xml.StartElement) int {
	if n := number(attribute(e, "val")); n < 9 {
		return n + 1
	}
	return 0
}

// resolveStyle returns a style together with what it inherits from the styles it is based on.
func (w *wordReader) resolveStyle(id string) style {
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

// A block is a paragraph or a table, as Markdown.
type block struct {
	text string
	item bool // it is a list item
}

// add adds a block to the document. List items stay together.
func (w *wordReader) add(b block) {
	switch {
	case strings.TrimSpace(b.text) == "":
	case b.item:
		w.items = append(w.items, b.text)
	default:
		w.endList()
		w.parts.Add(b.text)
	}
}

// endList adds the collected list items to the document.
func (w *wordReader) endList() {
	if len(w.items) > 0 {
		w.parts.Add(strings.Join(w.items, "\n"))
		w.items = nil
	}
}

// blocks reads the paragraphs and tables of a body, a cell, a note or a text box, and calls add
// for each.
func (w *wordReader) blocks(r *partReader, add func(block)) error {
	return r.eachChild(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return w.paragraph(r, add)
		case "tbl":
			text, err := w.readTable(r)
			add(block{text: text})
			return err
		case "sdt", "sdtContent", "customXml", "ins", "moveTo", "smartTag", "AlternateContent", "Choice":
			if w.parts.IsFull() {
				return nil
			}
			return w.blocks(r, add)
		}
		return nil
	})
}

// readTable reads a table. It puts the content of each cell on one line.
func (w *wordReader) readTable(r *partReader) (string, error) {
	var rows []string
	err := w.readRows(r, func(cells []string) {
		rows = append(rows, table.Row(cells))
		if len(rows) == 1 {
			rows = append(rows, table.Rule(len(cells)))
		}
	})
	return strings.Join(rows, "\n"), err
}

func (w *wordReader) readRows(r *partReader, add func(cells []string)) error {
	return r.eachChild(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "tr":
			cells, err := w.readRow(r)
			if len(cells) > 0 {
				add(cells)
			}
			return err
		case "sdt", "sdtContent", "customXml", "ins":
			return w.readRows(r, add)
		}
		return nil
	})
}

func (w *wordReader) readRow(r *partReader) (cells []string, err error) {
	err = r.eachChild(func(e xml.StartElement) error {
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

// cell returns the text of a table cell, on one line, and how many columns the cell spans.
func (w *wordReader) cell(r *partReader) (text string, span int, err error) {
	var all []string
	add := func(b block) {
		if b.text = strings.TrimSpace(b.text); b.text != "" {
			all = append(all, b.text)
		}
	}
	err = r.eachChild(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "p":
			return w.paragraph(r, add)
		case "tbl":
			text, err := w.readTable(r)
			add(block{text: text})
			return err
		case "tcPr":
			return r.eachChild(func(e xml.StartElement) error {
				if e.Name.Local == "gridSpan" {
					span = number(attribute(e, "val"))
				}
				return nil
			})
		case "sdt":
			return r.eachChild(func(e xml.StartElement) error {
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

// readNotes adds footnotes or endnotes.
func (w *wordReader) readNotes(r *partReader, kind string) error {
	return r.walk(func(e xml.StartElement) error {
		if e.Name.Local != "footnote" && e.Name.Local != "endnote" {
			return nil
		}
		var all []string
		id, special := attribute(e, "id"), attribute(e, "type")
		err := w.blocks(r, func(b block) { all = append(all, strings.TrimSpace(b.text)) })
		if text := strings.TrimSpace(strings.Join(all, " ")); text != "" && (special == "" || special == "normal") {
			w.parts.Add(fmt.Sprintf("[^%s%s]: %s", notePrefix(kind), id, text))
		}
		return err
	})
}

// notePrefix returns the letters that precede an endnote's number, to distinguish it from a
// footnote with the same number; "" for footnotes.
func notePrefix(kind string) string {
	if strings.HasPrefix(kind, "endnote") {
		return "e"
	}
	return ""
}
