// Package memory provides the tools with which an agent remembers things: in a file of the session's workspace, or
// for other sessions, too.
//
// The file is plain Markdown that people and the file tools may edit, too. What is remembered about a person, or by
// the agent, is in a Store that no other tool reaches: see store.go.
package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"parley/tools"
)

// File is the name of the session's memory file.
const File = "MEMORY.md"

// MaxBytes limits the file, because it goes into every prompt.
const MaxBytes = 1 << 20

// A Dir is the directory that contains the memory file.
type Dir interface {
	fs.FS
	// Write replaces a file's whole content, or nothing.
	Write(name string, content []byte) error
	// Update reads a file of at most limit bytes, calls change with its content, and writes what change returns,
	// without another write in between. old is nil if the file is missing. Update returns an error from change
	// unchanged.
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
}

// New makes the tools memory_read and memory_write. open returns the directory of a call's
// session. If store is nil, agents can remember things only for the session.
func New(open func(ctx context.Context, call tools.Call) (Dir, error), store Store) []tools.Tool {
	k := memoryTools{open: open, store: store}
	return []tools.Tool{
		tools.New(tools.Spec{
			Name: "memory_read", Effect: tools.Pure, Permission: tools.FileRead, Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
			Touches:     tools.Touches(readArgs.touch),
			Description: "Read the notes that you have kept with memory_write, in this conversation or before it; what was only said, recall finds. With a query, only the paragraphs that hold it. scope session (default) is this conversation's memory; person, in a private chat alone, that of whom you talk to, on all channels that they have linked; agent that of all your conversations.",
		}, k.read),
		tools.New(tools.Spec{
			Name: "memory_write", Effect: tools.Reconcilable, Permission: tools.FileWrite, Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
			Touches:     tools.Touches(writeArgs.touch),
			Description: "Keep something for later conversations: facts, preferences, decisions, in short paragraphs. mode append (default) adds a paragraph; overwrite replaces all of the memory, so read it first. scope session (default) keeps it for this conversation; person, in a private chat alone, for whom you talk to wherever they do so privately: their preferences, what concerns them; agent for all your conversations with everybody, which only owners may have you write.",
		}, k.write, tools.EffectBy(effectOf), tools.Reconcile(k.reconcileAppend)),
	}
}

type memoryTools struct {
	open  func(ctx context.Context, call tools.Call) (Dir, error)
	store Store
}

type readArgs struct {
	Query string `json:"query,omitempty" jsonschema:"text to look for, in any case; left out: everything"`
	Scope string `json:"scope,omitempty" enum:"session,person,agent" jsonschema:"session (default), person or agent"`
}

type writeArgs struct {
	Content string `json:"content" jsonschema:"what to keep, as Markdown"`
	Mode    string `json:"mode,omitempty" enum:"append,overwrite" jsonschema:"append (default) or overwrite"`
	Scope   string `json:"scope,omitempty" enum:"session,person,agent" jsonschema:"session (default), person or agent"`
}

// touch says what a call of memory_read touches.
func (a readArgs) touch() tools.Touch {
	return tools.Touch{Reads: filesOf(a.Scope), Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
}

// touch says what a call of memory_write touches: writing a memory that other conversations read counts as acting
// on the outside.
func (a writeArgs) touch() tools.Touch {
	t := tools.Touch{Reads: filesOf(a.Scope), Writes: filesOf(a.Scope), Outward: tools.NothingOutward{}}
	if isStored(a.Scope) {
		t.Outward = tools.OutwardEffect("write into a memory that other conversations read")
	}
	return t
}

// filesOf returns the file that contains the memory of a scope. The store is not a file, and itself records what
// strangers may have written.
func filesOf(scope string) tools.Paths {
	if isStored(scope) {
		return nil
	}
	return tools.Paths{File}
}

type queryResult struct {
	Query   string   `json:"query"`
	Matches []string `json:"matches"`
	Count   int      `json:"count"`
}

func (k memoryTools) read(ctx context.Context, call tools.Call, args readArgs) (any, error) {
	if isStored(args.Scope) {
		return k.readStored(ctx, call, args)
	}
	content, err := k.content(ctx, call)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]string{"content": "", "message": "No memory file found"}, nil
	case err != nil:
		return nil, tools.DirError(err)
	}
	return readResult(toText(content), args.Query), nil
}

// readResult returns what memory_read shows the model of a memory: all of it or, if there is a query, the
// paragraphs that contain the query.
func readResult(content, query string) any {
	if query == "" {
		return map[string]string{"content": content}
	}
	matches := matchingParagraphs(content, query)
	return queryResult{query, matches, len(matches)}
}

