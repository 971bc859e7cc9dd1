package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// minSecretLength is the shortest secret that is searched for, in bytes: a shorter one could be a
// word or a number.
const minSecretLength = 8

// encodedForms returns the forms in which a secret may occur in a text: plain, escaped and encoded.
// It returns nil for a secret that is too short to search for.
func encodedForms(secret string) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecretLength {
		return nil
	}
	all := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), strings.ToLower(url.QueryEscape(secret)),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
	for range 3 { // JSON within JSON within JSON
		for _, form := range all {
			all = append(all, escapeJSON(form, true), escapeJSON(form, false))
		}
		slices.Sort(all)
		all = slices.Compact(all)
	}
	return append(all, base64Forms(secret)...)
}

// escapeJSON returns a text in the form that it has between quotes in JSON; html says whether <, >
// and & are escaped, too.
func escapeJSON(text string, html bool) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(html)
	if err := encoder.Encode(text); err != nil { // a string always encodes
		panic(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// minEncodedLength is the shortest base64 form of a secret that is searched for, in characters.
const minEncodedLength = 12

// base64Forms returns the parts that are the same in every base64 text that contains a secret,
// whatever precedes and follows the secret. There are three such texts, because base64 encodes
// groups of three bytes, and the secret can begin at any position in a group.
func base64Forms(secret string) []string {
	var all []string
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), secret...))
		text = text[(before*8+5)/6 : (before+len(secret))*8/6]
		if len(text) >= minEncodedLength {
			all = append(all, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
		}
	}
	return all
}
