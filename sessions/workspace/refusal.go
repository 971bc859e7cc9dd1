package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"unicode/utf8"
)

// A refusal is an error in words for a model. errors.Is finds its kind (such as fs.ErrNotExist).
type refusal struct {
	words string
	kind  error
}

func (r *refusal) Error() string { return r.words }

func (r *refusal) Unwrap() error { return r.kind }

// refusalf returns the error for a path that cannot be used.
func refusalf(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...), fs.ErrInvalid}
}

// tooBigError returns the error for a file or directory that is too large for this package.
func tooBigError(format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...), syscall.EFBIG}
}

// shortenPath returns a path, cut if it is too long for an error.
func shortenPath(path string) string {
	const most = 120
	if len(path) <= most {
		return path
	}
	n := most
	for n > 0 && !utf8.RuneStart(path[n]) {
		n--
	}
	return path[:n] + "…"
}

// sanitized rewords an error about a name inside the directory for a model. The system's errors contain
// the path on the host, which the new error leaves out. Refusals, plainErrors, ErrQuota, ErrLate and the
// errors of a context have no such path, and pass unchanged.
func sanitized(name string, err error) error {
	if err == nil {
		return nil
	}
	//nolint:errorlint // the system's error itself, which is frequent: each turn looks for files that most sessions have not
	if system, ok := err.(*fs.PathError); ok && system.Err == syscall.ENOENT {
		return &refusal{strconv.Quote(shortenPath(name)) + " does not exist", fs.ErrNotExist}
	}
	if known, ok := errors.AsType[*refusal](err); ok {
		return known
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrQuota) || errors.Is(err, ErrLate) || isPlain(err) {
		return err
	}
	name = shortenPath(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &refusal{fmt.Sprintf("%q does not exist", name), fs.ErrNotExist}
	case errors.Is(err, fs.ErrPermission):
		return &refusal{fmt.Sprintf("%q: the system does not permit that", name), fs.ErrPermission}
	case errors.Is(err, os.ErrClosed):
		return &refusal{"the workspace is closed", os.ErrClosed}
	}
	number, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		// The only remaining error is that of os.Root for a path that leads out, which is not exported.
		return refusalf("%q leads out of the workspace, or through a symbolic link with an absolute target: give a path inside it", name)
	}
	switch number {
	case syscall.ENOTDIR:
		return refusalf("%q: a part of it is a file, not a directory", name)
	case syscall.EISDIR:
		return refusalf("%q is a directory, not a file", name)
	case syscall.ELOOP:
		return refusalf("%q leads through too many symbolic links", name)
	case syscall.ENAMETOOLONG:
		return refusalf("%q is too long", name)
	case syscall.ENXIO, syscall.ENODEV, syscall.EOPNOTSUPP:
		return refusalf("%q is not a regular file", name)
	}
	return &refusal{fmt.Sprintf("%q: %s", name, number.Error()), number}
}

// explainMissing adds to an error about a missing file why it may be missing, if Config.Missing knows.
func (w *Workspaces) explainMissing(name string, err error) error {
	if w.missing == nil || !errors.Is(err, fs.ErrNotExist) || isPlain(err) {
		return err
	}
	if more := w.missing(name); more != "" {
		return &refusal{err.Error() + ": " + more, fs.ErrNotExist}
	}
	return err
}

// A plainError passes through withOpenDir unchanged, because the caller unwraps it: an error of Update's
// callback, or fs.ErrExist of Create.
type plainError struct{ error }

func (f plainError) Unwrap() error { return f.error }

func isPlain(err error) bool {
	_, ok := errors.AsType[plainError](err)
	return ok
}
