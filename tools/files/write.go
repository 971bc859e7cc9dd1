package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"parley/tools"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the whole new content"`
}

func (b fileTools) writeFile() tools.Tool {
	about := "Write a text file of the workspace. What was in it before is replaced; missing directories are made. To change part of a file use edit_file."
	touch := func(a writeArgs) tools.Touch {
		return tools.Touch{Subject: tools.Paths{a.Path}, Reads: tools.NoFiles{}, Writes: tools.Paths{a.Path}, Outward: tools.NothingOutward{}}
	}
	spec := fileSpec("write_file", about, tools.Idempotent, tools.FileWrite, tools.Touches(touch))
	spec.Shows = b.showWrite
	return tools.New(spec, func(ctx context.Context, call tools.Call, args writeArgs) (any, error) {
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, tools.DirError(err)
		}
		if err := dir.Write(args.Path, []byte(args.Content)); err != nil {
			return nil, tools.DirError(err)
		}
		return writeMessage(len(args.Content), args.Path), nil
	})
}

type editArgs struct {
	Path    string `json:"path" jsonschema:"file, relative to the workspace"`
	OldText string `json:"old_text" jsonschema:"text that occurs exactly once in the file, with enough around it to be unique"`
	NewText string `json:"new_text" jsonschema:"what stands in its place afterwards"`
}

func (b fileTools) editFile() tools.Tool {
	about := "Replace a text in a file of the workspace. old_text must occur exactly once, to the letter: read the file first and give enough lines around the change. To make a new file use write_file."
	touch := func(a editArgs) tools.Touch {
		return tools.Touch{Subject: tools.Paths{a.Path}, Reads: tools.Paths{a.Path}, Writes: tools.Paths{a.Path}, Outward: tools.NothingOutward{}}
	}
	spec := fileSpec("edit_file", about, tools.Reconcilable, tools.FileWrite, tools.Touches(touch))
	spec.Shows = tools.Shows(showEdit)
	return tools.New(spec, b.edit, tools.Reconcile(b.reconcileEdit))
}

func (b fileTools) edit(ctx context.Context, call tools.Call, args editArgs) (any, error) {
	if args.OldText == "" {
		return nil, tools.Errorf(tools.InvalidArgs, "old_text is empty: give the text to replace, or use write_file to write the whole file")
	}
	if args.OldText == args.NewText {
		return nil, tools.Errorf(tools.InvalidArgs, "old_text and new_text are the same: nothing would change")
	}
	dir, err := b.open(ctx, call)
	if err != nil {
		return nil, tools.DirError(err)
	}
	err = dir.Update(args.Path, maxFileBytes, func(old []byte) ([]byte, error) {
		if old == nil {
			return nil, tools.Errorf(tools.FileNotFound, "%q does not exist: list_directory and glob show what's there, write_file makes a new file", shorten(args.Path))
		}
		return replaceOnce(old, args)
	})
	if err != nil {
		return nil, tools.DirError(err)
	}
	return editMessage(args), nil
}

func editMessage(args editArgs) map[string]string {
	return map[string]string{"message": "Successfully edited " + args.Path}
}

// replaceOnce returns a file's content after an edit. It fails unless old_text, the text to
// replace, occurs exactly once.
func replaceOnce(old []byte, args editArgs) ([]byte, error) {
	at := occurrences(old, args.OldText)
	switch {
	case len(at) == 1:
		rest := old[at[0]+len(args.OldText):]
		return append(append(append(make([]byte, 0, len(old)+len(args.NewText)), old[:at[0]]...), args.NewText...), rest...), nil
	case len(at) > 1:
		return nil, tools.Errorf(tools.InvalidArgs, "old_text occurs %d times in %q: give more of the text around it, so that it occurs once", len(at), shorten(args.Path))
	case bytes.Contains(old, []byte("\r\n")) && len(occurrences(bytes.ReplaceAll(old, []byte("\r\n"), []byte("\n")), args.OldText)) > 0:
		return nil, tools.Errorf(tools.InvalidArgs, `old_text does not occur in %q, whose lines end in \r\n: write its line ends so`, shorten(args.Path))
	}
	return nil, tools.Errorf(tools.InvalidArgs, "old_text does not occur in %q: read the file and copy the text to the letter, with its blanks and line ends", shorten(args.Path))
}

// occurrences returns the offsets at which a text occurs, including overlapping ones, because if
// two overlap it is just as unclear which one is meant. It stops at a million.
//
// It takes time in proportion to the sum of both lengths (Knuth, Morris and Pratt). A simple search
// would take their product if both repeat one letter.
func occurrences(in []byte, text string) []int {
	start := bytes.Index(in, []byte(text))
	if start < 0 || text == "" { // the tool refuses an empty text before
		return nil
	}
	back := prefixLengths(text)
	var at []int
	for i, have := start, 0; i < len(in) && len(at) < 1_000_000; i++ {
		for have > 0 && in[i] != text[have] {
			have = int(back[have-1])
		}
		if in[i] == text[have] {
			have++
		}
		if have == len(text) {
			at = append(at, i+1-have)
			have = int(back[have-1])
		}
	}
	return at
}

// prefixLengths returns, for each prefix of a text, the length of its longest proper suffix that is
// also a prefix of the text.
func prefixLengths(text string) []int32 {
	back := make([]int32, len(text))
	for i, have := 1, 0; i < len(text); i++ {
		for have > 0 && text[i] != text[have] {
			have = int(back[have-1])
		}
		if text[i] == text[have] {
			have++
		}
		back[i] = int32(have)
	}
	return back
}

// errUnclear says that a file's content doesn't show whether an edit was made: the content could be
// the same before and after it, or is neither.
var errUnclear = errors.New("the file does not show whether the edit was made")

// reconcileEdit finds out whether an edit was made when its call was cut off. Writes replace the
// whole file, so without the edit the file contains old_text exactly once, and with it new_text in
// that place.
func (b fileTools) reconcileEdit(ctx context.Context, call tools.Call, args editArgs) (any, bool, error) {
	dir, err := b.open(ctx, call)
	if err != nil {
		return nil, false, err
	}
	content, err := readWhole(dir, args.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, false, nil // nothing was edited, and running the edit reports why
	}
	if err != nil {
		return nil, false, err
	}
	done, err := isApplied(content, args)
	return editMessage(args), done, err
}

// isApplied reports whether content is what a file contains after an edit. It returns errUnclear if
// that cannot be told.
func isApplied(content []byte, args editArgs) (bool, error) {
	if args.OldText == "" || args.OldText == args.NewText {
		return false, nil // never made
	}
	old := occurrences(content, args.OldText)
	if args.NewText == "" {
		if len(old) == 0 {
			return false, errUnclear // old_text was removed, or was never there
		}
		return false, nil
	}
	made := occurrences(content, args.NewText)
	if len(old) == 0 {
		if len(made) > 1 {
			return false, errUnclear
		}
		return len(made) == 1, nil
	}
	// new_text may contain old_text, or form one together with the text around it.
	for _, at := range made {
		if at < old[0]+len(args.OldText) && old[len(old)-1] < at+len(args.NewText) {
			return false, errUnclear
		}
	}
	return false, nil
}

// readWhole returns a file's content. It fails with fs.ErrInvalid if the file is longer than
// maxFileBytes.
func readWhole(dir Dir, path string) (content []byte, err error) {
	file, err := dir.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(content) > maxFileBytes {
		err = fs.ErrInvalid // edit_file refuses such a file, too
	}
	return content, err
}
