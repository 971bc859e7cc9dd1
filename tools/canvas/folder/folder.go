// Package folder keeps what agents draw in the workspaces of their sessions, and reads it for the web page.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/guard"
)

// An UnshownError says why a canvas can't be shown.
type UnshownError struct {
	Code string // no_canvas or too_large
	Why  string // a sentence for people, without its period
}

// Error returns the sentence.
func (e *UnshownError) Error() string { return e.Why }

// A Dir is the directory of a session.
type Dir interface {
	guard.Dir
	Write(name string, content []byte) error
}

// Keep returns what stores files of canvases in directories that open opens for calls. A file is marked if strangers may
// have written what is in it.
func Keep(open func(ctx context.Context, call tools.Call) (Dir, error)) canvas.Keeper {
	return func(ctx context.Context, call tools.Call, name string, content []byte) (string, error) {
		dir, err := open(ctx, call)
		if err != nil {
			return "", err
		}
		file := canvas.Folder + "/" + name
		if call.Untrusted {
			if err := guard.ChangeMarks(dir, false, []string{file}, nil); err != nil {
				return "", err
			}
		}
		return file, dir.Write(file, content)
	}
}

// A Room is where the files of a session are.
type Room struct {
	Session string // its key
	Files   fs.FS
}

// Read returns a canvas of a session, and the policy that a browser has to apply to it. It leaves scripts in only if
// they may run and no stranger may have written anything in the file, whoever has changed it since. Otherwise by
// reads it first. If the session has no such canvas, the error is fs.ErrNotExist; if the canvas can't be shown, an
// *UnshownError.
func Read(ctx context.Context, by *canvas.Reader, in Room, name string, scripts bool) (doc []byte, policy string, err error) {
	file := path.Join(canvas.Folder, name)
	if path.Dir(file) != canvas.Folder || path.Ext(file) != ".html" {
		return nil, "", fs.ErrNotExist
	}
	doc, err = readAtMost(in.Files, file, canvas.MaxDocument)
	if err != nil {
		return nil, "", err
	}
	if scripts && !guard.ReadMarks(in.Files).MayContain(file) {
		return doc, "sandbox allow-scripts; " + canvas.Policy, nil
	}
	doc, err = by.Still(ctx, in.Session, doc)
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if err != nil {
		return nil, "", &UnshownError{"no_canvas", fmt.Sprintf("this canvas can't be shown: %v", err)}
	}
	return doc, "sandbox; " + canvas.StillPolicy, nil
}

// readAtMost reads a file of at most so many bytes. For a larger one, it returns an *UnshownError.
func readAtMost(files fs.FS, name string, most int64) (content []byte, err error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(content)) > most {
		err = &UnshownError{"too_large", fmt.Sprintf("this canvas has more than %d KB, so it isn't shown: you can download its file, %s", most>>10, name)}
	}
	return content, err
}
