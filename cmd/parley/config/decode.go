package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A decoder converts a value from the file or the environment into the type of its setting.
type decoder struct {
	set     *setting
	key     string // the key as it is written, for the remedy
	x       *expander
	literal bool // whether the file itself holds a secret, rather than a reference to one
}

// typeInWords returns the type of a TOML value in words.
func typeInWords(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case int64:
		return "an integer"
	case float64:
		return "a number with a fraction"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// wrongType returns the fault of a value of the wrong type.
func (d *decoder) wrongType(want string, v any) *fault {
	return &fault{wrong: "wants " + want + ", found " + typeInWords(v), remedy: d.exampleRemedy()}
}

// exampleRemedy returns a remedy that shows an example of the setting.
func (d *decoder) exampleRemedy() string {
	if d.set.key == "" {
		return "write for example " + d.key + " = " + d.set.exampleValue()
	}
	return "write for example " + d.set.key[strings.LastIndexByte(d.set.key, '.')+1:] + " = " + d.set.exampleValue()
}

func (d *decoder) decode(v any) (any, *fault) {
	switch d.set.kind {
	case asCount:
		return d.count(v)
	case asMoney:
		return d.money(v)
	case asTruth:
		yes, ok := v.(bool)
		if !ok {
			return nil, d.wrongType("true or false", v)
		}
		return yes, nil
	case asTexts, asPaths, asPeople:
		return d.list(v)
	case asPlaces:
		return d.places(v)
	case asChats:
		return d.chats(v)
	case asRoutes:
		return d.routes(v)
	case asAgentRoutes:
		return d.agentRoutes(v)
	case asOpaque:
		if _, ok := v.(map[string]any); !ok {
			return nil, d.wrongType("a table", v)
		}
		return hidden, nil
	case asText, asPath, asURL, asListen, asDuration:
		s, f := d.text(v)
		if f != nil {
			return nil, f
		}
		return d.scalar(s, v.(string))
	}
	panic("a kind of setting without a decoder")
}

// text decodes a string and replaces the references in it, such as ${VAR}, by what they refer to.
func (d *decoder) text(v any) (string, *fault) {
	s, ok := v.(string)
	if !ok {
		return "", d.wrongType("a text in quotes", v)
	}
	whole, own, f := d.x.expand(s)
	if f != nil {
		return "", f
	}
	if d.set.secret && d.set.kind == asTexts { // NAME=VALUE
		d.literal = d.literal || !d.x.verbatim && len(secretIn(own)) > 0
		return whole, nil
	}
	if d.set.secret {
		d.literal = d.literal || own != "" && !d.x.verbatim
		return whole, d.secret(whole)
	}
	if d.set.kind == asURL && !d.x.verbatim {
		u, err := url.Parse(own)
		d.literal = d.literal || err == nil && hasPassword(u)
	}
	return whole, nil
}

// secret returns a fault if a text cannot be a key or a token; otherwise nil.
func (d *decoder) secret(s string) *fault {
	if s == "" && !d.set.mayBeEmpty {
		return &fault{wrong: "is empty", remedy: "give it a value, or remove the line"}
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		return &fault{wrong: "holds a space, a line break or a character that no key or token has", remedy: "leave nothing in it but the secret"}
	}
	return nil
}

// scalar decodes a single value from its text s, in which references are replaced already.
// written is the text as it stands in the file; only that may be repeated in a message, because s
// may hold a secret.
func (d *decoder) scalar(s, written string) (any, *fault) {
	switch d.set.kind {
	case asPath:
		if s == "" {
			return nil, &fault{wrong: "is empty", remedy: d.exampleRemedy()}
		}
		return d.path(s), nil
	case asURL:
		return d.url(s)
	case asListen:
		if s == "" {
			return s, nil
		}
		_, port, err := net.SplitHostPort(s)
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 {
			return nil, &fault{wrong: fmt.Sprintf("%q is not HOST:PORT", written), remedy: d.exampleRemedy() + `, or "" for off`}
		}
		return s, nil
	case asDuration:
		return d.duration(s, written)
	default:
		if d.set.oneOf != nil && !slices.Contains(d.set.words(), s) {
			return nil, &fault{wrong: fmt.Sprintf("unknown value %q", written), remedy: oneOf(s, d.set.words())}
		}
		return s, nil
	}
}

// url checks a URL. As the URL may hold a password, no message repeats it.
func (d *decoder) url(s string) (any, *fault) {
	if !d.set.mayOmitHost() {
		s = strings.TrimRight(s, "/")
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" && !d.set.mayOmitHost() || !slices.Contains(d.set.schemes, u.Scheme) {
		return nil, &fault{wrong: "not an address that begins with " + strings.Join(d.set.schemes, ":// or ") + "://", remedy: d.exampleRemedy()}
	}
	if strings.HasPrefix(u.Scheme, "http") && (u.User != nil || d.hasForeignParameters(u) || u.Fragment != "") {
		// Clients put the addresses that they ask into their errors, and paths are added to these.
		return nil, &fault{wrong: "holds a name, a password or parameters, which would show in logs", remedy: "write the address alone"}
	}
	return s, nil
}

// hasForeignParameters reports whether a URL has query parameters that the setting does not
// allow.
func (d *decoder) hasForeignParameters(u *url.URL) bool {
	for name := range u.Query() {
		if !slices.Contains(d.set.parameters, name) {
			return true
		}
	}
	return u.RawQuery != "" && len(u.Query()) == 0 // it cannot be read
}

func (d *decoder) duration(s, written string) (any, *fault) {
	took, ok := parseDuration(s)
	if !ok {
		return nil, &fault{wrong: fmt.Sprintf("%q is not a duration", written), remedy: d.exampleRemedy()}
	}
	if int64(took) < d.set.least {
		return nil, d.tooSmall(strconv.Quote(time.Duration(d.set.least).String()))
	}
	return took, nil
}

// parseDuration parses a duration as Go writes it, with days in front if there are any: "2d" or
// "1d12h". It returns false if s is none.
func parseDuration(s string) (time.Duration, bool) {
	days, rest, ok := strings.Cut(s, "d")
	if !ok {
		took, err := time.ParseDuration(s)
		return took, err == nil
	}
	n, err := strconv.ParseFloat(days, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 36500 {
		return 0, false
	}
	took := time.Duration(n * float64(24*time.Hour))
	if rest == "" {
		return took, true
	}
	more, err := time.ParseDuration(rest)
	return took + more, err == nil && more >= 0 && took+more >= took
}

// tooSmall returns the fault of a number below the smallest one that the setting allows. It also
// says what 0 means: never unlimited, and with zeroIsOff "none".
func (d *decoder) tooSmall(least string) *fault {
	return &fault{wrong: "too small: the smallest is " + least, remedy: "leave it out for the default; nothing means unlimited"}
}

func (d *decoder) count(v any) (any, *fault) {
	n, ok := v.(int64)
	if !ok {
		return nil, d.wrongType("an integer", v)
	}
	if n < d.set.least {
		return nil, d.tooSmall(strconv.FormatInt(d.set.least, 10))
	}
	// What is not large fits an int of 32 bits, which some machines have.
	if n > math.MaxInt32 && !d.set.large {
		return nil, &fault{wrong: "too large: the largest is " + strconv.Itoa(math.MaxInt32), remedy: "write a smaller one"}
	}
	return n, nil
}

// money decodes dollars into micro-dollars, which are millionths.
func (d *decoder) money(v any) (any, *fault) {
	var dollars float64
	switch n := v.(type) {
	case int64:
		dollars = float64(n)
	case float64:
		dollars = n
	default:
		return nil, d.wrongType("dollars, like 2 or 2.0", v)
	}
	if math.IsNaN(dollars) || dollars > 1e9 {
		return nil, &fault{wrong: "too large: the largest is 1000000000", remedy: "write a smaller one"}
	}
	micro := int64(math.Round(max(dollars, -1) * 1e6))
	if micro < d.set.least {
		return nil, d.tooSmall(dollarsOf(d.set.least))
	}
	return micro, nil
}

// dollarsOf formats micro-dollars as dollars.
func dollarsOf(micro int64) string {
	s := fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6)
	s = strings.TrimRight(s, "0")
	if strings.HasSuffix(s, ".") {
		s += "0"
	}
	return s
}

// list decodes a list of texts, paths or people.
func (d *decoder) list(v any) (any, *fault) {
	items, ok := v.([]any)
	if !ok {
		return nil, d.wrongType("a list", v)
	}
	list := []string{}
	for i, item := range items {
		if n, ok := item.(int64); ok && d.set.kind == asPeople {
			item = strconv.FormatInt(n, 10)
		}
		s, f := d.text(item)
		if f == nil && d.set.oneOf != nil && !slices.Contains(d.set.words(), s) {
			f = &fault{wrong: fmt.Sprintf("unknown value %q", item), remedy: oneOf(s, d.set.words())}
		}
		if f == nil && s == "" {
			f = &fault{wrong: "an empty text in the list", remedy: "remove it"}
		}
		if f != nil {
			f.index = i + 1
			return nil, f
		}
		if d.set.kind == asPaths {
			s = d.path(s)
		}
		list = append(list, s)
	}
	return list, nil
}

// path makes a path absolute; a relative one begins at the folder of the configuration file.
func (d *decoder) path(s string) string {
	if !filepath.IsAbs(s) {
		s = filepath.Join(d.x.l.folder, s)
	}
	return filepath.Clean(s)
}

// places decodes a list of targets and addresses. Whether they exist is checked later, when all
// channels are known.
func (d *decoder) places(v any) (any, *fault) {
	if s, ok := v.(string); ok && d.set.key != "" {
		v = []any{s}
	}
	list, f := d.list(v)
	if f != nil {
		return nil, f
	}
	places := list.([]string)
	if len(places) == 0 {
		return nil, &fault{wrong: "names no place", remedy: d.exampleRemedy()}
	}
	return places, nil
}
