package document

import (
	"strings"

	emojis "github.com/yuin/goldmark-emoji/definition"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// maxNameBytes is a length in bytes that no emoji's name reaches.
const maxNameBytes = 64

// Emoji returns the emoji with a name such as "tada"; false if there is none. It knows
// GitHub's names, and Slack's names of flags and skin tones.
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

// ReadEmoji reads an emoji's name between colons, such as :tada:, at the beginning of s. before is the character in
// front of s; 0 if there is none or it is an emoji. ok is false for unknown names, and for parts of a word or a
// number, as in 1:100:2 and std::key::x.
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

// nameEnd returns the byte position of the colon that ends a name; 0 if there is none.
func nameEnd(s string) int {
	if s == "" || s[0] != ':' {
		return 0
	}
	for i := 1; i < min(len(s), maxNameBytes); i++ {
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

// emojiNames is the inline parser for emojis written by their names.
type emojiNames struct{}

// Trigger implements parser.InlineParser: names begin with a colon.
func (emojiNames) Trigger() []byte { return []byte{':'} }

// Parse implements parser.InlineParser: it reads one emoji's name.
func (emojiNames) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	before := block.PrecendingCharacter()
	p, ok := pc.(*parseState)
	if ok && p.emojiEnd == segment.Start {
		before = 0
	}
	name, character, known := ReadEmoji(before, string(line[:min(len(line), maxNameBytes+1)]))
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

// An emoji is the syntax node for an emoji written by its name.
type emoji struct {
	ast.BaseInline
	name, character string
}

// Kind implements ast.Node: it returns the kind for strings, so that other code treats the emoji as a string.
func (*emoji) Kind() ast.NodeKind { return ast.KindString }

// Dump implements ast.Node, for debugging.
func (e *emoji) Dump(source []byte, level int) { ast.DumpHelper(e, source, level, nil, nil) }
