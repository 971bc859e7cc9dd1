package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"

	"parley/tools/plainjson"
)

const (
	// maxCutDepth limits how many levels deep Truncate looks into a value, because it reads each
	// level again from its beginning.
	maxCutDepth = 4
	// minMemberLength is the shortest length, in bytes, to which the members of an object are cut.
	// If they would have to be shorter, the whole object is cut as a text.
	minMemberLength = 48
	// tailMember is the member whose end is kept rather than its beginning, because errors are at
	// its end.
	tailMember = `"stderr"`
)

// Truncate shortens a result to at most most bytes, and reports whether it had to. file is the path
// of the file with the complete result, or "". A string is cut at its end, after a whole character,
// and a note says how much is left out; a string named stderr is cut at its beginning. An array
// keeps its first elements and ends with an object that counts them. An object keeps its short
// members, and its long ones are cut; if it has too many, it becomes {"_truncated_json": its
// beginning}. The same content always gives the same bytes. The result is valid JSON and UTF-8 and,
// if most is at least two, no longer than most. Content that is not JSON is treated as a string. JSON that is short
// enough stays as it is.
func Truncate(content json.RawMessage, most int, file string) (json.RawMessage, bool) {
	return Shorten(toValidJSON(content), most, file)
}

// AsJSON returns content as compact JSON in valid UTF-8. Content that is not JSON becomes a JSON
// string.
func AsJSON(content json.RawMessage) json.RawMessage { return compactJSON(toValidJSON(content)) }

// toValidJSON returns content as valid JSON and UTF-8. Content that is not JSON becomes a JSON
// string.
func toValidJSON(content json.RawMessage) json.RawMessage {
	if !utf8.Valid(content) {
		content = bytes.ToValidUTF8(content, []byte("\uFFFD"))
	}
	if !json.Valid(content) {
		content = quote(string(content))
	}
	return content
}

// Shorten is like Truncate, for content that is known to be valid JSON and UTF-8, such as that from
// Check and AsJSON.
func Shorten(content json.RawMessage, most int, file string) (json.RawMessage, bool) {
	if len(content) <= most {
		return content, false
	}
	c := truncator{where: file}
	return c.cutValue(compactJSON(content), max(most, len(`""`)), maxCutDepth, false), true
}

// compactJSON returns valid JSON without the white space outside its strings.
func compactJSON(raw json.RawMessage) json.RawMessage {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = closingQuote(raw, i)
		case ' ', '\t', '\r', '\n':
			var compact bytes.Buffer
			if err := json.Compact(&compact, raw); err != nil {
				return raw // it is valid, so this does not happen
			}
			return compact.Bytes()
		}
	}
	return raw
}

// quote returns a text as a JSON string.
func quote(s string) []byte {
	raw, err := plainjson.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return raw
}

// A truncator cuts one result; where is the path of the file that contains the whole result, for
// the note to the model; "" if there is none.
type truncator struct{ where string }

// cutValue cuts compact JSON to at most most bytes; most is at least two. tail says to keep the end
// of a string rather than its beginning.
func (c truncator) cutValue(raw []byte, most, depth int, tail bool) []byte {
	switch {
	case len(raw) <= most:
		return raw
	case raw[0] == '"':
		return c.cutText(raw, most, tail)
	case raw[0] == '[' && depth > 0:
		return c.cutArray(raw, most, depth-1)
	case raw[0] == '{' && depth > 0:
		return c.cutObject(raw, most, depth-1)
	}
	return c.cutAsText(raw, most)
}

// cutText cuts a string at its end, or at its beginning if tail is set, and says there how much was
// cut, if there is room for that.
func (c truncator) cutText(raw []byte, most int, tail bool) []byte {
	body := raw[1 : len(raw)-1]
	_, total := longestPart(body, len(body), 0, false)
	// The note's length depends on how much is kept, so reserve room for the longest.
	room, noted := most-len(`""`)-len(newlineIf(true))-len(c.cutNote(total, total)), true
	if room < 0 {
		room, noted = most-len(`""`), false
	}
	kept, own := longestPart(body, room, total, tail)
	note := ""
	if noted {
		note = c.cutNote(own, total)
	}
	if tail {
		return slices.Concat([]byte(`"`), []byte(note), []byte(newlineIf(noted)), kept, []byte(`"`))
	}
	return slices.Concat([]byte(`"`), kept, []byte(newlineIf(noted)), []byte(note), []byte(`"`))
}

