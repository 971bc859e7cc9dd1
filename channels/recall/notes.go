package recall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/sessions/search"
	"parley/sessions/search/sight"
	"parley/tools"
	"parley/tools/recall"
)

// The limits for searching everything other than the conversations.
const (
	maxNotes         = 5 // passages from memories, and as many from the knowledge folder
	maxMemory        = 1 << 20
	maxFiles         = 2000
	maxFileBytes     = 1 << 20  // of one file
	maxKnowledge     = 16 << 20 // of all files together
	knowledgeTimeout = 2 * time.Second
	memoryFile       = "MEMORY.md" // the memory of a session, in its workspace
	knowledgeName    = "knowledge" // the name under which agents know the operator's folder
)

// notes finds passages in memories, and in the operator's folder. Nobody knows when a memory was written, so no
// memories are found if the request limits the time. cut says that only a part of the folder was searched.
func (f *Finder) notes(ctx context.Context, who sight.Asker, r request) (found []recall.Passage, cut bool, err error) {
	words := search.WordsOf(r.Words)
	if len(words) == 0 {
		return nil, false, nil
	}
	if r.Since.IsZero() && r.Until.IsZero() {
		if found, err = f.memories(ctx, who, r, words); err != nil {
			return nil, false, err
		}
	}
	known, cut := f.knowledge(ctx, who.Session, r, words)
	return append(found, known...), cut, nil
}

// A paragraph is a piece of a text, with the number of searched words that it contains.
type paragraph struct {
	text      string
	wordCount int
}

// paragraphs returns the paragraphs of a text that contain some of the words, those with the most words first.
func paragraphs(text string, words []search.Word) (found []paragraph) {
	for p := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if p = strings.TrimSpace(p); p == "" {
			continue
		}
		if passage, has := search.Passage(p, words); has > 0 {
			found = append(found, paragraph{passage, has})
		}
	}
	slices.SortStableFunc(found, func(a, b paragraph) int { return b.wordCount - a.wordCount })
	return found
}

// memories finds passages in the memories that the agent may read in this conversation, at most maxNotes.
func (f *Finder) memories(ctx context.Context, who sight.Asker, r request, words []search.Word) (found []recall.Passage, err error) {
	type memory struct {
		text, where string
		untrusted   bool
	}
	var all []memory
	if text := f.sessionMemory(who.Session); text != "" {
		all = append(all, memory{text, textOfConversation, false}) // whether it is marked is decided by what the tool says it touches
	}
	scopes := []struct{ scope, owner, where string }{{channels.ScopeAgent, r.Agent, textOfAgent}}
	if who.Private && len(who.Accounts) > 0 {
		scopes = append(scopes, struct{ scope, owner, where string }{channels.ScopePerson, r.Person, textOfPerson})
	}
	for _, s := range scopes {
		if s.owner == "" {
			continue
		}
		text, untrusted, err := f.cfg.Book.Memory(ctx, s.scope, s.owner)
		if err != nil {
			return nil, fmt.Errorf("read what is remembered: %w", err)
		}
		all = append(all, memory{text, s.where, untrusted})
	}
	for _, m := range all {
		for _, p := range paragraphs(m.text, words) {
			found = append(found, recall.Passage{Text: p.text, Where: m.where, Origin: recall.Memory, Untrusted: m.untrusted})
		}
	}
	return found[:min(len(found), maxNotes)], nil
}

// sessionMemory returns what the agent has kept for a conversation, at most the first maxMemory bytes; "" if there is
// nothing, or if the workspaces are not available, as in a gateway.
func (f *Finder) sessionMemory(session string) string {
	if f.cfg.Files == nil {
		return ""
	}
	files, err := f.cfg.Files(session)
	if err != nil {
		return ""
	}
	return readText(files, memoryFile, maxMemory)
}

// readText returns the beginning of a text file, at most most bytes; "" if it can't be read or is not text.
func readText(files fs.FS, name string, most int64) string {
	file, err := files.Open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	content, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil || tools.IsBinary(content[:min(len(content), tools.SniffBytes)]) {
		return ""
	}
	return strings.ToValidUTF8(string(content), "") // the last character may have been cut
}

// errEnough ends the walk through the operator's folder.
var errEnough = errors.New("enough was read")

// knowledge finds passages in the text files in the operator's folder, within limits on files, bytes and time. cut
// says that a limit ended the search before everything was read.
func (f *Finder) knowledge(ctx context.Context, session string, r request, words []search.Word) (found []recall.Passage, cut bool) {
	if f.cfg.Knowledge == nil {
		return nil, false
	}
	files := f.cfg.Knowledge(session)
	if files == nil {
		return nil, false
	}
	type place struct {
		paragraph
		name string
		at   time.Time
	}
	var all []place
	until, read, seen := time.Now().Add(knowledgeTimeout), int64(0), 0
	walked := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil || time.Now().After(until) {
			return errEnough
		}
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return nil //nolint:nilerr // files that can't be read are skipped
		}
		if seen == maxFiles || read >= maxKnowledge {
			return errEnough
		}
		seen++
		info, err := d.Info()
		if err != nil || !r.Since.IsZero() && info.ModTime().Before(r.Since) || !r.Until.IsZero() && !info.ModTime().Before(r.Until) {
			return nil //nolint:nilerr // as above
		}
		text := readText(files, name, maxFileBytes)
		read += int64(len(text))
		cut = cut || text != "" && info.Size() > maxFileBytes
		for _, p := range paragraphs(text, words) {
			all = append(all, place{p, name, info.ModTime()})
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b place) int { return b.wordCount - a.wordCount })
	for _, p := range all[:min(len(all), maxNotes)] {
		found = append(found, recall.Passage{
			Text: p.text, When: p.at.UTC().Format(time.RFC3339), Where: path.Join(knowledgeName, p.name), Origin: recall.Knowledge,
		})
	}
	return found, cut || errors.Is(walked, errEnough)
}
