// Package outgoing keeps the files that are to be sent until they are, out of the agents' reach.
//
// A file that an agent has sent is copied here at the call, beside the sessions'
// directories, so that it goes out as it was then, whatever becomes of the original. The
// message on the bus carries the file's name, size and sum and the folder that it is in.
// Each message that is to carry a folder's files holds a reference to it, which is a
// file of its own, and the folder goes with its last reference.
//
// All of it lies in one folder of the workspaces' root, which no session's directory can
// be: ~outgoing/SESSION/CALL/SUM, with the first two hashed, so that they are names on
// every filesystem. What is written is on the disk when a function returns. After a
// crash a folder may be left that no message refers to, or a reference of a message that
// is through: Sweep removes both.
package outgoing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Errors that callers decide on.
var (
	// ErrMissing says that a file is not there, or is not what it was.
	ErrMissing = errors.New("the file is not there any more")
	// ErrTooLarge says that a file is larger than it may be.
	ErrTooLarge = errors.New("the file is larger than may be sent")
	// ErrFull says that too much of a session waits to be sent already.
	ErrFull = errors.New("too much waits to be sent")
)

// Folder is the name in the workspaces' root under which all of it lies.
const Folder = "~outgoing"

const (
	referencePrefix = "for-"
	unfinished      = "new-"
)

// A Store keeps files. Several processes may use the same one.
type Store struct {
	root *os.Root
	// most is how many bytes one session may have here.
	most int64
}

// Open opens the store in the root of the workspaces, which must exist. A session may
// have at most that many bytes in it. Nothing is made before the first file comes.
func Open(root string, most int64) (*Store, error) {
	opened, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open the files to be sent: %w", err)
	}
	return &Store{opened, most}, nil
}

// Close closes the store.
func (s *Store) Close() error { return s.root.Close() }

// A File is one that is kept.
type File struct {
	Ref    string // the folder that it is in
	SHA256 string // of its content, in hexadecimal digits
	Size   int64
}

// RefOf is the folder for what a call of a session sends.
func RefOf(session, call string) string { return hashed(session) + "/" + hashed(call) }

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Keep copies a file, for a call of a session. The same call may keep the same file
// again. Without a reference (Refer) it is removed after a while. ErrTooLarge for one of
// more than most bytes, ErrFull where the session has too much here, and ErrMissing where
// the folder went meanwhile, with the last reference to what was kept there before.
func (s *Store) Keep(ctx context.Context, session, call string, content io.Reader, most int64) (File, error) {
	f := File{Ref: RefOf(session, call)}
	waits, err := s.size(path.Join(Folder, hashed(session)))
	if err != nil {
		return File{}, fmt.Errorf("keep a file: %w", err)
	}
	dir := path.Join(Folder, f.Ref)
	temporary := path.Join(dir, unfinished+strings.ToLower(rand.Text()))
	if err = s.makeFolder(dir); err == nil {
		f.SHA256, f.Size, err = s.write(temporary, &limited{ctx: ctx.Err, from: content, left: most})
	}
	if err == nil && f.Size > s.most-waits {
		if _, kept := s.root.Lstat(path.Join(dir, f.SHA256)); kept != nil {
			err = ErrFull
		}
	}
	if err == nil {
		err = s.root.Rename(temporary, path.Join(dir, f.SHA256))
	}
	if err != nil {
		err = errors.Join(err, s.removeIfThere(temporary))
	} else {
		err = s.sync(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrMissing
	}
	if err != nil {
		return File{}, fmt.Errorf("keep a file: %w", err)
	}
	return f, nil
}

// A limited reader ends with ErrTooLarge, or with the context's error.
type limited struct {
	ctx  func() error
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if err := l.ctx(); err != nil {
		return 0, err
	}
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

// write writes a new file, sums its content up and waits for the disk.
func (s *Store) write(name string, content io.Reader) (sum string, size int64, err error) {
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, h), content)
	if err == nil {
		err = f.Sync()
	}
	return hex.EncodeToString(h.Sum(nil)), size, errors.Join(err, f.Close())
}

// makeFolder makes a folder below Folder, and waits for the disk.
func (s *Store) makeFolder(dir string) error {
	if info, err := s.root.Lstat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := s.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for above := path.Dir(dir); ; above = path.Dir(above) {
		if err := s.sync(above); err != nil || above == "." {
			return err
		}
	}
}

// sync makes the names in a folder outlast a power cut.
func (s *Store) sync(dir string) error {
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (s *Store) removeIfThere(name string) error {
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// size is how many bytes a session has here.
func (s *Store) size(dir string) (sum int64, err error) {
	err = fs.WalkDir(s.root.FS(), dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return ignoreMissing(err)
		}
		info, err := e.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreMissing(err)
	})
	return sum, ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil // others may remove it at any time
	}
	return err
}

// A Reference is that of a message to a folder.
type Reference struct {
	Ref     string `json:"-"`
	Session string `json:"session"`
	Message string `json:"message"` // its id on the bus
}

// Refer notes that a message is to carry files of a folder. It is called before the
// message is published, and for all messages of a call before the first of them is.
// ErrMissing if there is no such folder.
func (s *Store) Refer(r Reference) error {
	if err := s.refer(r); err != nil {
		return fmt.Errorf("refer to files to be sent: %w", err)
	}
	return nil
}

func (s *Store) refer(r Reference) error {
	dir, err := folderOf(r.Ref)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temporary := path.Join(dir, unfinished+strings.ToLower(rand.Text()))
	_, _, err = s.write(temporary, strings.NewReader(string(raw)))
	if err == nil {
		err = s.root.Rename(temporary, path.Join(dir, referencePrefix+hashed(r.Message)))
	}
	if err != nil {
		err = errors.Join(err, s.removeIfThere(temporary))
	} else {
		err = s.sync(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ErrMissing
	}
	return err
}

// folderOf is where the folder of a reference lies. References come over the bus: one
// that names no such folder is refused.
func folderOf(ref string) (string, error) {
	session, call, ok := strings.Cut(ref, "/")
	if !ok || !isHash(session) || !isHash(call) {
		return "", ErrMissing
	}
	return path.Join(Folder, ref), nil
}

func isHash(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// Read reads a file that is kept. ErrMissing if it is not there, or not the same.
func (s *Store) Read(f File) ([]byte, error) {
	content, err := s.read(f)
	if err != nil {
		return nil, fmt.Errorf("read a file to be sent: %w", err)
	}
	return content, nil
}

func (s *Store) read(f File) (content []byte, err error) {
	dir, err := folderOf(f.Ref)
	if err != nil || len(f.SHA256) != 2*sha256.Size || strings.ContainsAny(f.SHA256, `/\`) {
		return nil, ErrMissing
	}
	name := path.Join(dir, f.SHA256)
	found, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !found.Mode().IsRegular() {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	// Another of the same content may take its place at any time.
	file, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if opened, err := file.Stat(); err != nil || !opened.Mode().IsRegular() || opened.Size() != f.Size {
		return nil, errors.Join(ErrMissing, err)
	}
	content = make([]byte, f.Size)
	if _, err := io.ReadFull(file, content); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, ErrMissing
	}
	return content, nil
}
