package sqlitebus

import (
	"fmt"
	"io"
)

// Lock keeps every bus, in this and other processes, from opening the database
// at path until it is closed: for who moves the file. It gives an *InUseError
// while one has it open.
func Lock(path string) (io.Closer, error) {
	f, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("lock bus: %w", err)
	}
	return f, nil
}
