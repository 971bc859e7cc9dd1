package tools

import (
	"context"
	"errors"
	"io/fs"
)

// DirError turns an error from a session's directory into one for the model. It returns an *Error, or the error of
// a call whose context has ended, unchanged.
func DirError(err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	code := ExecutionFailed
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrInvalid):
		code = InvalidPath
	case errors.Is(err, fs.ErrNotExist):
		return Errorf(FileNotFound, "%v: list_directory and glob show what's there", err)
	case errors.Is(err, fs.ErrPermission):
		code = PermissionDenied
	}
	return Errorf(code, "%v", err)
}
