package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Basic is one of the kinds that settings of any program have.
type Basic int

// These are the basic kinds. The type of the decoded value is in parentheses.
const (
	Text     Basic = iota // a string (string)
	Path                  // a path, relative to the file's folder (string)
	URL                   // a URL of one of the setting's schemes (string)
	Listen                // HOST:PORT, or "" for off (string)
	Duration              // a string like "10s" or "2d" (time.Duration)
	Count                 // an integer (int64)
	Truth                 // true or false (bool)
	Money                 // dollars: 2 or 2.0 (int64, in micro-dollars)
	Texts                 // a list of strings ([]string)
	Paths                 // a list of paths, each relative to the file's folder ([]string)
	IDs                   // a list of strings or integers ([]string)
	Opaque                // a table that is accepted unchecked, because only a later release reads it
)

// Decode converts a value to the kind's type.
func (k Basic) Decode(d *Decoder, v any) (any, *Fault) {
	switch k {
	case Count:
		return d.count(v)
	case Money:
		return d.money(v)
	case Truth:
		return typed[bool](d, "true or false", v)
	case Texts:
		return d.Texts(v)
	case IDs:
		return d.list(v, d.ID)
	case Paths:
		return d.list(v, d.pathItem)
	case Opaque:
		_, f := typed[map[string]any](d, "a table", v)
		return hidden, f
	}
	s, f := d.Text(v)
	if f != nil {
		return nil, f
	}
	return k.scalar(d, s, v.(string))
}

// Show converts a decoded value to a JSON type.
func (k Basic) Show(v any) any {
	switch x := v.(type) {
	case time.Duration:
		if hours := x / time.Hour; hours > 0 && x%time.Hour == 0 {
			return fmt.Sprintf("%dh", hours) // instead of 24h0m0s
		}
		return x.String()
	case int64:
		if k == Money {
			return json.Number(dollarsOf(x))
		}
	case string:
		if k == URL {
			return withoutPassword(x)
		}
	}
	return v
}

// typed returns a value that must already be a T.
func typed[T any](d *Decoder, want string, v any) (T, *Fault) {
	t, ok := v.(T)
	if !ok {
		return t, d.WrongType(want, v)
	}
	return t, nil
}

// scalar decodes a single value from its text s, in which references were already replaced. written
// is the text as it is in the file; only that may be repeated in a message, because s may contain a
// secret.
func (k Basic) scalar(d *Decoder, s, written string) (any, *Fault) {
	switch k {
	case Path:
		if s == "" {
			return nil, &Fault{Wrong: "is empty", Remedy: d.Example()}
		}
		return d.path(s), nil
	case URL:
		return d.url(s)
	case Listen:
		if s == "" {
			return s, nil
		}
		_, port, err := net.SplitHostPort(s)
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 {
			return nil, &Fault{Wrong: fmt.Sprintf("%q isn't HOST:PORT", written), Remedy: d.Example() + `, or "" for off`}
		}
		return s, nil
	case Duration:
		return d.duration(s, written)
	}
	if d.set.OneOf != nil && !slices.Contains(d.set.OneOf, s) {
		return nil, &Fault{Wrong: fmt.Sprintf("unknown value %q", written), Remedy: OneOf(s, d.set.OneOf)}
	}
	return s, nil
}

// path makes a path absolute and clean.
func (d *Decoder) path(s string) string { return filepath.Clean(d.x.lookup.path(s)) }

// pathItem decodes a path in a list.
func (d *Decoder) pathItem(v any) (string, *Fault) {
	s, f := d.Text(v)
	if f != nil || s == "" { // an empty path is refused
		return s, f
	}
	return d.path(s), nil
}

// url checks a URL. Because the URL may contain a password, no message repeats it.
func (d *Decoder) url(s string) (any, *Fault) {
	if !d.set.mayOmitHost() {
		s = strings.TrimRight(s, "/")
	}
	if d.set.Check != nil {
		if f := d.set.Check(s); f != nil {
			return nil, f
		}
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" && !d.set.mayOmitHost() || !slices.Contains(d.set.Schemes, u.Scheme) {
		return nil, &Fault{Wrong: "not an address that begins with " + strings.Join(d.set.Schemes, ":// or ") + "://", Remedy: d.Example()}
	}
	if strings.HasPrefix(u.Scheme, "http") && (u.User != nil || d.hasForeignParameters(u) || u.Fragment != "") {
		// Clients include the requested address in their errors, and paths are appended to this
		// one.
		return nil, &Fault{Wrong: "contains a name, a password or parameters, which logs would show", Remedy: "write only the address"}
	}
	return s, nil
}

// hasForeignParameters reports whether a URL contains query parameters that the setting doesn't
// allow.
func (d *Decoder) hasForeignParameters(u *url.URL) bool {
	for name := range u.Query() {
		if !slices.Contains(d.set.Parameters, name) {
			return true
		}
	}
	return u.RawQuery != "" && len(u.Query()) == 0 // the query can't be parsed
}

func (d *Decoder) duration(s, written string) (any, *Fault) {
	took, ok := ParseDuration(s)
	if !ok {
		return nil, &Fault{Wrong: fmt.Sprintf("%q isn't a duration", written), Remedy: d.Example()}
	}
	if int64(took) < d.set.Least {
		return nil, tooSmall(strconv.Quote(time.Duration(d.set.Least).String()))
	}
	return took, nil
}

// ParseDuration parses a duration as Go writes it, optionally preceded by days: "2d" or "1d12h". It
// returns false if s is not a duration.
func ParseDuration(s string) (time.Duration, bool) {
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

// tooSmall returns the fault for a number below the smallest one that the setting allows. It also
// says that 0 never means unlimited.
func tooSmall(least string) *Fault {
	return &Fault{Wrong: "too small: the smallest is " + least, Remedy: "leave it out for the default; it can't be unlimited"}
}

func tooLarge(most int64) *Fault {
	return &Fault{Wrong: "too large: the largest is " + strconv.FormatInt(most, 10), Remedy: "write a smaller one"}
}

func (d *Decoder) count(v any) (any, *Fault) {
	n, f := typed[int64](d, "an integer", v)
	switch {
	case f != nil:
		return nil, f
	case n < d.set.Least:
		return nil, tooSmall(strconv.FormatInt(d.set.Least, 10))
	case n > math.MaxInt32 && !d.set.Large:
		// A count that isn't declared large fits a 32-bit int, which some machines have.
		return nil, tooLarge(math.MaxInt32)
	}
	return n, nil
}

// maxDollars is the largest amount of money.
const maxDollars = 1_000_000_000

// money decodes dollars to micro-dollars, which are millionths of a dollar.
func (d *Decoder) money(v any) (any, *Fault) {
	var dollars float64
	switch n := v.(type) {
	case int64:
		dollars = float64(n)
	case float64:
		dollars = n
	default:
		return nil, d.WrongType("dollars, like 2 or 2.0", v)
	}
	if math.IsNaN(dollars) || dollars > maxDollars {
		return nil, tooLarge(maxDollars)
	}
	micro := int64(math.Round(max(dollars, -1) * 1e6))
	if micro < d.set.Least {
		return nil, tooSmall(dollarsOf(d.set.Least))
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
