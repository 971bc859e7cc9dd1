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

// Folder is the folder in a session's workspace for the pictures that models are shown.
const Folder = ".agent/pictures"

// maxKept limits how many bytes of a kept picture are read.
const maxKept = 16 << 20

// A Dir is a session's workspace.
type Dir interface {
	fs.FS
	// Write replaces a file's content, either completely or not at all.
	Write(name string, content []byte) error
}

// A StoredPicture is a picture in a workspace that has been made fit for models.
type StoredPicture struct {
	View          string // the path of its file
	Hash          string // the hash of the file's content
	Type          string
	Width, Height int
}

// Keep makes a picture fit for a model and writes it to the workspace. The file's name is made from its
// content, so keeping the same picture again changes only the file's age. Errors are those of Fit and of the
// workspace.
func (f *Fitter) Keep(ctx context.Context, dir Dir, raw []byte) (StoredPicture, error) {
	p, err := f.Fit(ctx, raw)
	if err != nil {
		return StoredPicture{}, err
	}
	return Store(dir, p)
}

// Store writes a picture that is already fit for models to the workspace, as Keep does.
func Store(dir Dir, p Picture) (StoredPicture, error) {
	k := StoredPicture{Hash: hashOf(p.Data), Type: p.Type, Width: p.Width, Height: p.Height}
	k.View = Folder + "/" + k.Hash[:32] + ".jpg"
	if p.Type == "image/png" {
		k.View = Folder + "/" + k.Hash[:32] + ".png"
	}
	if Read(dir, k.View, k.Hash) != nil && isFresh(dir, k.View) {
		return k, nil
	}
	return k, dir.Write(k.View, p.Data)
}

// freshFor is how long a kept picture counts as new. Keep writes an older one again: otherwise a cleaner could
// consider the file unused and remove it before the log names it.
const freshFor = time.Hour

// isFresh reports whether a picture was written to the workspace so recently that it doesn't have to be written
// again.
func isFresh(dir fs.FS, view string) bool {
	info, err := fs.Stat(dir, view)
	return err == nil && time.Since(info.ModTime()) < freshFor
}

// Read returns the content of a kept picture; nil if the file is missing or has a different hash.
func Read(dir fs.FS, view, hash string) []byte {
	raw, err := ReadFile(dir, view, maxKept)
	if err != nil || hashOf(raw) != hash {
		return nil
	}
	return raw
}

// ReadFile reads a file of at most most bytes. It returns ErrTooLarge if the file is longer.
func ReadFile(dir fs.FS, name string, most int64) (raw []byte, err error) {
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(file, most+1))
	if err == nil && n > most {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// hashOf returns the SHA-256 of raw in hexadecimal.
func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
