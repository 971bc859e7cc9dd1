package search

import (
	"slices"
	"strings"
)

// Passage returns the part of a text around the first of some words, at most MaxPassage bytes, and how many
// of the words occur in the text; "" and 0 if none does. It is for texts that are in no log.
func Passage(text string, words []Word) (passage string, has int) {
	found, first := map[int]bool{}, -1
	for t := range tokens(text) {
		for i, w := range words {
			if !found[i] && slices.Contains(w.Forms, t.stemmed) {
				if found[i] = true; first < 0 {
					first = t.from
				}
			}
		}
		if len(found) == len(words) {
			break
		}
	}
	if len(found) == 0 {
		return "", 0
	}
	if len(text) > MaxPassage {
		from := max(0, min(first-MaxPassage/4, len(text)-MaxPassage))
		text = strings.TrimSpace(strings.ToValidUTF8(text[from:min(len(text), from+MaxPassage)], ""))
	}
	return text, len(found)
}
