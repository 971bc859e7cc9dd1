package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxArgsDepth bounds how many levels deep arguments may be nested.
const maxArgsDepth = 64

// Reasons why the arguments of a call cannot be read, worded for the model.
var (
	errTooNested = errors.New("the arguments are nested too deep")
	errCutOff    = errors.New("the arguments were cut off, so nothing was done: send the whole call again, in smaller pieces if it is long")
	errEscapes   = errors.New(`a text contains backslashes that can be read in two ways: write each backslash that is meant as one twice (\\)`)
)

// readArgs parses the arguments that a model wrote into a JSON value. The notes say what readArgs
// had to repair. An empty text counts as no arguments.
func readArgs(raw json.RawMessage) (value any, notes []string, err error) {
	if !utf8.Valid(raw) {
		return nil, nil, errors.New("the arguments are not valid UTF-8")
	}
	text := string(raw)
	for range 3 { // some models encode the arguments twice; more is nonsense
		text = strings.TrimSpace(text)
		if text == "" || text == "null" {
			return map[string]any{}, notes, nil
		}
		value, notes, err = parseOrRepair(text, notes)
		if err != nil {
			return nil, nil, err
		}
		inner, ok := value.(string)
		if !ok {
			return value, notes, nil
		}
		text = inner
		notes = append(notes, "the arguments were JSON within a text")
	}
	return nil, nil, errors.New("the arguments must be one JSON object, not a text")
}

