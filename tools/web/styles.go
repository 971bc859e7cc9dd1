package web

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

const (
	// maxRules limits how many rules of a page's own style sheets are kept.
	maxRules = 5000
	// maxStyleSteps limits the work for a page's styles, in steps: each selector that is read, and
	// each rule that is compared with an element, takes one step plus one for each of its
	// properties.
	maxStyleSteps = 5_000_000
)

// A styleRule is a rule of a page's own style sheet for one kind of element.
type styleRule struct {
	tag, id   string // "" matches any
	classes   []string
	weight    int
	order     int // if two rules have the same weight, the later one wins
	style     visibilityStyles
	ownsStyle bool // only this rule uses the style, so it may be changed
}

// A styleSheet holds the rules in a page's style elements that may hide something, for selectors of
// a single element (p.note#first). It ignores other selectors, rules for certain screens only, and
// external style sheets.
type styleSheet struct {
	rules      map[string][]*styleRule // by id ("#x"), or else by a class (".x"), or else by the tag
	bySelector map[string]*styleRule   // by the whole selector
	workLeft   int                     // how much work is left; once it is used up, it is unknown which elements are hidden
}

func newStyleSheet() styleSheet {
	return styleSheet{rules: map[string][]*styleRule{}, bySelector: map[string]*styleRule{}, workLeft: maxStyleSteps}
}

// read adds the rules of one style element, until ctx ends.
func (s *styleSheet) read(ctx context.Context, css string, selector *regexp.Regexp) {
	css = withoutComments(css)
	for ctx.Err() == nil {
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
		if len(style) == 0 {
			continue
		}
		for one := range strings.SplitSeq(selectors, ",") {
			if s.workLeft -= 1 + len(style); s.workLeft < 0 || len(s.bySelector) >= maxRules {
				return
			}
			s.add(selector.FindStringSubmatch(strings.TrimSpace(one)), style)
		}
	}
}

// closingBrace returns the index of the brace that closes a block; css begins after the opening
// brace.
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

// compoundSelector returns a regular expression for a selector of a single element: a tag, with
// ids and classes.
func compoundSelector() *regexp.Regexp {
	return regexp.MustCompile(`^(\*|[A-Za-z][A-Za-z0-9-]*)?((?:[.#][A-Za-z0-9_-]+)*)$`)
}

// add adds the rule for one selector, given as the parts that compoundSelector matched; it ignores a selector that
// didn't match, or is empty.
func (s *styleSheet) add(parts []string, style visibilityStyles) {
	if parts == nil || parts[0] == "" {
		return
	}
	tag, rest := strings.ToLower(strings.Trim(parts[1], "*")), parts[2]
	whole := tag + rest
	if known := s.bySelector[whole]; known != nil {
		if !known.ownsStyle {
			known.style, known.ownsStyle = maps.Clone(known.style), true
		}
		maps.Copy(known.style, style)
		return
	}
	rule := &styleRule{tag: tag, order: len(s.bySelector), style: style}
	if tag != "" {
		rule.weight = 1
	}
	for rest != "" {
		end := strings.IndexAny(rest[1:], ".#") + 1
		if end == 0 {
			end = len(rest)
		}
		if name := rest[1:end]; rest[0] == '#' {
			rule.id = name
			rule.weight += 10_000
		} else {
			rule.classes = append(rule.classes, name)
			rule.weight += 100
		}
		rest = rest[end:]
	}
	key := rule.tag
	if len(rule.classes) > 0 {
		key = "." + rule.classes[0]
	}
	if rule.id != "" {
		key = "#" + rule.id
	}
	s.bySelector[whole] = rule
	s.rules[key] = append(s.rules[key], rule)
}

// styleOf returns what CSS says about an element: its rules, among which those with more weight
// win, and its own style attribute. It returns nil once the work for styles is used up.
func (s *styleSheet) styleOf(n *html.Node) visibilityStyles {
	id, own := "", ""
	keys := map[string]bool{"": true, n.Data: true}
	for _, a := range n.Attr {
		switch a.Key {
		case "id":
			id = a.Val
			keys["#"+id] = true
		case "class":
			for class := range strings.FieldsSeq(a.Val) {
				keys["."+class] = true
			}
		case "style":
			own = a.Val
		}
	}
	lacks := func(class string) bool { return !keys["."+class] }
	var rules []*styleRule
	for key := range keys {
		for _, rule := range s.rules[key] {
			if s.workLeft -= 1 + len(rule.classes) + len(rule.style); s.workLeft < 0 {
				return nil
			}
			if (rule.tag == "" || rule.tag == n.Data) && (rule.id == "" || rule.id == id) && !slices.ContainsFunc(rule.classes, lacks) {
				rules = append(rules, rule)
			}
		}
	}
	slices.SortFunc(rules, func(a, b *styleRule) int { return cmp.Or(a.weight-b.weight, a.order-b.order) })
	style := visibilityStyles{}
	for _, rule := range rules {
		maps.Copy(style, rule.style)
	}
	maps.Copy(style, declarations(own))
	return style
}
