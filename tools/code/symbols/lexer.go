package symbols

import "strings"

// A syntax describes the comments and strings of a language.
type syntax struct {
	slashComments       bool // comments are // and /* */
	hashComments        bool // comments begin with #
	nestedComments      bool // /* comments may be nested
	multilineStrings    bool // strings in quotes may continue on the next line
	tripleQuotes        bool // strings may be in triple quotes
	directives          bool // a line that begins with # is a preprocessor directive
	rawStrings          bool // R"x(…)x"
	templateStrings     bool // strings in backquotes, with ${…} in them
	regexLiterals       bool // /…/
	rustLiterals        bool // r#"…"#, and lifetimes such as 'a
	phpTags             bool // code is between <?php and ?>
	rubyLiterals        bool // heredocs, %w[…], =begin and names that end in ? or !
	singleQuotedStrings bool // single quotes enclose strings, not just characters
}

// The kinds of tokens.
const (
	wordToken      = 'w' // a name, keyword or number
	textToken      = 's' // a string or a character
	directiveToken = '#' // a preprocessor line
	groupToken     = 'g' // braces with everything inside them
	punctToken     = 'p' // any other character, and ::, => and ->
)

// A token is one word, string or punctuation mark of a text.
type token struct {
	kind          byte
	firstOnLine   bool // it is the first one on its line
	noSpaceBefore bool // nothing separates it from the token before
	text          string
	line          int
	col           int // counted from 0, in bytes
}

// is reports whether the token is this word or mark.
func (t token) is(s string) bool { return t.text == s && (t.kind == wordToken || t.kind == punctToken) }

// A lexer splits a text into tokens. It never fails, and takes time in proportion to the text's length.
type lexer struct {
	src           string
	offset        int
	line          int
	lineStart     int
	lastTokenLine int // the line of the last token
	lastTokenEnd  int // the offset at which that token ended
	last          token
	heredocs      []string // the heredocs whose text begins on the next line
	syntax
}

func newLexer(src string, s syntax) *lexer {
	l := &lexer{src: src, line: 1, syntax: s}
	if s.phpTags {
		l.skipPage()
	}
	return l
}

// next returns the next token; false at the end.
func (l *lexer) next() (token, bool) {
	l.skipBlanks()
	if l.offset >= len(l.src) {
		return token{}, false
	}
	t := token{firstOnLine: l.line != l.lastTokenLine, noSpaceBefore: l.lastTokenEnd == l.offset, line: l.line, col: l.offset - l.lineStart}
	start := l.offset
	t.kind = l.read(t.firstOnLine)
	t.text = l.src[start:l.offset]
	l.lastTokenLine, l.lastTokenEnd, l.last = l.line, l.offset, t
	return t, true
}

// read reads one token and returns its kind.
func (l *lexer) read(first bool) byte {
	b := l.src[l.offset]
	switch {
	case l.directives && b == '#' && first:
		l.skipDirective()
		return directiveToken
	case l.skipString(b):
		return textToken
	case isWordByte(b):
		l.skipWord()
		return wordToken
	}
	for _, pair := range [...]string{"::", "=>", "->", "==", "!=", "<=", ">=", "&&", "||", "<<"} {
		if strings.HasPrefix(l.src[l.offset:], pair) {
			l.offset += 2
			return punctToken
		}
	}
	l.offset++
	return punctToken
}

