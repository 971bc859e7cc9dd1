package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/guard/shellline"
)

const (
	// maxWords limits how many different words of a call are returned.
	maxWords = 20_000
	// maxName is the maximum length of a file's name, in bytes.
	maxName = 4096
)

// FileWords returns the words with which a call may name files: the strings among its arguments,
// the words within them, and the words of a shell line in the form in which its programs get them.
// folders are the words that may name the folder to which other names are relative: every word of a
// command, and otherwise whole arguments. FileWords fails if there are too many words, because a
// file that is not checked might change unseen.
func FileWords(call tools.Call) (words, folders []string, err error) {
	var args any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, nil, fmt.Errorf("read the arguments: %w", err)
	}
	texts := collectTexts(args, nil)
	words = slices.Clone(texts)
	for _, text := range texts {
		words = append(words, strings.FieldsFunc(text, isSeparator)...)
	}
	of := call.Touch().Subject
	for _, word := range lineOf(of).Words {
		// The text before a Hole may be a folder, as in $PWD/run.sh.
		for piece := range strings.SplitSeq(word, shellline.Hole) {
			words = append(words, piece, strings.TrimLeft(piece, "/"))
			for i, c := range piece {
				if isSeparator(c) { // --file=NAME, @NAME
					words = append(words, piece[:i], piece[i+1:])
				}
			}
		}
	}
	tooLong := func(word string) bool { return len(word) > maxName }
	words = slices.DeleteFunc(words, tooLong)
	slices.Sort(words)
	if words = slices.Compact(words); len(words) > maxWords {
		return nil, nil, fmt.Errorf("they have %d different words, and the guard looks up at most %d as file names", len(words), maxWords)
	}
	switch of.(type) {
	case tools.ShellLine, tools.Command:
		return words, words, nil
	}
	return words, slices.DeleteFunc(texts, tooLong), nil
}

// isSeparator reports whether a character separates names in a text.
func isSeparator(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;|&<>()=:,@", r) }

// collectTexts appends to texts all strings in a JSON value, but not the names of fields.
func collectTexts(value any, texts []string) []string {
	switch v := value.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, one := range v {
			texts = collectTexts(one, texts)
		}
	case map[string]any:
		for _, one := range v {
			texts = collectTexts(one, texts)
		}
	}
	return texts
}
