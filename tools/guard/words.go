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
	// maxWords bounds how many different words of a call are given.
	maxWords = 20_000
	// maxName is the longest name of a file that there can be, in bytes.
	maxName = 4096
)

// Words are the words by which a call may name files: the texts among its arguments, the
// words within them, and those of a shell line as its programs get them. Folders are
// those by which it may name the folder from which others are meant: of a command every
// word, else whole arguments. It fails where there are too many: a file that is not
// looked at might change unseen.
func Words(call tools.Call) (words, folders []string, err error) {
	var args any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, nil, fmt.Errorf("read the arguments: %w", err)
	}
	texts := textsIn(args, nil)
	words = slices.Clone(texts)
	for _, text := range texts {
		words = append(words, strings.FieldsFunc(text, parts)...)
	}
	var line shellline.Line
	switch a := read(call); call.Name {
	case execShell:
		line = shellline.Parse(a.Command)
	case spawn:
		line = shellline.ParseArgs(a.Command, a.Args)
	}
	for _, word := range line.Words {
		// What stands before the rest of a name may be a folder: $PWD/run.sh.
		for piece := range strings.SplitSeq(word, shellline.Hole) {
			words = append(words, piece, strings.TrimLeft(piece, "/"))
			for i, c := range piece {
				if parts(c) { // --file=NAME, @NAME
					words = append(words, piece[:i], piece[i+1:])
				}
			}
		}
	}
	tooLong := func(word string) bool { return len(word) > maxName }
	words = slices.DeleteFunc(words, tooLong)
	slices.Sort(words)
	if words = slices.Compact(words); len(words) > maxWords {
		return nil, nil, fmt.Errorf("they have %d different words, and more than %d are not looked up as names of files", len(words), maxWords)
	}
	if call.Name == execShell || call.Name == spawn {
		return words, words, nil
	}
	return words, slices.DeleteFunc(texts, tooLong), nil
}

// parts tells what stands between names in a text.
func parts(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;|&<>()=:,@", r) }

// textsIn adds all texts of a JSON value.
func textsIn(value any, texts []string) []string {
	switch v := value.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, one := range v {
			texts = textsIn(one, texts)
		}
	case map[string]any:
		for _, one := range v {
			texts = textsIn(one, texts)
		}
	}
	return texts
}
