package tools

import (
	"context"
	"errors"
	"io/fs"
)

// DirError turns an error that a session's directory has returned into one that the model reads. It returns an
// *Error, and the end of the call's context, as they are.
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
		return Errorf(FileNotFound, "%v: list_directory and glob show what there is", err)
	case errors.Is(err, fs.ErrPermission):
		code = PermissionDenied
	}
	return Errorf(code, "%v", err)
}
