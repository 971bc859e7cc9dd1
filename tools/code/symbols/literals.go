package symbols

import "strings"

// skipString skips a string, a character or a regular expression, and reports whether one begins here.
func (l *lexer) skipString(b byte) bool {
	switch b {
	case '"':
		if l.tripleQuotes && strings.HasPrefix(l.src[l.offset:], `"""`) {
			l.skipPast(l.offset+3, `"""`)
			return true
		}
		l.skipQuoted('"', l.multilineStrings)
		return true
	case '\'':
		return l.skipSingle()
	case '`':
		switch {
		case l.templateStrings:
			l.skipTemplate()
		case l.rubyLiterals, l.phpTags:
			l.skipQuoted('`', l.multilineStrings)
		default:
			return false
		}
		return true
	case '/':
		return l.regexLiterals && l.mayBeRegex() && l.skipRegex()
	case 'R', 'r', 'b':
		return l.skipRaw()
	case '<':
		return l.skipHeredoc()
	case '%':
		return l.rubyLiterals && l.skipPercent()
	}
	return false
}

// skipPast skips to just after the next mark, or to the end of the text.
func (l *lexer) skipPast(from int, mark string) {
	from = min(from, len(l.src))
	if at := strings.Index(l.src[from:], mark); at >= 0 {
		l.skipTo(from + at + len(mark))
		return
	}
	l.skipTo(len(l.src))
}

// skipQuoted skips a string that ends with the byte it begins with. If no end follows on the line and multiline is
// false, the string ends with the line.
func (l *lexer) skipQuoted(quote byte, multiline bool) {
	end := l.offset + 1
	for end < len(l.src) && l.src[end] != quote {
		switch {
		case l.src[end] == '\\':
			end++
		case l.src[end] == '\n' && !multiline:
			l.skipTo(end)
			return
		}
		end++
	}
	l.skipTo(min(end+1, len(l.src)))
}

// skipSingle skips a string, character or lifetime that begins with a single quote. It returns true.
func (l *lexer) skipSingle() bool {
	rest := l.src[l.offset:]
	switch {
	case l.tripleQuotes && l.singleQuotedStrings && strings.HasPrefix(rest, "'''"):
		l.skipPast(l.offset+3, "'''")
	case l.rustLiterals && len(rest) > 2 && rest[1] != '\\' && rest[2] != '\'' && rest[1] < 0x80:
		l.offset++ // a lifetime
		l.skipWord()
	default:
		l.skipQuoted('\'', l.multilineStrings && !l.rustLiterals)
	}
	return true
}

// skipTemplate skips a string in backquotes, including the code in it.
func (l *lexer) skipTemplate() {
	var depths []int // of the braces in each open ${…}
	inText := true
	end := l.offset + 1
	for ; end < len(l.src); end++ {
		b := l.src[end]
		switch {
		case b == '\\':
			end++
		case inText && b == '`':
			if inText = false; len(depths) == 0 {
				l.skipTo(end + 1)
				return
			}
		case inText && b == '$' && end+1 < len(l.src) && l.src[end+1] == '{' && len(depths) < 100:
			end++
			depths, inText = append(depths, 0), false
		case inText:
		case b == '`':
			inText = true
		case b == '{':
			depths[len(depths)-1]++
		case b == '}' && depths[len(depths)-1] > 0:
			depths[len(depths)-1]--
		case b == '}':
			depths, inText = depths[:len(depths)-1], true
		}
	}
	l.skipTo(min(end+1, len(l.src)))
}

// mayBeRegex reports whether a slash after the last token begins a regular expression, rather than divides.
func (l *lexer) mayBeRegex() bool {
	switch {
	case l.last.kind == 0:
		return true
	case l.last.kind == textToken, l.last.is(")"), l.last.is("]"), l.last.is("}"):
		return false
	case l.last.kind != wordToken:
		return true
	}
	switch l.last.text {
	case "return", "typeof", "case", "in", "of", "do", "else", "throw", "void", "delete", "if", "unless", "when", "and", "or", "not", "while", "elsif":
		return true
	}
	return l.rubyLiterals && l.lastTokenEnd < l.offset && l.peek(1) != ' ' && l.peek(1) != '='
}

// maxRegex limits the length of a regular expression, in bytes, because each slash without a matching end makes the
// lexer scan ahead again.
const maxRegex = 500

