package office

import (
	"encoding/xml"
	"strings"
)

// A paragraph holds what was read of a paragraph so far.
type paragraph struct {
	word  *wordReader
	text  []byte
	style style
	list  listRef
	level int // the heading level, if the paragraph states it itself
	boxes []block
}

// paragraph reads a paragraph and adds it, followed by the content of its text boxes.
func (w *wordReader) paragraph(r *partReader, add func(block)) error {
	p := &paragraph{word: w}
	err := p.readInline(r)
	add(p.block())
	for _, b := range p.boxes {
		add(b)
	}
	return err
}

// block returns the paragraph as Markdown.
func (p *paragraph) block() block {
	text := strings.Trim(strings.ToValidUTF8(string(p.text), "\uFFFD"), " \n")
	level, list := p.level, p.list
	if level == 0 {
		level = p.style.level
	}
	if list.id == "" {
		list = p.style.list
	}
	if text == "" {
		return block{}
	}
	before, ordinal := p.word.numbers.nextItem(list)
	switch {
	case level > 0:
		if ordinal != "" && ordinal != "-" {
			text = ordinal + " " + text
		}
		return block{text: strings.Repeat("#", min(level, 6)) + " " + strings.ReplaceAll(text, "\n", " ")}
	case ordinal != "":
		return block{text: before + ordinal + " " + text, item: true}
	}
	return block{text: text}
}

// readInline reads the text and links of a paragraph, or of a part of one.
func (p *paragraph) readInline(r *partReader) error {
	return r.eachChild(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "t":
			text, err := r.text()
			p.text = append(p.text, text...)
			return err
		case "tab", "ptab":
			p.text = append(p.text, '\t')
		case "br", "cr":
			p.text = append(p.text, '\n')
		case "noBreakHyphen":
			p.text = append(p.text, '-')
		case "footnoteReference", "endnoteReference":
			p.text = append(p.text, "[^"+notePrefix(e.Name.Local)+attribute(e, "id")+"]"...)
		case "docPr":
			if alt := strings.Join(strings.Fields(attribute(e, "descr")), " "); alt != "" {
				p.text = append(p.text, "[image: "+alt+"]"...)
			}
		case "pPr":
			return p.properties(r)
		case "hyperlink":
			return p.link(r, relatedPart(e, "id"))
		case "txbxContent":
			return p.word.blocks(r, func(b block) { p.boxes = append(p.boxes, b) })
		case "rPr", "delText", "instrText", "del", "moveFrom", "Fallback", "rt", "rubyPr", "sdtPr", "fldChar":
		default:
			return p.readInline(r)
		}
		return nil
	})
}

// properties reads a paragraph's style, heading level and list.
func (p *paragraph) properties(r *partReader) error {
	return r.eachChild(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "pStyle":
			p.style = p.word.resolveStyle(attribute(e, "val"))
		case "outlineLvl":
			p.level = outline(e)
		case "numPr":
			return p.list.read(r)
		}
		return nil
	})
}

// link reads a link's text, and writes it with the link's address. The id names the relation that
// contains the address.
func (p *paragraph) link(r *partReader, id string) error {
	from := len(p.text)
	err := p.readInline(r)
	text := string(p.text[from:])
	target := p.word.links[id].target
	switch scheme, _, _ := strings.Cut(target, ":"); scheme {
	case "http", "https", "mailto":
		if text != target && strings.TrimSpace(text) != "" && len(target) < 2000 {
			p.text = append(p.text[:from], "["+text+"]("+target+")"...)
		}
	}
	return err
}
