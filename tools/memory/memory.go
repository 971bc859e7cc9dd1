// Package memory is the tools that keep what an agent is to remember, as a file in the session's workspace.
//
// The file is plain Markdown that people and the file tools may edit too.
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

// File is the name of the file.
const File = "MEMORY.md"

// MaxBytes bounds the file: what is remembered goes into every prompt.
const MaxBytes = 1 << 20

// A Dir is where the file is.
type Dir interface {
	fs.FS
	// Write replaces a file's content whole or not at all.
	Write(name string, content []byte) error
	// Update does so with content of at most limit bytes by what change makes of
	// it, and no other write comes between. Old is nil if the file is missing.
	// An error of change is returned as it is.
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
}

// New makes memory_read and memory_write. Open gives a call its session's directory.
func New(open func(ctx context.Context, call tools.Call) (Dir, error)) []tools.Tool {
	k := keeper{open: open}
	return []tools.Tool{
		tools.New(tools.Spec{
			Name: "memory_read", Effect: tools.Pure, Permission: tools.FileRead, Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
			Description: "Read what was kept with memory_write, in this conversation or before it. With a query, only the paragraphs that hold it.",
		}, k.read),
		tools.New(tools.Spec{
			Name: "memory_write", Effect: tools.Reconcilable, Permission: tools.FileWrite, Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
			Description: "Keep something for later conversations: facts, preferences, decisions, in short paragraphs. mode append (default) adds a paragraph; overwrite replaces all of the memory, so read it first.",
		}, k.write, tools.Effects(effect), tools.Reconcile(k.written)),
	}
}

type keeper struct {
	open func(ctx context.Context, call tools.Call) (Dir, error)
}

type readArgs struct {
	Query string `json:"query,omitempty" jsonschema:"text to look for, in any case; left out: everything"`
}

type writeArgs struct {
	Content string `json:"content" jsonschema:"what to keep, as Markdown"`
	Mode    string `json:"mode,omitempty" enum:"append,overwrite" jsonschema:"append (default) or overwrite"`
}

type found struct {
	Query   string   `json:"query"`
	Matches []string `json:"matches"`
	Count   int      `json:"count"`
}

func (k keeper) read(ctx context.Context, call tools.Call, args readArgs) (any, error) {
	content, err := k.content(ctx, call)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]string{"content": "", "message": "No memory file found"}, nil
	case err != nil:
		return nil, failure(err)
	case args.Query == "":
		return map[string]string{"content": text(content)}, nil
	}
	matches := matching(text(content), args.Query)
	return found{args.Query, matches, len(matches)}, nil
}

// text is what any bytes are in a result.
func text(content []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(content), "\uFFFD"), "\x00", "\uFFFD")
}

// matching are the paragraphs, parted by blank lines, that hold the query.
func matching(content, query string) []string {
	query = strings.ToLower(query)
	matches := []string{}
	for _, paragraph := range regexp.MustCompile(`\r?\n(?:[ \t]*\r?\n)+`).Split(content, -1) {
		if paragraph = strings.TrimSpace(paragraph); strings.Contains(strings.ToLower(paragraph), query) {
			matches = append(matches, paragraph)
		}
	}
	return matches
}

// content is the whole file, or fs.ErrNotExist.
func (k keeper) content(ctx context.Context, call tools.Call) (content []byte, err error) {
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

func effect(args writeArgs) tools.Effect {
	if args.Mode == "overwrite" {
		return tools.Idempotent
	}
	return tools.Reconcilable
}

func (k keeper) write(ctx context.Context, call tools.Call, args writeArgs) (any, error) {
	dir, err := k.open(ctx, call)
	if err != nil {
		return nil, failure(err)
	}
	switch {
	case args.Mode == "overwrite": // the way out where the old one has become too long
		content, wrong := fitting([]byte(args.Content))
		if err = wrong; err == nil {
			err = dir.Write(File, content)
		}
	case strings.TrimSpace(args.Content) == "":
		err = tools.Errorf(tools.InvalidArgs, "content is empty: give what is to be kept")
	default:
		err = dir.Update(File, MaxBytes, func(old []byte) ([]byte, error) { return appended(old, args.Content) })
	}
	if err != nil {
		return nil, failure(err)
	}
	return done(args), nil
}

func done(args writeArgs) map[string]string {
	mode := args.Mode
	if mode == "" {
		mode = "append"
	}
	return map[string]string{
		"message": fmt.Sprintf("Successfully wrote %d bytes to memory (mode: %s)", len(args.Content), mode),
		"path":    File,
	}
}

// appended puts a paragraph behind the others.
func appended(old []byte, content string) ([]byte, error) {
	old = bytes.TrimRight(old, " \t\r\n")
	if len(old) == 0 {
		return fitting([]byte(content))
	}
	return fitting(append(append(bytes.Clone(old), "\n\n"...), content...))
}

func fitting(content []byte) ([]byte, error) {
	if len(content) > MaxBytes {
		return nil, tools.Errorf(tools.ExecutionFailed, "the memory would have %d bytes, at most %d are allowed: read it and write what still matters with mode overwrite", len(content), MaxBytes)
	}
	return content, nil
}

// written finds out whether an append that was cut off has happened. The file
// is whole either way, and nothing else of the session has run since: so it has
// if the paragraph stands at the end. Where an earlier one said the same, it is
// not said twice.
func (k keeper) written(ctx context.Context, call tools.Call, args writeArgs) (any, bool, error) {
	content, err := k.content(ctx, call)
	_, tooLong := errors.AsType[*tools.Error](err)
	if tooLong || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, false, nil // nothing was appended, and running it says why
	}
	if err != nil {
		return nil, false, err
	}
	before, ends := bytes.CutSuffix(content, []byte(args.Content))
	if !ends || args.Content == "" || len(before) > 0 && !bytes.HasSuffix(before, []byte("\n\n")) {
		return nil, false, nil
	}
	return done(args), true, nil
}

// failure is an error as the model reads it.
func failure(err error) error {
	if known, ok := errors.AsType[*tools.Error](err); ok {
		return known
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrInvalid):
		return tools.Errorf(tools.InvalidPath, "%v", err)
	case errors.Is(err, fs.ErrPermission):
		return tools.Errorf(tools.PermissionDenied, "%v", err)
	}
	return tools.Errorf(tools.ExecutionFailed, "%v", err)
}
