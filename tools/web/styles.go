package web

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxRules bounds the rules that are kept of a page's own style sheets.
const maxRules = 1000

// A styleRule is a rule of a page's own style sheet for one kind of element.
type styleRule struct {
	tag, id string // "" is any
	classes []string
	weight  int
	style   look
}

// A styleSheet is what the style elements of a page say that may hide something,
// for selectors of a single element (p.note#first). Others, what holds only on some
// screens, and sheets from elsewhere are not looked at.
type styleSheet struct {
	rules map[string][]styleRule // by id ("#x"), else a class (".x"), else the tag
	size  int
}

// read adds the rules of one style element.
func (s *styleSheet) read(css string, selector *regexp.Regexp) {
	css = withoutComments(css)
	for s.size < maxRules {
		selectors, rest, ok := strings.Cut(css, "{")
		if !ok {
			return
		}
		end := closingBrace(rest)
		body := rest[:end]
		css = rest[min(end+1, len(rest)):]
		if strings.Contains(selectors, "@") || strings.Contains(body, "{") {
			continue
		}
		style := declarations(body)
		if !style.matters() {
			continue
		}
		for one := range strings.SplitSeq(selectors, ",") {
			s.add(selector.FindStringSubmatch(strings.TrimSpace(one)), style)
		}
	}
}

// closingBrace is where the block ends whose opening brace stands before.
func closingBrace(css string) int {
	depth := 1
	for i := range len(css) {
		switch css[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(css)
}

// compound is a selector of a single element: a tag, and ids and classes of it.
func compound() *regexp.Regexp {
	return regexp.MustCompile(`^(\*|[A-Za-z][A-Za-z0-9-]*)?((?:[.#][A-Za-z0-9_-]+)*)$`)
}

func (s *styleSheet) add(parts []string, style look) {
	if parts == nil || parts[0] == "" {
		return
	}
	rule := styleRule{tag: strings.ToLower(strings.Trim(parts[1], "*"))}
	if rule.tag != "" {
		rule.weight = 1
	}
	for part := range strings.SplitSeq(strings.NewReplacer(".", " .", "#", " #").Replace(parts[2]), " ") {
		if name, is := strings.CutPrefix(part, "#"); is {
			rule.id = name
			rule.weight += 10_000
		} else if name, is := strings.CutPrefix(part, "."); is {
			rule.classes = append(rule.classes, name)
			rule.weight += 100
		}
	}
	key := rule.tag
	if len(rule.classes) > 0 {
		key = "." + rule.classes[0]
	}
	if rule.id != "" {
		key = "#" + rule.id
	}
	for _, known := range s.rules[key] {
		if known.weight == rule.weight && known.tag == rule.tag && known.id == rule.id && slices.Equal(known.classes, rule.classes) {
			maps.Copy(known.style, style)
			return
		}
	}
	rule.style = maps.Clone(style)
	s.rules[key] = append(s.rules[key], rule)
	s.size++
}

// matters tells whether a rule says anything that may hide or show.
func (l look) matters() bool {
	for name := range l {
		switch name {
		case "display", "visibility", "content-visibility", "opacity", "font-size", "width", "height", "max-width", "max-height",
			"overflow", "overflow-x", "overflow-y", "transform", "text-indent", "margin-left", "margin-top", "position",
			"left", "top", "right", "bottom", "clip", "clip-path", "color", "background", "background-color":
			return true
		}
	}
	return false
}

// of is the look of an element: its rules by their weight, then its own style.
func (s *styleSheet) of(n *html.Node) look {
	id, classes, own := "", []string(nil), ""
	for _, a := range n.Attr {
		switch a.Key {
		case "id":
			id = a.Val
		case "class":
			classes = strings.Fields(a.Val)
		case "style":
			own = a.Val
		}
	}
	keys := make([]string, 0, len(classes)+3)
	keys = append(keys, "", n.Data)
	for _, class := range classes {
		keys = append(keys, "."+class)
	}
	if id != "" {
		keys = append(keys, "#"+id)
	}
	var rules []styleRule
	for _, key := range keys {
		for _, rule := range s.rules[key] {
			if (rule.tag == "" || rule.tag == n.Data) && (rule.id == "" || rule.id == id) &&
				!slices.ContainsFunc(rule.classes, func(c string) bool { return !slices.Contains(classes, c) }) {
				rules = append(rules, rule)
			}
		}
	}
	slices.SortStableFunc(rules, func(a, b styleRule) int { return a.weight - b.weight })
	style := look{}
	for _, rule := range rules {
		maps.Copy(style, rule.style)
	}
	maps.Copy(style, declarations(own))
	return style
}
