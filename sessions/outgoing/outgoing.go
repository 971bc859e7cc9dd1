// Package outgoing stores the files that agents send until they are sent, where no agent can change them.
//
// When an agent calls a tool to send a file, the file is copied here, so that it is sent as it was then,
// whatever happens to the original. The message on the bus carries the file's name, its size, its
// checksum and the folder that it is in. For each message that is to carry a folder's files, there is a
// reference to the folder, which is a small file in it; the folder is removed with its last reference.
//
// Everything is in one folder of the workspaces' root whose name no session's directory can have:
// ~outgoing/SESSION/CALL/SUM. The first two are hashed, so that they are valid names on every filesystem.
// What a function writes is on the disk when it returns. A crash may leave a folder that no message
// refers to, or a reference for a message that was already sent: Sweep removes both.
package outgoing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"parley/tools/plainjson"
)

// Errors that tell callers what to do next.
var (
	// ErrMissing says that a stored file no longer exists, or has changed.
	ErrMissing = errors.New("the file is no longer there")
	// ErrTooLarge says that a file is larger than the limit.
	ErrTooLarge = errors.New("the file is larger than may be sent")
	// ErrFull says that too many bytes of a session wait to be sent already.
	ErrFull = errors.New("too much is already waiting to be sent")
)

// Folder is the name of the store's folder in the workspaces' root.
const Folder = "~outgoing"

const (
	referencePrefix = "for-"
	temporaryPrefix = "new-"
)

// A Store stores the files to be sent. Several processes may use the same one.
type Store struct {
	root *os.Root
	// maxPerSession is the number of bytes that one session may have here.
	maxPerSession int64
}

// Open opens the store in the root of the workspaces, which must exist. Each session may have at
// most `most` bytes in it. Its folder is made when the first file comes.
func Open(root string, most int64) (*Store, error) {
	opened, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("open the files to be sent: %w", err)
	}
	return &Store{opened, most}, nil
}

// Close closes the store.
func (s *Store) Close() error { return s.root.Close() }

// A File identifies one stored file.
type File struct {
	Ref    string // the folder that it is in, in the form of RefOf
	SHA256 string // the hash of its content, in hexadecimal digits
	Size   int64
}

// RefOf returns the name of the folder for the files that a call of a session sends.
func RefOf(session, call string) string { return hashName(session) + "/" + hashName(call) }

// hashName returns the first half of a text's SHA-256, as a file name.
func hashName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Keep copies a file into the folder of a session's call. The same call may keep the same file again. If
// no message refers to the folder (see Refer), Sweep removes it after a while. Keep returns ErrTooLarge
// for a file of more than `most` bytes, ErrFull if the session already has too many bytes here, and
// ErrMissing if the folder was removed meanwhile, because the last reference to earlier files in it was
// released.
func (s *Store) Keep(ctx context.Context, session, call string, content io.Reader, most int64) (File, error) {
	f := File{Ref: RefOf(session, call)}
	waits, err := s.sizeOf(path.Join(Folder, hashName(session)))
	if err != nil {
		return File{}, fmt.Errorf("keep a file: %w", err)
	}
	dir := path.Join(Folder, f.Ref)
	temporary := path.Join(dir, temporaryPrefix+strings.ToLower(rand.Text()))
	if err = s.makeFolder(dir); err == nil {
		f.SHA256, f.Size, err = s.write(temporary, &limitedReader{ctx: ctx.Err, from: content, remaining: most})
	}
	if err == nil && f.Size > s.maxPerSession-waits {
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

// Kept returns the files that were kept for a session's call and are still there.
func (s *Store) Kept(session, call string) ([]File, error) {
	ref := RefOf(session, call)
	dir := path.Join(Folder, ref)
	names, err := s.names(dir)
	if err != nil {
		return nil, fmt.Errorf("look for kept files: %w", err)
	}
	var all []File
	for _, name := range names {
		if len(name) != 2*sha256.Size || strings.Contains(name, "-") {
			continue // a reference, or a file that is still being written
		}
		info, err := s.root.Lstat(path.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for kept files: %w", err)
		}
		all = append(all, File{Ref: ref, SHA256: name, Size: info.Size()})
	}
	return all, nil
}

// A limitedReader fails with ErrTooLarge after left bytes, and with the context's error once the context
// is done.
type limitedReader struct {
	ctx       func() error
	from      io.Reader
	remaining int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if err := l.ctx(); err != nil {
		return 0, err
	}
	n, err := l.from.Read(p)
	if l.remaining -= int64(n); l.remaining < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

// write writes a new file, flushes it to the disk, and returns its content's checksum and
// size.
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

// makeFolder makes a folder below Folder and flushes it to the disk.
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

// sync makes files that were created or renamed in a folder survive a power failure.
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

// sizeOf returns how many bytes the files in a session's folder take.
func (s *Store) sizeOf(dir string) (sum int64, err error) {
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

// A Reference says that a message needs the files of a folder.
type Reference struct {
	Ref     string `json:"-"`
	Session string `json:"session"`
	Message string `json:"message"` // the message's id on the bus
}

// Refer records that a message will carry files of a folder. It must be called before the
// message is published, and for all messages of a call before the first of them is
// published. It returns ErrMissing if there is no such folder.
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
	raw, err := plainjson.Marshal(r)
	if err != nil {
		return err
	}
	temporary := path.Join(dir, temporaryPrefix+strings.ToLower(rand.Text()))
	_, _, err = s.write(temporary, strings.NewReader(string(raw)))
	if err == nil {
		err = s.root.Rename(temporary, path.Join(dir, referencePrefix+hashName(r.Message)))
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

// folderOf returns the path of the folder that a reference names. References come over the bus, so for
// one that cannot be a folder of the store it returns ErrMissing.
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

// Read returns the content of a stored file. It returns ErrMissing if the file does not exist or has
// changed.
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
	// Another file with the same content may replace it at any time.
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