// toText returns a file's content as text for a result: without NUL bytes, and as valid UTF-8.
func toText(content []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(content), "\uFFFD"), "\x00", "\uFFFD")
}

// matchingParagraphs returns the paragraphs, separated by blank lines, that contain the query.
func matchingParagraphs(content, query string) []string {
	query = strings.ToLower(query)
	matches := []string{}
	for _, paragraph := range regexp.MustCompile(`\r?\n(?:[ \t]*\r?\n)+`).Split(content, -1) {
		if paragraph = strings.TrimSpace(paragraph); strings.Contains(strings.ToLower(paragraph), query) {
			matches = append(matches, paragraph)
		}
	}
	return matches
}

// content returns the whole memory file, or fs.ErrNotExist. It refuses a file of more than MaxBytes.
func (k memoryTools) content(ctx context.Context, call tools.Call) (content []byte, err error) {
	dir, err := k.open(ctx, call)
	if err != nil {
		return nil, err
	}
	file, err := dir.Open(File)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err == nil && len(content) > MaxBytes {
		err = tools.Errorf(tools.ExecutionFailed, "%s has more than %d bytes: read it with read_file, offset and limit, and write a shorter one with memory_write, mode overwrite", File, MaxBytes)
	}
	return content, err
}

// effectOf returns what repeating a write would do. Overwriting is harmless to repeat, and so is any write to the
// store; appending to the file is not.
func effectOf(args writeArgs) tools.Effect {
	if args.Mode == "overwrite" || isStored(args.Scope) {
		return tools.Idempotent
	}
	return tools.Reconcilable
}

func (k memoryTools) write(ctx context.Context, call tools.Call, args writeArgs) (any, error) {
	if isStored(args.Scope) {
		return k.writeStored(ctx, call, args)
	}
	dir, err := k.open(ctx, call)
	if err != nil {
		return nil, tools.DirError(err)
	}
	switch {
	case args.Mode == "overwrite": // this also works when the file has become too long to read
		content, wrong := checkSize([]byte(args.Content), MaxBytes)
		if err = wrong; err == nil {
			err = dir.Write(File, content)
		}
	case strings.TrimSpace(args.Content) == "":
		err = tools.Errorf(tools.InvalidArgs, "content is empty: give what is to be kept")
	default:
		err = dir.Update(File, MaxBytes, func(old []byte) ([]byte, error) { return appendParagraph(old, args.Content, MaxBytes) })
	}
	if err != nil {
		return nil, tools.DirError(err)
	}
	return writeResult(args), nil
}

// writeResult returns what memory_write reports to the model.
func writeResult(args writeArgs) map[string]string {
	mode := args.Mode
	if mode == "" {
		mode = "append"
	}
	said := map[string]string{"message": fmt.Sprintf("Successfully wrote %d bytes to memory (mode: %s)", len(args.Content), mode)}
	if !isStored(args.Scope) {
		said["path"] = File
	}
	return said
}

// appendParagraph returns the memory with one more paragraph at its end. It returns an error if the memory would
// exceed most bytes.
func appendParagraph(old []byte, content string, most int) ([]byte, error) {
	old = bytes.TrimRight(old, " \t\r\n")
	if len(old) == 0 {
		return checkSize([]byte(content), most)
	}
	return checkSize(append(append(bytes.Clone(old), "\n\n"...), content...), most)
}

// checkSize refuses a memory of more than most bytes.
func checkSize(content []byte, most int) ([]byte, error) {
	if len(content) > most {
		return nil, tools.Errorf(tools.ExecutionFailed, "the memory would have %d bytes, at most %d are allowed: read it and write what still matters with mode overwrite", len(content), most)
	}
	return content, nil
}

// reconcileAppend finds out whether an append to the file was made when its call was cut off. Writes replace the
// whole file, and no other call of the session has run since, so the append was made if the paragraph is at the end
// of the file. If an earlier call appended the same paragraph, that counts, too, because it need not be there
// twice.
func (k memoryTools) reconcileAppend(ctx context.Context, call tools.Call, args writeArgs) (any, bool, error) {
	content, err := k.content(ctx, call)
	_, tooLong := errors.AsType[*tools.Error](err)
	if tooLong || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, false, nil // nothing was appended, and running the call reports why
	}
	if err != nil {
		return nil, false, err
	}
	before, ends := bytes.CutSuffix(content, []byte(args.Content))
	if !ends || args.Content == "" || len(before) > 0 && !bytes.HasSuffix(before, []byte("\n\n")) {
		return nil, false, nil
	}
	return writeResult(args), true, nil
}
