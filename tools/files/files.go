// Package files is the tools that read, write and find files in a session's workspace.
//
// They work through a Dir, so the same tools serve a directory on this machine, in a
// sandbox or in another place. The Dir decides which paths may be used; the tools only
// turn its errors into codes.
//
// The files: files.go lists the tools, and has list_directory; read.go, write.go, glob.go,
// grep.go and patch.go are the other tools, and document.go is read_file of what is no text; diff.go reads a patch and hunks.go finds where
// it goes; pattern.go turns patterns of paths into regular expressions, and scan.go
// searches lines.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"
	"unicode/utf8"

	"parley/tools"
	"parley/tools/documents/pages"
)

// A Dir is a directory with all that is in it. It should also be an fs.ReadDirFS and an
// fs.StatFS, as its Open need not open directories.
//
// The model is shown its errors as they are, so they must not name paths of the host.
// errors.Is tells them apart: fs.ErrInvalid for a path that cannot be used,
// fs.ErrNotExist, fs.ErrPermission, and any other.
type Dir interface {
	fs.FS
	// Name turns a path that a model gives into a name for fs.FS.
	Name(path string) (string, error)
	// Write replaces a file's content whole or not at all. It makes the file and its
	// directories if they are missing.
	Write(name string, content []byte) error
	// Update replaces a file's content, of at most limit bytes, by what change makes of
	// it, without another write in between. Old is nil if the file is missing. An error
	// of change is returned as it is.
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
	// Remove removes a file; one that is missing is gone already.
	Remove(name string) error
}

// maxWhole bounds how much of a file is read into memory.
const maxWhole = 16 << 20

// New makes the tools. Open returns the directory of a call's session. Documents reads
// files that are no text; nil is nothing.
func New(open func(ctx context.Context, call tools.Call) (Dir, error), documents pages.Reader) []tools.Tool {
	b := fileTools{open: open, documents: documents}
	return []tools.Tool{b.readFile(), b.writeFile(), b.editFile(), b.applyPatch(), b.listDirectory(), b.glob(), b.grep()}
}

type fileTools struct {
	open      func(ctx context.Context, call tools.Call) (Dir, error)
	documents pages.Reader
}

// spec is a Spec with the timeouts of the file tools.
func spec(name, description string, effect tools.Effect, permission tools.Permission) tools.Spec {
	return tools.Spec{
		Name: name, Description: description, Effect: effect, Permission: permission,
		Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
	}
}

// asToolError is an error of a Dir as the model reads it.
func asToolError(err error) error {
	if known, ok := errors.AsType[*tools.Error](err); ok {
		return known
	}
	code := tools.ExecutionFailed
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrInvalid):
		code = tools.InvalidPath
	case errors.Is(err, fs.ErrNotExist):
		return tools.Errorf(tools.FileNotFound, "%v: list_directory and glob show what there is", err)
	case errors.Is(err, fs.ErrPermission):
		code = tools.PermissionDenied
	}
	return tools.Errorf(code, "%v", err)
}

type pathArgs struct {
	Path string `json:"path" jsonschema:"directory, relative to the workspace; . is the workspace itself"`
}

type entry struct {
	Name  string `json:"name"`
	IsDir bool   `json:"is_dir"`
	Size  int64  `json:"size"`
}

func (b fileTools) listDirectory() tools.Tool {
	about := "List one directory of the workspace: name, is_dir and size in bytes of each entry, sorted by name. Not recursive: use glob to find files in subdirectories."
	return tools.New(spec("list_directory", about, tools.Pure, tools.FileRead), func(ctx context.Context, call tools.Call, args pathArgs) (any, error) {
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, asToolError(err)
		}
		list, err := fs.ReadDir(dir, orDot(args.Path))
		if err != nil {
			return nil, asToolError(err)
		}
		entries := make([]entry, 0, len(list))
		for _, e := range list {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			entries = append(entries, describe(dir, orDot(args.Path), e))
		}
		return map[string]any{"entries": entries}, nil
	})
}

// orDot is path, or the workspace itself if path is empty.
func orDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// describe is a directory entry for the model. It follows a symbolic link; one that leads
// nowhere, or out of the workspace, has only a name.
func describe(dir fs.FS, parent string, e fs.DirEntry) entry {
	out := entry{Name: e.Name(), IsDir: e.IsDir()}
	var info fs.FileInfo
	var err error
	if e.Type()&fs.ModeSymlink != 0 {
		info, err = fs.Stat(dir, parent+"/"+e.Name())
	} else {
		info, err = e.Info()
	}
	if err == nil {
		out.IsDir = info.IsDir()
		if info.Mode().IsRegular() {
			out.Size = info.Size()
		}
	}
	return out
}

// sniffed is how many bytes of a file decide whether it is text.
const sniffed = 8 << 10

// isBinary tells whether a file that begins like this is no text. It allows for some
// invalid bytes, as the last character may be cut.
func isBinary(start []byte) bool {
	broken := 0
	for i := 0; i < len(start); {
		r, size := utf8.DecodeRune(start[i:])
		if start[i] == 0 {
			return true
		}
		if r == utf8.RuneError && size == 1 {
			broken++
		}
		i += size
	}
	return broken > 3 && broken*10 > len(start)*3
}

// beginning reads the start of a file.
func beginning(file io.Reader) ([]byte, error) {
	start := make([]byte, sniffed)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return start[:n], nil
}

// notText says that a file that begins so is no text.
func notText(path string, size int64, start []byte) error {
	return tools.Errorf(tools.ExecutionFailed, "%q is no text (%s, %d bytes): it cannot be read or edited as text", short(path), http.DetectContentType(start), size)
}

// short is a text short enough for an error.
func short(s string) string {
	const most = 120
	return tools.Clip(s, most)
}

// wrote is the result of a write.
func wrote(n int, path string) map[string]string {
	return map[string]string{"message": fmt.Sprintf("Successfully wrote %d bytes to %s", n, path)}
}
