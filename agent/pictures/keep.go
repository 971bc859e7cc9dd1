package pictures

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"time"
)

// Folder is where the pictures are kept that models are shown, in a session's workspace.
const Folder = ".agent/pictures"

// maxKept bounds what is read of a kept picture.
const maxKept = 16 << 20

// A Dir is a session's workspace.
type Dir interface {
	fs.FS
	// Write replaces a file's content whole or not at all.
	Write(name string, content []byte) error
}

// Kept is a picture in a workspace, as models are shown it.
type Kept struct {
	View          string // the file
	Hash          string // of its content
	Type          string
	Width, Height int
}

// Keep makes a picture fit for a model and keeps it in the workspace, under a name made
// of its content: keeping the same picture again changes nothing but its age. Its errors are those
// of Fit and of the workspace.
func (f *Fitter) Keep(ctx context.Context, dir Dir, raw []byte) (Kept, error) {
	p, err := f.Fit(ctx, raw)
	if err != nil {
		return Kept{}, err
	}
	k := Kept{Hash: hashOf(p.Data), Type: p.Type, Width: p.Width, Height: p.Height}
	k.View = Folder + "/" + k.Hash[:32] + ".jpg"
	if p.Type == "image/png" {
		k.View = Folder + "/" + k.Hash[:32] + ".png"
	}
	if Read(dir, k.View, k.Hash) != nil && isFresh(dir, k.View) {
		return k, nil
	}
	return k, dir.Write(k.View, p.Data)
}

// freshFor is how long a kept picture counts as new. An older one is written again, so
// that nobody takes it for one that is not needed any more before the log names it.
const freshFor = time.Hour

func isFresh(dir fs.FS, view string) bool {
	info, err := fs.Stat(dir, view)
	return err == nil && time.Since(info.ModTime()) < freshFor
}

// Read reads a kept picture; nil if it is not there as it was kept.
func Read(dir fs.FS, view, hash string) []byte {
	raw, err := ReadFile(dir, view, maxKept)
	if err != nil || hashOf(raw) != hash {
		return nil
	}
	return raw
}

// ReadFile reads a file of at most so many bytes; a longer one is ErrTooLarge.
func ReadFile(dir fs.FS, name string, most int64) (raw []byte, err error) {
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var b bytes.Buffer
	if n, err := io.Copy(&b, io.LimitReader(file, most+1)); err != nil || n > most {
		return nil, errors.Join(err, ErrTooLarge)
	}
	return b.Bytes(), nil
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
