package document

import (
	"strings"

	emojis "github.com/yuin/goldmark-emoji/definition"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// longestName is more than the name of any emoji has, in bytes.
const longestName = 64

// Emoji is the emoji of a name such as "tada"; false if none has it. It knows GitHub's
// names, and of Slack's those of flags and of skin tones.
func Emoji(name string) (string, bool) {
	if e, ok := emojis.Github().Get(name); ok && e.IsUnicode() {
		return string(e.Unicode), true
	}
	if land, ok := strings.CutPrefix(name, "flag-"); ok && len(land) == 2 {
		const letter = '🇦' - 'a'
		flag := []rune{rune(land[0]) + letter, rune(land[1]) + letter}
		return string(flag), isLower(land[0]) && isLower(land[1])
	}
	if tone, ok := strings.CutPrefix(name, "skin-tone-"); ok && len(tone) == 1 && tone[0] >= '2' && tone[0] <= '6' {
		return string('🏻' + rune(tone[0]-'2')), true
	}
	return "", false
}

// ReadEmoji reads a name between colons, such as :tada:, at the beginning of a text.
// Before is the character before it, 0 if that is none or an emoji. Names that no emoji
// has are none, nor is what is part of a word or a number: 1:100:2, std::key::x.
func ReadEmoji(before rune, s string) (name, character string, ok bool) {
	if before == ':' || before < 0x80 && isWord(byte(before)) {
		return "", "", false
	}
	end := nameEnd(s)
	if end < 2 || end+1 < len(s) && isWord(s[end+1]) {
		return "", "", false
	}
	name = s[1:end]
	character, ok = Emoji(name)
	return name, character, ok
}

// nameEnd is where the colon behind a name is, 0 if there is none.
func nameEnd(s string) int {
	if s == "" || s[0] != ':' {
		return 0
	}
	for i := 1; i < min(len(s), longestName); i++ {
		switch c := s[i]; {
		case c == ':':
			return i
		case !isLower(c) && !isDigit(c) && strings.IndexByte("_+-", c) < 0:
			return 0
		}
	}
	return 0
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// emojiNames parses the names of emoji.
type emojiNames struct{}

// Trigger implements parser.InlineParser.
func (emojiNames) Trigger() []byte { return []byte{':'} }

// Parse implements parser.InlineParser.
func (emojiNames) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	before := block.PrecendingCharacter()
	p, ok := pc.(*parse)
	if ok && p.emojiEnd == segment.Start {
		before = 0
	}
	name, character, known := ReadEmoji(before, string(line[:min(len(line), longestName+1)]))
	if !known {
		return nil
	}
	length := len(name) + 2
	block.Advance(length)
	if ok {
		p.emojiEnd = segment.Start + length
	}
	return &emoji{name: name, character: character}
}

// An emoji is one that was written by its name.
type emoji struct {
	ast.BaseInline
	name, character string
}

// Kind implements ast.Node.
func (*emoji) Kind() ast.NodeKind { return ast.KindString }

// Dump implements ast.Node.
func (e *emoji) Dump(source []byte, level int) { ast.DumpHelper(e, source, level, nil, nil) }
