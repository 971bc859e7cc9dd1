package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"parley/tools"
	"parley/tools/documents/pages"
	"parley/tools/plainjson"
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"file, relative to the workspace"`
	Offset int    `json:"offset,omitempty" jsonschema:"number of the first line to read, counted from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to read; left out: to the end"`
	Pages  string `json:"pages,omitempty" jsonschema:"of a document: which pages to read, as 3, 2-5 or 7-; left out: from the first on, as many as fit"`
}

// touch says what a call of read_file touches.
func (a readArgs) touch() tools.Touch {
	return tools.Touch{Subject: tools.Paths{a.Path}, Reads: tools.Paths{a.Path}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
}

// readToolName is the name of the tool that readFile makes.
const readToolName = "read_file"

// Reading returns the call by which an agent would read a file itself, for a call that does
// something else with the file, such as sending it: what must not be read must not be sent either.
func Reading(call tools.Call, path string) tools.Call {
	args, err := plainjson.Marshal(map[string]string{"path": path})
	if err != nil { // a string always marshals
		panic(err)
	}
	call.Name, call.Args, call.Touches = readToolName, args, tools.Touches(readArgs.touch)
	return call
}

func (b fileTools) readFile() tools.Tool {
	about := "Read a text file of the workspace. Give offset and limit (in lines) to read part of a long file; grep finds the lines that matter. The content comes back exactly as it is, fit to be used with edit_file. " +
		b.documentsHint()
	s := fileSpec(readToolName, about, tools.Pure, tools.FileRead, tools.Touches(readArgs.touch))
	s.Timeout = s.MaxTimeout // documents take longer than texts
	return tools.New(s, func(ctx context.Context, call tools.Call, args readArgs) (any, error) {
		if args.Offset < 0 || args.Limit < 0 {
			return nil, tools.Errorf(tools.InvalidArgs, "offset and limit count lines: give offset from 1, limit from 1, or leave them out")
		}
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, tools.DirError(err)
		}
		result, err := b.read(ctx, dir, args)
		if err != nil {
			return nil, tools.DirError(err)
		}
		return result, nil
	})
}

// read returns lines of a text or, if the file is a document such as PDF, pages of its text.
func (b fileTools) read(ctx context.Context, dir Dir, args readArgs) (result any, err error) {
	file, err := dir.Open(args.Path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	start, err := readStart(file)
	if err != nil {
		return nil, err
	}
	whole := cancelableReader(ctx, io.MultiReader(bytes.NewReader(start), file))
	if kind := b.documentKind(args, start); kind != pages.None {
		return b.readDocument(ctx, kind, args, info.Size(), start, whole)
	}
	switch {
	case info.Size() > maxFileBytes && args.Limit == 0:
		return nil, tools.Errorf(tools.ExecutionFailed,
			"%q has %d bytes, too many to read at once (at most %d): read part of it with offset and limit, or find lines in it with grep", shorten(args.Path), info.Size(), maxFileBytes)
	case tools.IsBinary(start):
		return nil, notTextError(args.Path, info.Size(), start)
	}
	content, err := readLines(bufio.NewReaderSize(whole, 64<<10), args)
	if err != nil {
		return nil, err
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(content, "\uFFFD"), "\x00", "\uFFFD")
	return tools.Typed{Value: map[string]string{"content": text}, Field: "content", MIME: mimeOf(args.Path)}, nil
}

// readLines reads the lines that args ask for, at most maxFileBytes in all.
func readLines(from *bufio.Reader, args readArgs) (string, error) {
	first := max(args.Offset, 1)
	var out strings.Builder
	for line := 1; args.Limit == 0 || line-first < args.Limit; {
		piece, err := from.ReadSlice('\n')
		if line >= first {
			out.Write(piece)
		}
		switch {
		case errors.Is(err, io.EOF):
			if line < first || line == first && first > 1 && out.Len() == 0 {
				return "", tools.Errorf(tools.InvalidArgs, "offset %d is beyond the end: %q has %d lines", args.Offset, shorten(args.Path), lineCount(line, piece))
			}
			return out.String(), nil
		case err == nil:
			line++
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
		if out.Len() > maxFileBytes {
			return "", tools.Errorf(tools.ExecutionFailed, "these lines of %q have more than %d bytes: give a lower limit, or use grep", shorten(args.Path), maxFileBytes)
		}
	}
	return out.String(), nil
}

// lineCount returns how many lines a file has, if its last piece was read as line number line. If
// piece is empty, the previous line was the last.
func lineCount(line int, piece []byte) int {
	if len(piece) == 0 {
		return line - 1
	}
	return line
}

// A readFunc is a function used as an io.Reader.
type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// cancelableReader returns a reader that fails once ctx has ended, because reading a large file
// may take longer than any deadline.
func cancelableReader(ctx context.Context, from io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return from.Read(p)
	})
}
