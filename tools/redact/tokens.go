package redact

import "strings"

// A rule describes the tokens of one service: their prefix, and how many characters of which kind
// follow it.
type rule struct {
	prefix    string
	minLength int
	isBody    func(c byte) bool
	// minDigits is the minimum number of digits before the prefix.
	minDigits int
	// separators lists the characters that may occur between the prefix and the token.
	separators    string
	untilBlockEnd bool // the token extends to the end of a block: a private key
}

// tokenRules returns the rules for the tokens of all known services.
func tokenRules() []rule {
	var all []rule
	for _, prefix := range []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"} {
		all = append(all, rule{prefix: prefix, minLength: 30, isBody: isWordChar})
	}
	for _, prefix := range []string{"xoxb-", "xoxp-", "xoxa-", "xoxs-", "xoxr-", "xoxe.", "xoxe-", "xapp-"} {
		all = append(all, rule{prefix: prefix, minLength: 10, isBody: isWordOrDash})
	}
	for _, prefix := range []string{"AKIA", "ASIA"} {
		all = append(all, rule{prefix: prefix, minLength: 16, isBody: isUpperOrDigit})
	}
	for _, prefix := range []string{"aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey"} {
		all = append(all, rule{prefix: prefix, minLength: 40, isBody: isBase64, separators: " \t:=\"'\\"})
	}
	return append(all,
		rule{prefix: "github_pat_", minLength: 30, isBody: isWordChar},
		rule{prefix: "glpat-", minLength: 20, isBody: isWordOrDash},
		rule{prefix: "sk-", minLength: 20, isBody: isWordOrDash},
		rule{prefix: "sk_live_", minLength: 16, isBody: isWordChar},
		rule{prefix: "rk_live_", minLength: 16, isBody: isWordChar},
		rule{prefix: "AIza", minLength: 35, isBody: isWordOrDash},
		rule{prefix: "ya29.", minLength: 20, isBody: isWordOrDash},
		rule{prefix: "npm_", minLength: 36, isBody: isWordChar},
		rule{prefix: "pypi-", minLength: 50, isBody: isWordOrDash},
		rule{prefix: "hf_", minLength: 30, isBody: isWordChar},
		rule{prefix: "SG.", minLength: 40, isBody: isWordDashOrDot},
		rule{prefix: "dop_v1_", minLength: 40, isBody: isWordChar},
		rule{prefix: "eyJ", minLength: 60, isBody: isWordDashOrDot},
		rule{prefix: ":AA", minLength: 30, isBody: isWordOrDash, minDigits: 6},
		rule{prefix: "hooks.slack.com/services/", minLength: 20, isBody: func(c byte) bool { return isWordChar(c) || c == '/' }},
		rule{prefix: "discord.com/api/webhooks/", minLength: 40, isBody: func(c byte) bool { return isWordOrDash(c) || c == '/' }},
		rule{prefix: keyBegin, untilBlockEnd: true},
	)
}

// A private key is between keyBegin and keyEnd.
const (
	keyBegin = "-----BEGIN "
	keyWords = "PRIVATE KEY"
	keyEnd   = "-----END "
	keyHead  = 48 // the words are within this many bytes from the beginning
)

func isLetter(c byte) bool        { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool         { return '0' <= c && c <= '9' }
func isUpperOrDigit(c byte) bool  { return 'A' <= c && c <= 'Z' || isDigit(c) }
func isWordChar(c byte) bool      { return isLetter(c) || isDigit(c) || c == '_' }
func isWordOrDash(c byte) bool    { return isWordChar(c) || c == '-' }
func isWordDashOrDot(c byte) bool { return isWordOrDash(c) || c == '.' }
func isBase64(c byte) bool        { return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '=' }

// match returns the token that begins at i; the empty span if there is none. open says that more
// text could make it a token, or a longer one.
func (r rule) match(text string, i int) (found span, open bool) {
	rest := text[i:]
	if !strings.HasPrefix(rest, r.prefix) {
		return span{}, strings.HasPrefix(r.prefix, rest) && r.mayBeginAt(text, i)
	}
	if !r.mayBeginAt(text, i) {
		return span{}, false
	}
	if r.untilBlockEnd {
		return matchKey(text, i)
	}
	at := i + len(r.prefix)
	for at < len(text) && strings.IndexByte(r.separators, text[at]) >= 0 {
		at++
	}
	start := at
	for at < len(text) && r.isBody(text[at]) {
		at++
	}
	switch {
	case at-start < r.minLength:
		return span{}, at == len(text)
	case r.separators != "": // the text before it is its name
		return span{start, at}, at == len(text)
	}
	return span{i - min(r.minDigits, 1)*digitsBefore(text, i), at}, at == len(text)
}

// mayBeginAt reports whether a token of this rule can begin at i: no letter or digit of a word may
// directly precede it; but if the rule requires digits there, they must.
func (r rule) mayBeginAt(text string, i int) bool {
	if r.minDigits > 0 {
		return digitsBefore(text, i) >= r.minDigits
	}
	if i == 0 || !isWordChar(text[i-1]) {
		return true
	}
	// In JSON an escape may precede it: \n, or \u003c for <.
	escaped := i >= 2 && text[i-2] == '\\' && strings.IndexByte("nrtbf", text[i-1]) >= 0
	return escaped || i >= 6 && text[i-6] == '\\' && text[i-5] == 'u'
}

// digitsBefore returns how many digits directly precede i.
func digitsBefore(text string, i int) int {
	n := 0
	for n < i && isDigit(text[i-1-n]) {
		n++
	}
	return n
}

// matchKey returns the private key that begins at i: up to its last line, or to the end of the text
// if that line is missing. open says that more text could change the result.
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
