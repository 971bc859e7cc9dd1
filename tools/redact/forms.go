package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// leastSecret is how long a secret is that is looked for, in bytes: what is shorter
// could be a word, or a number.
const leastSecret = 8

// forms are the ways in which a secret can be written.
func forms(secret string) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < leastSecret {
		return nil
	}
	all := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), strings.ToLower(url.QueryEscape(secret)),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
	for range 3 { // JSON within JSON within JSON
		for _, form := range all {
			all = append(all, inJSON(form, true), inJSON(form, false))
		}
		slices.Sort(all)
		all = slices.Compact(all)
	}
	return append(all, inBase64(secret)...)
}

// inJSON is a text as it stands between the quotes of a JSON text.
func inJSON(text string, html bool) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(html)
	if err := encoder.Encode(text); err != nil { // a string always encodes
		panic(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// leastEncoded is how long a part of a base64 text has to be, to be looked for.
const leastEncoded = 12

// inBase64 is what of a secret stands the same in base64 whatever goes before and after
// it: three forms, for the three places at which it can begin.
func inBase64(secret string) []string {
	var all []string
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
		text = text[(before*8+5)/6 : (before+len(secret))*8/6]
		if len(text) >= leastEncoded {
			all = append(all, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
		}
	}
	return all
}