// newlineIf returns the escaped line break between a text and its note; "" if there is no note.
func newlineIf(noted bool) string {
	if noted {
		return `\n`
	}
	return ""
}

// cutNote says how much of a text is left out; it is escaped for use within quotes.
func (c truncator) cutNote(kept, total int) string {
	whole := ""
	if c.where != "" {
		where := quote(c.where)
		whole = "; the whole is in " + string(where[1:len(where)-1]) + ", see it with read_file, offset and limit"
	}
	return fmt.Sprintf("[cut: %d of %d bytes shown%s]", kept, total, whole)
}

// longestPart returns the longest beginning of an escaped text, or its longest end if tail is set,
// that consists of whole characters and has at most room bytes. own is how many bytes that part has
// without escapes.
func longestPart(body []byte, room, total int, tail bool) (kept []byte, own int) {
	if tail {
		own = total
		start := 0
		for len(body)-start > room {
			step, n := measureCharacter(body[start:])
			start, own = start+step, own-n
		}
		return body[start:], own
	}
	end := 0
	for end < len(body) {
		if plain := bytes.IndexByte(body[end:min(len(body), end+max(room-end, 0))], '\\'); plain > 0 {
			end, own = end+plain, own+plain // characters that are not escapes
			continue
		} else if plain < 0 {
			n := wholeCharacters(body[end:], room-end)
			return body[:end+n], own + n
		}
		step, n := measureCharacter(body[end:])
		if end+step > room {
			break
		}
		end, own = end+step, own+n
	}
	return body[:end], own
}

