package office

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// A listRef says which list a paragraph belongs to, and at which level.
type listRef struct {
	id    string // "" and "0" mean none
	level int
}

func (l *listRef) read(r *partReader) error {
	return r.eachChild(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "numId":
			l.id = attribute(e, "val")
		case "ilvl":
			l.level = min(number(attribute(e, "val")), maxLevel-1)
		}
		return nil
	})
}

// maxLevel is how many levels a list has, according to the standard.
const maxLevel = 9

// A level says how the items at one level of a list are numbered.
type level struct {
	format string // "bullet", "decimal", …
	text   string // "%1.%2."
	start  int
}

// A numbering holds all lists of a document.
type numbering struct {
	kinds  map[string]*[maxLevel]level
	lists  map[string]string // the kind of each list
	counts map[string]*[maxLevel]int
}

func (n *numbering) read(r *partReader) error {
	n.kinds, n.lists = map[string]*[maxLevel]level{}, map[string]string{}
	return r.walk(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "abstractNum":
			kind := &[maxLevel]level{}
			n.kinds[attribute(e, "abstractNumId")] = kind
			return readLevels(r, kind)
		case "num":
			id := attribute(e, "numId")
			return r.eachChild(func(e xml.StartElement) error {
				if e.Name.Local == "abstractNumId" {
					n.lists[id] = attribute(e, "val")
				}
				return nil
			})
		}
		return nil
	})
}

func readLevels(r *partReader, kind *[maxLevel]level) error {
	return r.eachChild(func(e xml.StartElement) error {
		if e.Name.Local != "lvl" {
			return nil
		}
		l := level{start: 1}
		at := number(attribute(e, "ilvl"))
		err := r.eachChild(func(e xml.StartElement) error {
			switch e.Name.Local {
			case "start":
				l.start = number(attribute(e, "val"))
			case "numFmt":
				l.format = attribute(e, "val")
			case "lvlText":
				l.text = attribute(e, "val")
			}
			return nil
		})
		if at < maxLevel {
			kind[at] = l
		}
		return err
	})
}

// nextItem counts the next item of a list and returns the text that precedes it: the indent, and its number or a
// dash; "" and "" if there is no such list.
func (n *numbering) nextItem(ref listRef) (before, ordinal string) {
	kind := n.kinds[n.lists[ref.id]]
	if ref.id == "" || ref.id == "0" || kind == nil {
		return "", ""
	}
	before = strings.Repeat("  ", ref.level)
	l := kind[ref.level]
	if l.format == "bullet" || l.format == "none" || l.format == "" {
		return before, "-"
	}
	if n.counts == nil {
		n.counts = map[string]*[maxLevel]int{}
	}
	counts := n.counts[n.lists[ref.id]]
	if counts == nil {
		counts = &[maxLevel]int{}
		n.counts[n.lists[ref.id]] = counts
	}
	counts[ref.level]++
	for deeper := ref.level + 1; deeper < maxLevel; deeper++ {
		counts[deeper] = 0
	}
	text := l.text
	if text == "" {
		text = "%" + strconv.Itoa(ref.level+1) + "."
	}
	for i := range ref.level + 1 {
		at := kind[i].start + max(counts[i], 1) - 1
		text = strings.ReplaceAll(text, "%"+strconv.Itoa(i+1), ordinalOf(at, kind[i].format))
	}
	return before, text
}

// ordinalOf writes a number in a list's format, and as digits if it does not know that format.
func ordinalOf(n int, format string) string {
	switch format {
	case "lowerLetter", "upperLetter":
		if n < 1 || n > 26*20 {
			break
		}
		text := strings.Repeat(string(rune('a'+(n-1)%26)), (n-1)/26+1)
		if format == "upperLetter" {
			text = strings.ToUpper(text)
		}
		return text
	case "lowerRoman":
		return strings.ToLower(roman(n))
	case "upperRoman":
		return roman(n)
	}
	return strconv.Itoa(n)
}

func roman(n int) string {
	if n < 1 || n > 4000 {
		return strconv.Itoa(n)
	}
	var out strings.Builder
	for _, d := range []struct {
		value int
		text  string
	}{
		{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
	} {
		for ; n >= d.value; n -= d.value {
			out.WriteString(d.text)
		}
	}
	return out.String()
}

// number parses a number from a file; 0 if it is invalid.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}
