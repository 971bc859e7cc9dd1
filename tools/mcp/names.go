package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"parley/tools/mcp/pins"
)

// maxName is the maximum length of a tool's name that model providers accept.
const maxName = 64

// aliases returns the names under which models are shown a server's tools, in the order of the
// tools: SERVER__TOOL, in the letters that model providers accept. No two tools have the same name.
func aliases(server string, all []pins.Tool) []string {
	names := make([]string, len(all))
	count := map[string]int{}
	for i, t := range all {
		names[i] = server + "__" + replaceInvalid(t.Name)
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

// replaceInvalid replaces characters that providers do not accept in a name.
func replaceInvalid(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// matchesAny reports whether a name matches one of the patterns, in which * matches any text. If
// there are no patterns, every name matches.
func matchesAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matches(pattern, name) {
			return true
		}
	}
	return len(patterns) == 0
}

// matches reports whether a name matches a pattern in which * matches any text.
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
