package schema

import (
	"log/slog"
	"net/url"
	"strings"
)

// A Secret is a text that no output shows; string(s) returns it.
type Secret string

// hidden is shown in place of a secret.
const hidden = "***"

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Hidden says which parts of a list of headers are secret, besides the values of headers that usually contain
// secrets.
type Hidden int

// These values say what is secret in headers.
const (
	UsualValues Hidden = iota // nothing else, or the list has no headers
	References                // also the texts that references such as ${VAR} stand for
	AllValues                 // also all values
)

// secretIn returns the part of NAME=VALUE or NAME: VALUE that nobody may see: the value's last word, if the name is
// a usual one for secrets. Otherwise it returns nil.
func secretIn(pair string) []string {
	i := strings.IndexAny(pair, "=:")
	if i < 0 {
		return nil
	}
	words := strings.Fields(pair[i+1:])
	if len(words) == 0 {
		return nil
	}
	name := strings.ToLower(pair[:i])
	for _, word := range []string{"key", "token", "secret", "pass", "auth", "cred", "cookie"} {
		if strings.Contains(name, word) {
			return words[len(words)-1:]
		}
	}
	return nil
}

// textsIn returns all strings in a value.
func textsIn(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		return []string{v}
	case []string:
		return v
	case []any:
		for _, inner := range v {
			all = append(all, textsIn(inner)...)
		}
	case map[string]any:
		for _, inner := range v {
			all = append(all, textsIn(inner)...)
		}
	}
	return all
}

// hasPassword reports whether a URL contains a password, or parameters that may be secret.
func hasPassword(u *url.URL) bool {
	for name, values := range u.Query() {
		name = strings.ToLower(name)
		if strings.Join(values, "") == "" {
			continue
		}
		if strings.Contains(name, "pass") || strings.Contains(name, "key") || strings.Contains(name, "token") || strings.Contains(name, "secret") {
			return true
		}
	}
	if u.User == nil {
		return false
	}
	password, _ := u.User.Password()
	return password != ""
}

// passwordsOf returns the passwords in a URL, including those in parameters such as sentinel_password and
// sslpassword. It leaves out words that the rest of the URL contains anyway.
func passwordsOf(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var all []string
	add := func(secret string) {
		if secret != "" && strings.Count(address, secret) <= 1 {
			all = append(all, secret)
		}
	}
	secret, _ := u.User.Password()
	add(secret)
	for name, values := range u.Query() {
		for _, v := range values {
			if strings.Contains(strings.ToLower(name), "password") {
				add(v)
			}
		}
	}
	return all
}

// withoutPassword returns a URL without its password and its parameters. Passwords occur in parameters with too
// many names to recognize all of them.
func withoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return hidden
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://")
	if u.User != nil {
		b.WriteString(url.User(u.User.Username()).String())
		if _, password := u.User.Password(); password {
			b.WriteString(":" + hidden)
		}
		b.WriteString("@")
	}
	b.WriteString(u.Host + u.EscapedPath())
	if u.RawQuery != "" {
		b.WriteString("?" + hidden)
	}
	return b.String()
}
