// Package files provides the tools that read, write and find files in a session's workspace.
//
// The tools work through a Dir, so the directory may be on this machine, in a sandbox or elsewhere.
// The Dir decides which paths may be used; the tools only turn its errors into error codes.
//
// The files: files.go makes the tools, and contains list_directory; read.go, write.go, glob.go,
// grep.go and patch.go are the other tools; document.go is the part of read_file that reads
// documents; diff.go reads a patch and hunks.go finds where it applies; show.go shows people what a
// write would change; pattern.go turns path patterns into regular expressions, and scan.go searches
// lines.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"parley/tools"
	"parley/tools/documents/pages"
)

// A Dir is a directory, with everything in it, that the tools read and write. It should also be an
// fs.ReadDirFS and an fs.StatFS, because its Open need not open directories.
//
// The model is shown its errors as they are, so they must not contain paths of the host. The tools
// distinguish some errors with errors.Is: fs.ErrInvalid for a path that cannot be used,
// fs.ErrNotExist and fs.ErrPermission.
type Dir interface {
	fs.FS
	// Name turns a path from a model into a name for fs.FS.
	Name(path string) (string, error)
	// Write replaces a file's whole content, or nothing. It creates the file and its directories if
	// they are missing.
	Write(name string, content []byte) error
	// Update reads a file of at most limit bytes, calls change with its content, and writes what
	// change returns, without another write in between. old is nil if the file is missing. Update
	// returns an error from change unchanged.
	Update(name string, limit int64, change func(old []byte) ([]byte, error)) error
	// Remove removes a file; it returns nil if the file is missing.
	Remove(name string) error
}

// maxFileBytes limits how much of a file is read into memory.
const maxFileBytes = 16 << 20

// New makes the tools. open returns the directory of a call's session. documents reads files that
// are not text, such as PDF; it is nil if these cannot be read.
func New(open func(ctx context.Context, call tools.Call) (Dir, error), documents pages.Reader) []tools.Tool {
	b := fileTools{open: open, documents: documents}
	return []tools.Tool{b.readFile(), b.writeFile(), b.editFile(), b.applyPatch(), b.listDirectory(), b.glob(), b.grep()}
}

type fileTools struct {
	open      func(ctx context.Context, call tools.Call) (Dir, error)
	documents pages.Reader
}

// fileSpec returns a Spec with the timeouts of the file tools.
func fileSpec(name, description string, effect tools.Effect, permission tools.Permission, touches func(tools.Call) tools.Touch) tools.Spec {
	return tools.Spec{
		Name: name, Description: description, Effect: effect, Permission: permission, Touches: touches,
		Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
	}
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
	return tools.New(fileSpec("list_directory", about, tools.Pure, tools.FileRead, tools.Touches(func(a pathArgs) tools.Touch { return tools.TouchBelow(a.Path) })), func(ctx context.Context, call tools.Call, args pathArgs) (any, error) {
		dir, err := b.open(ctx, call)
		if err != nil {
			return nil, tools.DirError(err)
		}
		list, err := fs.ReadDir(dir, tools.OrDot(args.Path))
		if err != nil {
			return nil, tools.DirError(err)
		}
		entries := make([]entry, 0, len(list))
		for _, e := range list {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			entries = append(entries, describeEntry(dir, tools.OrDot(args.Path), e))
		}
		return map[string]any{"entries": entries}, nil
	})
}

// describeEntry describes a directory entry to the model. For a symbolic link it describes the
// link's target; if that doesn't exist, or is outside the workspace, it only gives the link's name.
func describeEntry(dir fs.FS, parent string, e fs.DirEntry) entry {
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

// readStart reads the first tools.SniffBytes of a file.
func readStart(file io.Reader) ([]byte, error) {
	start := make([]byte, tools.SniffBytes)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return start[:n], nil
}

// notTextError returns the error for a file that is not text.
func notTextError(path string, size int64, start []byte) error {
	return tools.Errorf(tools.ExecutionFailed, "%q isn't text (%s, %d bytes): it cannot be read or edited as text", shorten(path), http.DetectContentType(start), size)
}

// shorten cuts a text to a length that fits into an error.
func shorten(s string) string {
	const most = 120
	return tools.Clip(s, most)
}

// writeMessage returns the result of a write, for the model.
func writeMessage(n int, path string) map[string]string {
	return map[string]string{"message": fmt.Sprintf("Successfully wrote %d bytes to %s", n, path)}
}
