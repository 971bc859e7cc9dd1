package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"parley/tools/mcp/pins"
)

// maxName is the longest name of a tool that providers take.
const maxName = 64

// aliases are what the tools of a server are called here, in their order: SERVER__TOOL, of
// the letters that providers take. Two tools never have the same.
func aliases(server string, all []pins.Tool) []string {
	names := make([]string, len(all))
	count := map[string]int{}
	for i, t := range all {
		names[i] = server + "__" + plain(t.Name)
		count[names[i]]++
	}
	for i, t := range all {
		if count[names[i]] == 1 && len(names[i]) <= maxName || names[i] == server+"__"+t.Name && len(names[i]) <= maxName {
			continue
		}
		sum := sha256.Sum256([]byte(t.Name))
		mark := "_" + hex.EncodeToString(sum[:4])
		names[i] = names[i][:min(len(names[i]), maxName-len(mark))] + mark
	}
	return names
}

// plain replaces what providers do not take in a name.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// matchesAny tells whether a name matches one of the patterns, in which * is any text;
// without patterns it does.
func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches(pattern, name) {
			return true
		}
	}
	return len(patterns) == 0
}

func matches(pattern, name string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	for i := range len(name) + 1 {
		if matches(rest, name[i:]) {
			return true
		}
	}
	return false
}
