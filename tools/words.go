package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/tools/spelling"
)

// unknownArgument returns the message for an argument that the tool doesn't have. The message lists the tool's
// arguments.
func unknownArgument(name string, known []string) string {
	switch near := nearestName(name, known); {
	case len(known) == 0:
		return fmt.Sprintf("%q is unknown: there are no arguments", Clip(name, 64))
	case near != "":
		return fmt.Sprintf("%q is unknown: did you mean %q?", Clip(name, 64), near)
	}
	return fmt.Sprintf("%q is unknown: the arguments are %s", Clip(name, 64), strings.Join(known, ", "))
}

// nearestName returns the name in names that name probably misspells; "" if none is near.
func nearestName(name string, names []string) string {
	name = plainName(Clip(name, 64))
	best, least := "", 1+max(1, len(name)/3)
	for _, n := range names {
		if d := spelling.Distance(name, plainName(n)); d < least {
			best, least = n, d
		}
	}
	if best != "" {
		return best
	}
	for _, n := range names {
		if p := plainName(n); len(name) >= 3 && (strings.Contains(p, name) || strings.Contains(name, p)) {
			return n
		}
	}
	return ""
}

// plainName returns a name in lower case and without separators, so that fileName, file-name and
// file_name are equal.
func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// Clip keeps at most n bytes of a text, without splitting a character, and marks a cut with "…". It
// is for errors and for people.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Beginning(s, n) + "…"
}

// Beginning returns at most the first n bytes of a text, without splitting a character.
func Beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// OneLine returns a text as one short line, for use within a sentence.
func OneLine(text string) string {
	const most = 120
	return Clip(strings.Join(strings.Fields(strings.ReplaceAll(text, "\x00", "…")), " "), most)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
