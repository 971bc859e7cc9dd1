package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// parseYAML parses the subset of YAML that docs/api.yaml uses: mappings and sequences in block style, and scalars of
// one line, with quoted ones in JSON. It refuses everything else.
func parseYAML(text string) (any, error) {
	p := &yamlReader{}
	for n, line := range strings.Split(text, "\n") {
		body := strings.TrimLeft(line, " ")
		if body == "" || strings.HasPrefix(body, "#") {
			continue
		}
		if strings.ContainsRune(body, '\t') || strings.HasSuffix(body, " ") {
			return nil, fmt.Errorf("line %d: a tab, or a space at the end", n+1)
		}
		p.lines = append(p.lines, yamlLine{n + 1, len(line) - len(body), body})
	}
	v, err := p.node(0)
	if err == nil && len(p.lines) > 0 {
		err = p.errorf("wrong indentation")
	}
	return v, err
}

type yamlLine struct {
	n, indent int
	body      string
}

type yamlReader struct{ lines []yamlLine }

func (p *yamlReader) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.lines[0].n, fmt.Sprintf(format, args...))
}

// at reports whether the next line has that indentation.
func (p *yamlReader) at(indent int) bool { return len(p.lines) > 0 && p.lines[0].indent == indent }

func (p *yamlReader) node(indent int) (any, error) {
	if !p.at(indent) {
		return nil, fmt.Errorf("no value where one is wanted, at indentation %d", indent)
	}
	if strings.HasPrefix(p.lines[0].body, "- ") {
		return p.sequence(indent)
	}
	return p.mapping(indent)
}

func (p *yamlReader) sequence(indent int) (any, error) {
	list := []any{}
	for p.at(indent) && strings.HasPrefix(p.lines[0].body, "- ") {
		item := strings.TrimPrefix(p.lines[0].body, "- ")
		if _, _, isMap := cutKey(item); isMap {
			// The item is a mapping whose first key follows the dash.
			p.lines[0].indent, p.lines[0].body = indent+2, item
			v, err := p.mapping(indent + 2)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
			continue
		}
		v, err := p.scalar(item)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		p.lines = p.lines[1:]
	}
	return list, nil
}

func (p *yamlReader) mapping(indent int) (any, error) {
	m := map[string]any{}
	for p.at(indent) {
		key, rest, ok := cutKey(p.lines[0].body)
		if !ok {
			return nil, p.errorf("no key")
		}
		if _, twice := m[key]; twice {
			return nil, p.errorf("key %q stands twice", key)
		}
		var v any
		var err error
		if rest != "" {
			v, err = p.scalar(rest)
			p.lines = p.lines[1:]
		} else {
			p.lines = p.lines[1:]
			v, err = p.node(indent + 2)
		}
		if err != nil {
			return nil, err
		}
		m[key] = v
	}
	return m, nil
}

// cutKey splits "key: rest" or "key:".
func cutKey(body string) (key, rest string, ok bool) {
	if strings.HasPrefix(body, `"`) {
		end := strings.Index(body[1:], `"`)
		if end < 0 {
			return "", "", false
		}
		key, rest = body[1:end+1], body[end+2:]
	} else if i := strings.Index(body+" ", ": "); i > 0 {
		key, rest = body[:i], body[i:]
	}
	if key == "" || !strings.HasPrefix(rest, ":") {
		return "", "", false
	}
	return key, strings.TrimPrefix(rest[1:], " "), true
}

func (p *yamlReader) scalar(s string) (any, error) {
	var v any
	switch s[0] {
	case '"', '[', '{':
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			return nil, p.errorf("%v", err)
		}
		return v, nil
	case '\'', '|', '>', '&', '*', '!', '%', '@', '`', ',', '?':
		return nil, p.errorf("quote what begins with %q", s[0])
	}
	if strings.Contains(s, ": ") || strings.Contains(s, " #") || strings.HasSuffix(s, ":") {
		return nil, p.errorf("quote what has a colon or a number sign")
	}
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null", "~", "y", "n", "yes", "no", "on", "off":
		return nil, p.errorf("quote %s", s)
	}
	if json.Unmarshal([]byte(s), &v) == nil { // a number
		return v, nil
	}
	return s, nil
}