// isWordByte reports whether a byte can be part of a name: a letter, digit, underscore, dollar sign, or any byte
// beyond ASCII.
func isWordByte(b byte) bool {
	return b >= 0x80 || b == '_' || b == '$' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func (l *lexer) skipWord() {
	number := l.src[l.offset] >= '0' && l.src[l.offset] <= '9'
	for l.offset < len(l.src) && (isWordByte(l.src[l.offset]) || number && l.src[l.offset] == '\'' && l.directives && l.peek(1) >= '0') {
		l.offset++
	}
	if l.rubyLiterals && l.src[l.offset-1] == '$' && (l.peek(0) == '\'' || l.peek(0) == '"' || l.peek(0) == '`') {
		l.offset++ // a variable such as $'
	}
}

// peek returns the byte n places after the next one; 0 past the end.
func (l *lexer) peek(n int) byte {
	if l.offset+n >= len(l.src) {
		return 0
	}
	return l.src[l.offset+n]
}

// skipBlanks skips blanks, line ends and comments.
func (l *lexer) skipBlanks() {
	for l.offset < len(l.src) {
		b := l.src[l.offset]
		switch {
		case b == '\n':
			l.newLine()
		case b == ' ' || b == '\t' || b == '\r' || b == '\f' || b == '\v':
			l.offset++
		case b == '\\' && l.peek(1) == '\n', b == '\\' && l.peek(1) == '\r':
			l.offset++
			if l.peek(0) == '\r' {
				l.offset++
			}
			if l.peek(0) == '\n' && !l.rubyLiterals {
				seen := l.lastTokenLine
				l.newLine()
				if seen == l.line-1 {
					l.lastTokenLine = l.line // the statement continues
				}
			}
		case l.phpTags && strings.HasPrefix(l.src[l.offset:], "?>"):
			l.skipPage()
		case l.slashComments && b == '/' && l.peek(1) == '/', l.hashComments && b == '#' && (!l.phpTags || l.peek(1) != '['):
			l.skipLine()
		case l.slashComments && b == '/' && l.peek(1) == '*':
			l.skipComment()
		default:
			return
		}
	}
}

// newLine moves to the next line, and skips the heredocs that begin there.
func (l *lexer) newLine() {
	l.offset++
	l.line++
	l.lineStart = l.offset
	for len(l.heredocs) > 0 {
		id := l.heredocs[0]
		l.heredocs = l.heredocs[1:]
		l.skipLinesUntil(func(line string) bool { return strings.TrimSpace(line) == id })
	}
	if l.rubyLiterals && strings.HasPrefix(l.src[l.offset:], "=begin") {
		l.skipLinesUntil(func(line string) bool { return strings.HasPrefix(line, "=end") })
	}
}

// skipLinesUntil skips lines up to and including the first one for which last returns true.
func (l *lexer) skipLinesUntil(last func(line string) bool) {
	for l.offset < len(l.src) {
		line, _, more := strings.Cut(l.src[l.offset:], "\n")
		l.offset += len(line)
		if more {
			l.offset++
			l.line++
		}
		l.lineStart = l.offset
		if last(line) {
			return
		}
	}
}

// skipLine skips the rest of a line, or of the PHP code on it, but not its end.
func (l *lexer) skipLine() {
	for l.offset < len(l.src) && l.src[l.offset] != '\n' {
		if l.phpTags && l.src[l.offset] == '?' && l.peek(1) == '>' {
			return
		}
		l.offset++
	}
}

// skipTo skips to the offset end, and counts the lines.
func (l *lexer) skipTo(end int) {
	skipped := l.src[l.offset:end]
	if n := strings.Count(skipped, "\n"); n > 0 {
		l.line += n
		l.lineStart = l.offset + strings.LastIndexByte(skipped, '\n') + 1
	}
	l.offset = end
}

// skipComment skips a comment that has an end mark.
func (l *lexer) skipComment() {
	end, depth := l.offset+2, 1
	for depth > 0 && end < len(l.src) {
		switch {
		case strings.HasPrefix(l.src[end:], "*/"):
			depth--
			end += 2
		case l.nestedComments && strings.HasPrefix(l.src[end:], "/*"):
			depth++
			end += 2
		default:
			end++
		}
	}
	l.skipTo(min(end, len(l.src)))
}

// skipPage skips the text outside PHP code.
func (l *lexer) skipPage() {
	end := len(l.src)
	if begin := strings.Index(l.src[l.offset:], "<?"); begin >= 0 {
		end = l.offset + begin + 2
		for _, name := range []string{"php", "="} {
			if strings.HasPrefix(l.src[end:], name) {
				end += len(name)
				break
			}
		}
	}
	l.skipTo(end)
}

// skipDirective skips a preprocessor line and its continuation lines.
func (l *lexer) skipDirective() {
	end := l.offset
	for end < len(l.src) {
		line, _, more := strings.Cut(l.src[end:], "\n")
		end += len(line)
		if !more || !strings.HasSuffix(strings.TrimSuffix(line, "\r"), `\`) {
			break
		}
		end++
	}
	l.skipTo(end)
}