// parseOrRepair parses a text as JSON. If that fails, it repairs the text first and adds to the
// notes what it repaired.
func parseOrRepair(text string, notes []string) (any, []string, error) {
	value, err := parse([]byte(text), maxArgsDepth)
	if err == nil || errors.Is(err, errTooNested) {
		return value, notes, err
	}
	if inner, ok := unfence(text); ok {
		text = inner
		notes = append(notes, "the Markdown fence was taken off")
	}
	mended, more, mendErr := repairArgs(text)
	if mendErr != nil {
		return nil, nil, mendErr
	}
	value, err = parse([]byte(mended), maxArgsDepth)
	if err != nil {
		return nil, nil, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	return value, append(notes, more...), nil
}

// unfence returns the text inside a Markdown code fence. It returns false if the fence doesn't
// enclose the whole text.
func unfence(text string) (string, bool) {
	const fence = "```"
	first, rest, ok := strings.Cut(text, "\n")
	info, fenced := strings.CutPrefix(first, fence)
	body, closed := strings.CutSuffix(rest, fence)
	if info = strings.TrimSpace(info); !ok || !fenced || !closed || info != "" && !strings.EqualFold(info, "json") {
		return "", false
	}
	return strings.TrimSpace(body), true
}

// repairArgs repairs mistakes that can mean only one thing: raw line ends and tabs in strings, commas before a closing
// bracket, and backslashes that begin no escape, which are kept as backslashes. It refuses a text that was cut off,
// because the missing end may matter.
func repairArgs(text string) (mended string, notes []string, err error) {
	m := argsRepairer{text: text}
	m.out.Grow(len(text) + 16)
	for i := 0; i < len(text); {
		if m.inText {
			i = m.copyInsideText(i)
		} else {
			i = m.copyOutsideText(i)
		}
	}
	switch {
	case m.inText || m.depth > 0 || strings.HasPrefix(text, "```"):
		return "", nil, errCutOff
	case m.ambiguous:
		return "", nil, errEscapes
	}
	if m.commas {
		notes = append(notes, "commas before a closing bracket were dropped")
	}
	if m.controls {
		notes = append(notes, "raw control characters in a text were escaped")
	}
	if m.slashes {
		notes = append(notes, "single backslashes in a text were taken as they stand")
	}
	return m.out.String(), notes, nil
}

// An argsRepairer copies the arguments of a call to out, one character at a time, and repairs mistakes on the way.
type argsRepairer struct {
	text   string
	out    strings.Builder
	depth  int  // how many brackets are open
	inText bool // the next byte is inside quotes
	// hasEscape says that the current string contains an escape that could also mean a backslash and a letter;
	// hasBareBackslash says that it contains a backslash that cannot begin an escape. If it contains both, the meaning
	// of the escape is ambiguous.
	hasEscape, hasBareBackslash bool

	commas, controls, slashes, ambiguous bool // which mistakes were repaired or found so far: commas, line ends and tabs, backslashes, and strings whose backslashes can be read in two ways
}

// copyOutsideText copies the byte at i, which is outside quotes, and returns the index of the next
// byte.
func (m *argsRepairer) copyOutsideText(i int) int {
	c := m.text[i]
	switch c {
	case '"':
		m.inText, m.hasEscape, m.hasBareBackslash = true, false, false
	case '{', '[':
		m.depth++
	case '}', ']':
		m.depth--
	case ',':
		if rest := strings.TrimLeft(m.text[i+1:min(len(m.text), i+1+maxBlank)], " \t\r\n"); rest != "" && (rest[0] == '}' || rest[0] == ']') {
			m.commas = true
			return i + 1
		}
	}
	m.out.WriteByte(c)
	return i + 1
}

// maxBlank limits how many bytes of white space after a comma are searched for a closing bracket,
// so that many commas with much white space don't take long.
const maxBlank = 1024

// copyInsideText copies the character at i, which is inside quotes, and returns the index of the
// next character.
func (m *argsRepairer) copyInsideText(i int) int {
	c := m.text[i]
	switch {
	case c == '"':
		m.inText = false
		m.ambiguous = m.ambiguous || m.hasEscape && m.hasBareBackslash
	case c == '\\' && i+1 < len(m.text):
		return m.copyEscape(i)
	case c < 0x20:
		m.controls = true
		quotedByte := strconv.Quote(string(rune(c)))
		if strings.HasPrefix(quotedByte, `"\x`) || c == '\a' || c == '\v' {
			fmt.Fprintf(&m.out, `\u%04x`, c)
		} else {
			m.out.WriteString(strings.Trim(quotedByte, `"`))
		}
		return i + 1
	}
	m.out.WriteByte(c)
	return i + 1
}

// copyEscape copies the escape that begins with the backslash at i, or doubles the backslash if it
// begins no escape. It returns the index after it.
func (m *argsRepairer) copyEscape(i int) int {
	next := m.text[i+1]
	switch {
	case next == '"' || next == '\\' || next == '/':
	case strings.IndexByte("bfnrt", next) >= 0, next == 'u' && startsWithFourHex(m.text[i+2:]):
		m.hasEscape = true
	default:
		m.hasBareBackslash, m.slashes = true, true
		m.out.WriteString(`\\`)
		return i + 1
	}
	m.out.WriteString(m.text[i : i+2])
	return i + 2
}

// startsWithFourHex reports whether s begins with four hexadecimal digits, as must follow a \u.
func startsWithFourHex(s string) bool {
	if len(s) < 4 {
		return false
	}
	_, err := strconv.ParseUint(s[:4], 16, 16)
	return err == nil
}

// parse reads one JSON value into a tree of Go values and keeps numbers as they were written. It
// refuses values nested deeper than depth, numbers so large that exact arithmetic would be slow,
// and objects in which a name occurs twice, because the checks might read one of the two values and
// the tool the other.
func parse(raw []byte, depth int) (any, error) {
	p := parser{dec: json.NewDecoder(strings.NewReader(string(raw)))}
	p.dec.UseNumber()
	value, err := p.parseValue(depth)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return value, nil
}

// A parser reads JSON values from a decoder token by token, to apply the checks of parse.
type parser struct{ dec *json.Decoder }

func (p *parser) parseValue(depth int) (any, error) {
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == 0 {
			return nil, errTooNested
		}
		if t == '[' {
			return p.parseArray(depth - 1)
		}
		return p.parseObject(depth - 1)
	case json.Number:
		return t, checkNumber(t)
	}
	return token, nil
}

func (p *parser) parseArray(depth int) (any, error) {
	list := []any{}
	for p.dec.More() {
		item, err := p.parseValue(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	_, err := p.dec.Token()
	return list, err
}

func (p *parser) parseObject(depth int) (any, error) {
	object := map[string]any{}
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok { // the decoder never returns this
			return nil, errors.New("a name must be a text")
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%q is given twice", Clip(name, 64))
		}
		if object[name], err = p.parseValue(depth); err != nil {
			return nil, err
		}
	}
	_, err := p.dec.Token()
	return object, err
}

// checkNumber refuses a number that is too long or whose exponent is too large.
func checkNumber(n json.Number) error {
	const maxExponent, maxDigits = 400, 400
	_, exponent, found := strings.Cut(strings.ToLower(n.String()), "e")
	if found {
		if e, err := strconv.Atoi(exponent); err != nil || e > maxExponent || e < -maxExponent {
			return errors.New("a number is out of range")
		}
	}
	if len(n) > maxDigits {
		return errors.New("a number is too long")
	}
	return nil
}
