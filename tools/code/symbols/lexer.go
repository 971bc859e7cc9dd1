package symbols

import "strings"

// A syntax describes the comments and strings of a language.
type syntax struct {
	slashes    bool // comments are // and /* */
	hash       bool // comments begin with #
	nested     bool // /* comments may be nested
	multiline  bool // strings in quotes may continue on the next line
	tripled    bool // strings may be in triple quotes
	directives bool // a line that begins with # is a preprocessor directive
	rawStrings bool // R"x(…)x"
	templates  bool // strings in backquotes, with ${…} in them
	regexes    bool // /…/
	rust       bool // r#"…"#, and lifetimes such as 'a
	php        bool // code is between <?php and ?>
	ruby       bool // heredocs, %w[…], =begin and names that end in ? or !
	single     bool // single quotes enclose strings, not just characters
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
	kind  byte
	first bool // it is the first one on its line
	glued bool // nothing separates it from the token before
	text  string
	line  int
	col   int // counted from 0, in bytes
}

// is reports whether the token is this word or mark.
func (t token) is(s string) bool { return t.text == s && (t.kind == wordToken || t.kind == punctToken) }

// A lexer splits a text into tokens. It never fails, and takes time in proportion to the text's length.
type lexer struct {
	src       string
	at        int
	line      int
	lineStart int
	seen      int // the line of the last token
	ended     int // the offset at which that token ended
	last      token
	heredocs  []string // the heredocs whose text begins on the next line
	syntax
}

func newLexer(src string, s syntax) *lexer {
	l := &lexer{src: src, line: 1, syntax: s}
	if s.php {
		l.skipPage()
	}
	return l
}

// next returns the next token; false at the end.
func (l *lexer) next() (token, bool) {
	l.skipBlanks()
	if l.at >= len(l.src) {
		return token{}, false
	}
	t := token{first: l.line != l.seen, glued: l.ended == l.at, line: l.line, col: l.at - l.lineStart}
	start := l.at
	t.kind = l.read(t.first)
	t.text = l.src[start:l.at]
	l.seen, l.ended, l.last = l.line, l.at, t
	return t, true
}

// read reads one token and returns its kind.
func (l *lexer) read(first bool) byte {
	b := l.src[l.at]
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
		if strings.HasPrefix(l.src[l.at:], pair) {
			l.at += 2
			return punctToken
		}
	}
	l.at++
	return punctToken
}

// isWordByte reports whether a byte can be part of a name: a letter, digit, underscore, dollar sign, or any byte
// beyond ASCII.
func isWordByte(b byte) bool {
	return b >= 0x80 || b == '_' || b == '$' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func (l *lexer) skipWord() {
	number := l.src[l.at] >= '0' && l.src[l.at] <= '9'
	for l.at < len(l.src) && (isWordByte(l.src[l.at]) || number && l.src[l.at] == '\'' && l.directives && l.peek(1) >= '0') {
		l.at++
	}
	if l.ruby && l.src[l.at-1] == '$' && (l.peek(0) == '\'' || l.peek(0) == '"' || l.peek(0) == '`') {
		l.at++ // a variable such as $'
	}
}

// peek returns the byte n places after the next one; 0 past the end.
func (l *lexer) peek(n int) byte {
	if l.at+n >= len(l.src) {
		return 0
	}
	return l.src[l.at+n]
}

// skipBlanks skips blanks, line ends and comments.
func (l *lexer) skipBlanks() {
	for l.at < len(l.src) {
		b := l.src[l.at]
		switch {
		case b == '\n':
			l.newLine()
		case b == ' ' || b == '\t' || b == '\r' || b == '\f' || b == '\v':
			l.at++
		case b == '\\' && l.peek(1) == '\n', b == '\\' && l.peek(1) == '\r':
			l.at++
			if l.peek(0) == '\r' {
				l.at++
			}
			if l.peek(0) == '\n' && !l.ruby {
				seen := l.seen
				l.newLine()
				if seen == l.line-1 {
					l.seen = l.line // the statement continues
				}
			}
		case l.php && strings.HasPrefix(l.src[l.at:], "?>"):
			l.skipPage()
		case l.slashes && b == '/' && l.peek(1) == '/', l.hash && b == '#' && (!l.php || l.peek(1) != '['):
			l.skipLine()
		case l.slashes && b == '/' && l.peek(1) == '*':
			l.skipComment()
		default:
			return
		}
	}
}

// newLine moves to the next line, and skips the heredocs that begin there.
func (l *lexer) newLine() {
	l.at++
	l.line++
	l.lineStart = l.at
	for len(l.heredocs) > 0 {
		id := l.heredocs[0]
		l.heredocs = l.heredocs[1:]
		l.skipLinesUntil(func(line string) bool { return strings.TrimSpace(line) == id })
	}
	if l.ruby && strings.HasPrefix(l.src[l.at:], "=begin") {
		l.skipLinesUntil(func(line string) bool { return strings.HasPrefix(line, "=end") })
	}
}

// skipLinesUntil skips lines up to and including the first one for which last returns true.
func (l *lexer) skipLinesUntil(last func(line string) bool) {
	for l.at < len(l.src) {
		line, _, more := strings.Cut(l.src[l.at:], "\n")
		l.at += len(line)
		if more {
			l.at++
			l.line++
		}
		l.lineStart = l.at
		if last(line) {
			return
		}
	}
}

// skipLine skips the rest of a line, or of the PHP code on it, but not its end.
func (l *lexer) skipLine() {
	for l.at < len(l.src) && l.src[l.at] != '\n' {
		if l.php && l.src[l.at] == '?' && l.peek(1) == '>' {
			return
		}
		l.at++
	}
}

// skipTo skips to the offset end, and counts the lines.
func (l *lexer) skipTo(end int) {
	skipped := l.src[l.at:end]
	if n := strings.Count(skipped, "\n"); n > 0 {
		l.line += n
		l.lineStart = l.at + strings.LastIndexByte(skipped, '\n') + 1
	}
	l.at = end
}

// skipComment skips a comment that has an end mark.
func (l *lexer) skipComment() {
	end, depth := l.at+2, 1
	for depth > 0 && end < len(l.src) {
		switch {
		case strings.HasPrefix(l.src[end:], "*/"):
			depth--
			end += 2
		case l.nested && strings.HasPrefix(l.src[end:], "/*"):
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
	if begin := strings.Index(l.src[l.at:], "<?"); begin >= 0 {
		end = l.at + begin + 2
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
	end := l.at
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
