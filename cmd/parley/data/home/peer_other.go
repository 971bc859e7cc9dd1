//go:build !linux && !darwin

package home

import "errors"

// peerOf returns errors.ErrUnsupported, because this system doesn't say which user is at the
// socket's other end.
func peerOf(int) (uid int, err error) { return 0, errors.ErrUnsupported }