// wholeCharacters returns how many of the first most bytes of a text belong to whole characters.
func wholeCharacters(text []byte, most int) int {
	if most >= len(text) {
		return len(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return max(most, 0)
}

// measureCharacter measures the first character of an escaped text: step is how many bytes it takes
// there (an escape or a pair of surrogates counts as one character), own how many it takes without
// escapes.
func measureCharacter(body []byte) (step, own int) {
	if c := body[0]; c != '\\' {
		if c < utf8.RuneSelf {
			return 1, 1
		}
		_, size := utf8.DecodeRune(body)
		return size, size
	}
	if body[1] != 'u' {
		return len(`\n`), 1
	}
	r := decodeEscape(body)
	if 0xD800 <= r && r < 0xDC00 && len(body) >= len(`\ud83d\ude00`) && body[6] == '\\' && body[7] == 'u' {
		if low := decodeEscape(body[6:]); 0xDC00 <= low && low < 0xE000 {
			return len(`\ud83d\ude00`), 4
		}
	}
	if own = utf8.RuneLen(r); own < 0 { // half a pair is read as U+FFFD
		own = 3
	}
	return len(`\u0000`), own
}

// decodeEscape returns the character for an escape such as \u00e4.
func decodeEscape(body []byte) rune {
	n, err := strconv.ParseUint(string(body[2:6]), 16, 32)
	if err != nil { // valid JSON has four digits there
		panic(err)
	}
	return rune(n)
}

// cutArray keeps the first elements and appends an object that counts them. If even the first
// element is too long, it cuts that.
func (c truncator) cutArray(raw []byte, most, depth int) []byte {
	total := 0
	for range elements(raw) {
		total++
	}
	room := most - len(`[,]`) - len(c.countObject(total, total))
	if room < 0 {
		return []byte("[]")
	}
	out := append(make([]byte, 0, most), '[')
	shown := 0
	for element := range elements(raw) {
		if len(element)+1 > room {
			if shown == 0 && room > minMemberLength {
				out = append(append(out, c.cutValue(element, room-1, depth, false)...), ',')
				shown = 1
			}
			break
		}
		out = append(append(out, element...), ',')
		room -= len(element) + 1
		shown++
	}
	return append(append(out, c.countObject(shown, total)...), ']')
}

// countObject returns the object that is put at the end of an array that was cut: it says how many
// elements are shown, and how many there are.
func (c truncator) countObject(shown, total int) []byte {
	where := ""
	if c.where != "" {
		where = `,"whole":` + string(quote(c.where))
	}
	return fmt.Appendf(nil, `{"_truncated":true,"shown":%d,"total":%d%s}`, shown, total, where)
}

// cutObject cuts the longest members of an object, all to the same length, so that the short ones
// stay whole: an exit code beside megabytes of output, for example. Anything nested more than depth
// levels is cut as text.
func (c truncator) cutObject(raw []byte, most, depth int) []byte {
	room := most - len(`{}`)
	var lengths []int
	for name, value := range members(raw) {
		room -= len(name) + len(`:,`)
		lengths = append(lengths, len(value))
		if room < 0 {
			return c.cutAsText(raw, most)
		}
	}
	longest := commonLength(lengths, room)
	if longest < minMemberLength {
		return c.cutAsText(raw, most)
	}
	out := append(make([]byte, 0, most), '{')
	for name, value := range members(raw) {
		out = append(append(out, name...), ':')
		out = append(append(out, c.cutValue(value, longest, depth, string(name) == tailMember)...), ',')
	}
	out[len(out)-1] = '}'
	return out
}

// commonLength returns the greatest length to which all of these lengths can be cut so that their
// sum is at most room. Shorter lengths stay as they are.
func commonLength(lengths []int, room int) int {
	slices.Sort(lengths)
	for i, length := range lengths {
		rest := len(lengths) - i
		if length > room/rest {
			return room / rest
		}
		room -= length
	}
	return room
}

// cutAsText keeps the beginning of a value that cannot be cut member by member, as a string.
func (c truncator) cutAsText(raw []byte, most int) []byte {
	const before, after = `{"_truncated_json":`, `}`
	room := most - len(before) - len(after)
	if room < len(`""`) {
		return []byte("{}")
	}
	return slices.Concat([]byte(before), c.cutValue(quote(string(raw)), room, 0, false), []byte(after))
}

// elements yields the elements of an array, which is valid compact JSON.
func elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := 1; i < len(raw)-1; {
			end := endOfValue(raw, i)
			if !yield(raw[i:end]) {
				return
			}
			i = end + len(`,`)
		}
	}
}

// members yields the name, in quotes, and the value of each member of an object, which is valid
// compact JSON.
func members(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := 1; i < len(raw)-1; {
			colon := endOfValue(raw, i)
			end := endOfValue(raw, colon+1)
			if !yield(raw[i:colon], raw[colon+1:end]) {
				return
			}
			i = end + len(`,`)
		}
	}
}

// Member returns the value of an object's member whose name needs no escapes; nil if there is none.
// The object is valid and compact JSON, such as that from Check and AsJSON.
func Member(object json.RawMessage, name string) json.RawMessage {
	if !bytes.HasPrefix(object, []byte("{")) {
		return nil
	}
	for quoted, value := range members(object) {
		if string(quoted[1:len(quoted)-1]) == name {
			return value
		}
	}
	return nil
}

// endOfValue returns the index after the value that begins at i, in valid compact JSON.
func endOfValue(raw []byte, i int) int {
	depth := 0
	for ; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = closingQuote(raw, i)
			if depth == 0 {
				return i + 1
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth == 0 {
				return i // the end of the array or object whose last element is a number or a word
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// closingQuote returns the index of the closing quote of the string whose opening quote is at i, in
// valid JSON.
func closingQuote(raw []byte, i int) int {
	for i++; i < len(raw); {
		quote := bytes.IndexByte(raw[i:], '"')
		if quote < 0 {
			break // valid JSON has one
		}
		for quote += i; i < quote; {
			escape := bytes.IndexByte(raw[i:quote], '\\')
			if escape < 0 {
				return quote
			}
			i += escape + len(`\"`) // skip the escaped character
		}
		if i == quote {
			return quote
		}
	}
	return len(raw) - 1
}
