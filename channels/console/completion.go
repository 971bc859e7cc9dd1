package console

import (
	"slices"
	"strings"

	"parley/channels/console/typedfiles"
)

// localCommands are the commands that the terminal carries out itself.
func localCommands() []string {
	return append([]string{"clear", "quit", "exit"}, terminalOnlyCommands()...)
}

// terminalOnlyCommands are the local commands that Config.RunTerminalCommand carries out.
func terminalOnlyCommands() []string { return []string{"sessions", "model", "recall"} }

// keysHelp says what keys mean while a line is typed.
const keysHelp = `Keys here: Tab completes a command or a file · @path attaches a file or picture, and so does dropping it here · ↑ and ↓ bring back what you typed, Ctrl-R searches it · Ctrl-J or Shift-Enter begins a new line · Ctrl-C clears the line and stops an answer · Ctrl-L or /clear clears the screen · Ctrl-D or /quit exits
Commands here: /sessions lists your conversations, /sessions N opens one · /recall WORDS finds what was said · /model says which model answers, and how to change that`

// matchingCommands returns the commands that a typed line may become, each with its slash, sorted; none if the line is not
// the beginning of a command.
func matchingCommands(line string, commands []string) []string {
	begun, is := strings.CutPrefix(line, "/")
	if !is || strings.ContainsAny(begun, " \t\n") {
		return nil
	}
	var all []string
	for _, name := range commands {
		if strings.HasPrefix(name, strings.ToLower(begun)) {
			all = append(all, "/"+name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wordToComplete returns where the word that Tab would complete begins in a typed line, and what the word may
// become: a command, or the @path of a file.
func wordToComplete(line string, commands []string) (at int, may []string) {
	if may = matchingCommands(line, commands); len(may) > 0 {
		return 0, may
	}
	return typedfiles.Complete(line)
}

// complete returns a typed line extended by whatever all its possible completions have in common. If there is only
// one completion, a space follows it.
func complete(line string, may []string) string {
	switch len(may) {
	case 0:
		return line
	case 1:
		if strings.HasSuffix(may[0], "/") { // a folder: the file in it must still be named
			return may[0]
		}
		return may[0] + " "
	}
	common := may[0]
	for _, other := range may[1:] {
		for !strings.HasPrefix(other, common) {
			common = common[:len(common)-1]
		}
	}
	return max(line, common) // a line with capital letters stays as it is
}

// A search looks through previously typed lines, from the newest to the oldest.
type search struct {
	words      string // the words to look for
	foundLine  int    // the line that was found, as an index of the history's lines; -1 if there is none
	lineBefore string // what was in the line before the search
}

// find returns the index of the newest line before an index that contains the words, in any case; -1 if there is
// none.
func (s *search) find(lines []string, before int) int {
	for i := before - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(lines[i]), strings.ToLower(s.words)) {
			return i
		}
	}
	return -1
}
