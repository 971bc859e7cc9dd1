package redact

import "strings"

// A rule is what tokens of a service look like: how they begin, and so many characters
// of a kind behind that.
type rule struct {
	prefix string
	least  int
	of     func(c byte) bool
	// digits are so many digits before the prefix, at least.
	digits int
	// between are characters that may stand behind the prefix.
	between string
	block   bool // it goes on to the end of a block: a private key
}

func tokens() []rule {
	var all []rule
	for _, prefix := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"} {
		all = append(all, rule{prefix: prefix, least: 30, of: word})
	}
	for _, prefix := range []string{"xoxb-", "xoxp-", "xoxa-", "xoxs-", "xoxr-", "xoxe.", "xoxe-", "xapp-"} {
		all = append(all, rule{prefix: prefix, least: 10, of: dashed})
	}
	for _, prefix := range []string{"AKIA", "ASIA"} {
		all = append(all, rule{prefix: prefix, least: 16, of: upper})
	}
	for _, prefix := range []string{"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey"} {
		all = append(all, rule{prefix: prefix, least: 40, of: base64ish, between: " \t:=\"'\\"})
	}
	return append(all,
		rule{prefix: "github_pat_", least: 30, of: word},
		rule{prefix: "glpat-", least: 20, of: dashed},
		rule{prefix: "sk-", least: 20, of: dashed},
		rule{prefix: "sk_live_", least: 16, of: word},
		rule{prefix: "rk_live_", least: 16, of: word},
		rule{prefix: "AIza", least: 35, of: dashed},
		rule{prefix: "ya29.", least: 20, of: dashed},
		rule{prefix: "npm_", least: 36, of: word},
		rule{prefix: "pypi-", least: 50, of: dashed},
		rule{prefix: "hf_", least: 30, of: word},
		rule{prefix: "SG.", least: 40, of: dotted},
		rule{prefix: "dop_v1_", least: 40, of: word},
		rule{prefix: "eyJ", least: 60, of: dotted},
		rule{prefix: ":AA", least: 30, of: dashed, digits: 6},
		rule{prefix: "hooks.slack.com/services/", least: 20, of: func(c byte) bool { return word(c) || c == '/' }},
		rule{prefix: "discord.com/api/webhooks/", least: 40, of: func(c byte) bool { return dashed(c) || c == '/' }},
		rule{prefix: keyBegin, block: true},
	)
}

// A private key stands between these.
const (
	keyBegin = "-----BEGIN "
	keyWords = "PRIVATE KEY"
	keyEnd   = "-----END "
	keyHead  = 48 // bytes within which the words stand
)

func letter(c byte) bool    { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func digit(c byte) bool     { return '0' <= c && c <= '9' }
func upper(c byte) bool     { return 'A' <= c && c <= 'Z' || digit(c) }
func word(c byte) bool      { return letter(c) || digit(c) || c == '_' }
func dashed(c byte) bool    { return word(c) || c == '-' }
func dotted(c byte) bool    { return dashed(c) || c == '.' }
func base64ish(c byte) bool { return letter(c) || digit(c) || c == '+' || c == '/' || c == '=' }

// match is the token that begins there; the empty span if none does. Open says that
// more text could make it one, or a longer one.
func (r rule) match(text string, i int) (found span, open bool) {
	rest := text[i:]
	if !strings.HasPrefix(rest, r.prefix) {
		return span{}, strings.HasPrefix(r.prefix, rest) && r.stands(text, i)
	}
	if !r.stands(text, i) {
		return span{}, false
	}
	if r.block {
		return matchKey(text, i)
	}
	at := i + len(r.prefix)
	for at < len(text) && strings.IndexByte(r.between, text[at]) >= 0 {
		at++
	}
	start := at
	for at < len(text) && r.of(text[at]) {
		at++
	}
	switch {
	case at-start < r.least:
		return span{}, at == len(text)
	case r.between != "": // what goes before it is its name
		return span{start, at}, at == len(text)
	}
	return span{i - min(r.digits, 1)*digitsBefore(text, i), at}, at == len(text)
}

// stands tells whether something can begin there: no word goes before it.
func (r rule) stands(text string, i int) bool {
	if r.digits > 0 {
		return digitsBefore(text, i) >= r.digits
	}
	if i == 0 || !word(text[i-1]) {
		return true
	}
	// In JSON a line may end before it: \n, or <.
	escaped := i >= 2 && text[i-2] == '\\' && strings.IndexByte("nrtbf", text[i-1]) >= 0
	return escaped || i >= 6 && text[i-6] == '\\' && text[i-5] == 'u'
}

func digitsBefore(text string, i int) int {
	n := 0
	for n < i && digit(text[i-1-n]) {
		n++
	}
	return n
}

// matchKey finds a private key that begins at i: up to its last line, or to the end of
// the text if that line is missing. It is open if more text could change the answer.
func matchKey(text string, i int) (found span, open bool) {
	head := text[i:min(len(text), i+keyHead)]
	if !strings.Contains(head, keyWords) {
		return span{}, i+keyHead > len(text)
	}
	last := strings.Index(text[i:], keyEnd)
	if last < 0 {
		return span{i, len(text)}, true
	}
	at := i + last + len(keyEnd)
	dashes := strings.Index(text[at:], "-----")
	if dashes < 0 || dashes > keyHead {
		return span{i, len(text)}, true
	}
	return span{i, at + dashes + len("-----")}, false
}
