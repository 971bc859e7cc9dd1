package backup

import (
	"io"
	"io/fs"
)

// A Progress says how far a backup is.
type Progress struct {
	Step Step
	Done int64 // how many bytes of the step are done
	Of   int64 // about how many bytes the step has
}

// A Step is a step of a backup.
type Step string

// These are the steps, in their order.
const (
	Copying Step = "databases"       // copying databases within the home
	Packing Step = "files"           // the copies and the files of the workspaces are written
	Reading Step = "reading it back" // only WriteFile does this
)

// Steps returns all steps in their order.
func Steps() []Step { return []Step{Copying, Packing, Reading} }

// A meter reports the progress of a step, if a caller wants to know it.
type meter struct {
	step     Step
	done, of int64
	tell     func(Progress) // may be nil
}

func (s Source) newMeter(step Step, of int64) *meter {
	m := &meter{step: step, of: of, tell: s.Progress}
	m.add(0)
	return m
}

// add counts bytes that are done.
func (m *meter) add(bytes int64) { m.setDone(m.done + bytes) }

// setDone sets how many bytes are done.
func (m *meter) setDone(done int64) {
	m.done = done
	if m.tell != nil {
		m.tell(Progress{m.step, min(m.done, m.of), m.of})
	}
}

// read returns a reader that counts what is read from r.
func (m *meter) read(r io.Reader) io.Reader { return &meteredReader{m, r} }

type meteredReader struct {
	meter *meter
	r     io.Reader
}

func (r *meteredReader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	r.meter.add(int64(n))
	return n, err
}

// sizeOf returns the size of the sessions' files in bytes, which may change until they are packed; 0 if no caller
// wants to know the progress.
func (s Source) sizeOf(ctx func() error) (int64, error) {
	if s.Progress == nil {
		return 0, nil
	}
	p := &packer{ctx: ctx, manifest: &Manifest{}, measures: true}
	err := p.packSessions(s)
	return p.size, err
}

// measure counts a file instead of packing it.
func (p *packer) measure(info fs.FileInfo) {
	if info.Mode().IsRegular() {
		p.size += info.Size()
	}
}