// skipRegex skips a regular expression; false if none ends on this line.
func (l *lexer) skipRegex() bool {
	inSet := false
	for end := l.offset + 1; end < min(len(l.src), l.offset+maxRegex) && l.src[end] != '\n'; end++ {
		switch b := l.src[end]; {
		case b == '\\':
			end++
		case b == '[':
			inSet = true
		case b == ']':
			inSet = false
		case b == '/' && !inSet:
			l.offset = end + 1
			return true
		}
	}
	return false
}

// skipRaw skips a raw string: R"x(…)x" in C++, r#"…"# in Rust. It returns false if none begins here.
func (l *lexer) skipRaw() bool {
	rest := l.src[l.offset:]
	switch {
	case l.rawStrings && strings.HasPrefix(rest, `R"`):
		open := strings.IndexByte(rest[:min(len(rest), 20)], '(')
		if open < 0 {
			return false
		}
		l.skipPast(l.offset+open, ")"+rest[2:open]+`"`)
		return true
	case l.rustLiterals:
		at := 0
		if rest[at] == 'b' {
			at++
		}
		if at >= len(rest) || rest[at] != 'r' {
			return false
		}
		at++
		hashes := 0
		for at+hashes < len(rest) && rest[at+hashes] == '#' && hashes < 256 {
			hashes++
		}
		if at += hashes; at >= len(rest) || rest[at] != '"' {
			return false
		}
		l.skipPast(l.offset+at+1, `"`+strings.Repeat("#", hashes))
		return true
	}
	return false
}

// skipHeredoc skips the opening of a Ruby heredoc, whose text begins on the next line, or all of a PHP heredoc, and
// reports whether one begins here.
func (l *lexer) skipHeredoc() bool {
	rest := l.src[l.offset:min(len(l.src), l.offset+200)]
	switch {
	case l.phpTags && strings.HasPrefix(rest, "<<<"):
		id, _ := heredocName(strings.TrimLeft(rest[3:], " \t"))
		if id == "" {
			return false
		}
		l.skipLine()
		l.skipLinesUntil(func(line string) bool {
			line = strings.TrimLeft(line, " \t")
			behind, ok := strings.CutPrefix(line, id)
			if !ok || behind != "" && isWordByte(behind[0]) {
				return false
			}
			return true
		})
		return true
	case l.rubyLiterals && strings.HasPrefix(rest, "<<"):
		mark := strings.TrimLeft(rest[2:], "~-")
		id, length := heredocName(mark)
		bare := len(mark) == len(rest)-2
		if id == "" || len(l.heredocs) >= 20 || bare && (id[0] < 'A' || id[0] > 'Z') && mark[0] != '"' && mark[0] != '\'' {
			return false
		}
		l.offset += len(rest) - len(mark) + length
		l.heredocs = append(l.heredocs, id)
		return true
	}
	return false
}

// heredocName returns the word that ends a heredoc, and the length of that word with its quotes; "" and 0 if rest
// doesn't begin with such a word.
func heredocName(rest string) (id string, length int) {
	if rest == "" {
		return "", 0
	}
	if quote := rest[0]; quote == '"' || quote == '\'' || quote == '`' {
		end := strings.IndexByte(rest[1:], quote)
		if end < 1 {
			return "", 0
		}
		return rest[1 : 1+end], end + 2
	}
	end := 0
	for end < len(rest) && isWordByte(rest[end]) {
		end++
	}
	if end == 0 || rest[0] >= '0' && rest[0] <= '9' {
		return "", 0
	}
	return rest[:end], end
}

// skipPercent skips a Ruby string such as %w[…]. It returns false if none begins here.
func (l *lexer) skipPercent() bool {
	at := l.offset + 1
	if at < len(l.src) && strings.IndexByte("wWqQiIrsx", l.src[at]) >= 0 {
		at++
	} else if l.last.kind == wordToken || l.last.is(")") || l.last.is("]") {
		return false // the operator
	}
	if at >= len(l.src) {
		return false
	}
	open := l.src[at]
	closing, ok := map[byte]byte{'[': ']', '(': ')', '{': '}', '<': '>', '|': '|', '!': '!', '/': '/'}[open]
	if !ok {
		return false
	}
	depth := 1
	for at++; at < len(l.src) && depth > 0; at++ {
		switch b := l.src[at]; {
		case b == '\\':
			at++
		case b == closing:
			depth--
		case b == open:
			depth++
		}
	}
	l.skipTo(min(at, len(l.src)))
	return true
}
