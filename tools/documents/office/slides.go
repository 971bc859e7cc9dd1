package office

import (
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/tools/documents/pages"
	"parley/tools/documents/table"
)

// readSlides reads a PPTX file: it adds each slide to parts, until that is full or has maxParts.
func readSlides(a *archive, main string, parts *pages.Parts) error {
	links, err := a.relations(main)
	if err != nil {
		return err
	}
	var slides []string
	err = a.read(main, func(r *partReader) error {
		return r.walk(func(e xml.StartElement) error {
			if e.Name.Local == "sldId" && len(slides) < maxParts {
				slides = append(slides, links[relatedPart(e, "id")].target)
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	for i, name := range slides {
		if parts.IsFull() {
			break
		}
		if err := readSlide(a, name, i+1, parts); err != nil {
			return err
		}
	}
	return nil
}

// readSlide makes a part from a slide and its notes.
func readSlide(a *archive, name string, n int, parts *pages.Parts) error {
	title := fmt.Sprintf("slide %d", n)
	s := slideReader{}
	err := a.readOptional(name, func(r *partReader) error {
		return r.eachChild(func(e xml.StartElement) error {
			if show := attribute(e, "show"); show == "0" || show == "false" {
				title += ", hidden"
			}
			return s.readShapes(r)
		})
	})
	if err != nil {
		return err
	}
	links, err := a.relations(name)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(links)) {
		l := links[id]
		var more slideReader
		switch l.kind {
		case "notesSlide":
			more.isNotesPage = true
			if err := a.readOptional(l.target, more.readShapes); err != nil {
				return err
			}
			if len(more.blocks) > 0 {
				s.trailingBlocks = append(s.trailingBlocks, "Notes: "+strings.Join(more.blocks, "\n"))
			}
		case "diagramData":
			if err := a.readOptional(l.target, more.readShapes); err != nil {
				return err
			}
			s.blocks = append(s.blocks, more.blocks...)
		}
	}
	parts.Put(title, strings.Join(append(s.blocks, s.trailingBlocks...), "\n\n"))
	return nil
}

// A slideReader is one slide that is being read.
type slideReader struct {
	blocks         []string
	trailingBlocks []string // blocks to show after the others
	isNotesPage    bool     // it is a notes page, of which only the text counts
}

// readShapes reads the content of a slide, shape by shape.
func (s *slideReader) readShapes(r *partReader) error {
	return r.walk(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "sp":
			return s.readShape(r)
		case "tbl":
			return s.readTable(r)
		case "cNvPr":
			if alt := strings.Join(strings.Fields(attribute(e, "descr")), " "); alt != "" && !s.isNotesPage {
				s.blocks = append(s.blocks, "[image: "+alt+"]")
			}
		case "pt": // a point in a diagram
			text, err := body(r)
			if text != "" {
				s.blocks = append(s.blocks, text)
			}
			return err
		case "Fallback":
			return skip(r)
		}
		return nil
	})
}

// skip reads an element to its end and ignores it.
func skip(r *partReader) error { return r.eachChild(func(xml.StartElement) error { return nil }) }

// readShape reads a shape with text.
func (s *slideReader) readShape(r *partReader) error {
	role, text := "", ""
	err := r.walk(func(e xml.StartElement) (err error) {
		switch e.Name.Local {
		case "ph":
			if role = attribute(e, "type"); role == "" {
				role = "body"
			}
		case "txBody":
			text, err = body(r)
		}
		return err
	})
	switch {
	case text == "", role == "sldNum", role == "dt", role == "ftr", role == "hdr", s.isNotesPage && role != "body":
	case role == "title" || role == "ctrTitle":
		s.blocks = append([]string{"# " + strings.Join(strings.Fields(text), " ")}, s.blocks...)
	default:
		s.blocks = append(s.blocks, text)
	}
	return err
}

// body returns the paragraphs of a shape or a cell, one per line.
func body(r *partReader) (string, error) {
	var lines []string
	err := r.walk(func(e xml.StartElement) error {
		if e.Name.Local != "p" {
			return nil
		}
		line, err := line(r)
		if line != "" {
			lines = append(lines, line)
		}
		return err
	})
	return strings.Join(lines, "\n"), err
}

// line returns a paragraph, indented by its level in a list.
func line(r *partReader) (string, error) {
	var text strings.Builder
	deep := 0
	err := r.walk(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "pPr":
			deep = min(number(attribute(e, "lvl")), maxLevel)
		case "t":
			part, err := r.text()
			text.WriteString(part)
			return err
		case "br":
			text.WriteByte(' ')
		}
		return nil
	})
	trimmed := strings.TrimSpace(strings.ToValidUTF8(text.String(), "\uFFFD"))
	if trimmed == "" || deep == 0 {
		return trimmed, err
	}
	return strings.Repeat("  ", deep) + "- " + trimmed, err
}

// readTable reads a table.
func (s *slideReader) readTable(r *partReader) error {
	var rows []string
	err := r.eachChild(func(e xml.StartElement) error {
		if e.Name.Local != "tr" {
			return nil
		}
		var cells []string
		err := r.eachChild(func(e xml.StartElement) error {
			if e.Name.Local != "tc" || len(cells) > maxColumns {
				return nil
			}
			text, err := body(r)
			cells = append(cells, strings.ReplaceAll(text, "\n", " / "))
			return err
		})
		if rows = append(rows, table.Row(cells)); len(rows) == 1 {
			rows = append(rows, table.Rule(len(cells)))
		}
		return err
	})
	if len(rows) > 0 {
		s.blocks = append(s.blocks, strings.Join(rows, "\n"))
	}
	return err
}
