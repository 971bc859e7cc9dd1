package sandbox

import (
	"fmt"
	"strings"
	"sync"
)

// An output keeps the beginning and the end of what a command writes, and drops the middle.
type output struct {
	shared  *sync.Mutex // held during onWrite; shared with the command's other output
	onWrite func([]byte)
	half    int // how many bytes are kept of the beginning, and of the end

	head, tail []byte
	start      int // index of the oldest byte in tail, once tail is full
	total      int64
}

// Write keeps as much of p as there is room for: first at the beginning, then replacing the oldest
// bytes of the end.
func (o *output) Write(p []byte) (int, error) {
	o.shared.Lock()
	defer o.shared.Unlock()
	if o.onWrite != nil {
		o.onWrite(p)
	}
	o.total += int64(len(p))
	rest := p
	if room := o.half - len(o.head); room > 0 {
		n := min(room, len(rest))
		o.head = append(o.head, rest[:n]...)
		rest = rest[n:]
	}
	if len(rest) > o.half {
		rest = rest[len(rest)-o.half:]
	}
	if room := o.half - len(o.tail); room > 0 && len(rest) > 0 {
		n := min(room, len(rest))
		o.tail = append(o.tail, rest[:n]...)
		rest = rest[n:]
	}
	for len(rest) > 0 {
		n := copy(o.tail[o.start:], rest)
		o.start = (o.start + n) % o.half
		rest = rest[n:]
	}
	return len(p), nil
}

// text returns what was kept, with a line in between that says how much is missing. It doesn't
// split a character.
func (o *output) text() string {
	o.shared.Lock()
	defer o.shared.Unlock()
	head, tail := string(o.head), string(o.tail[o.start:])+string(o.tail[:o.start])
	missing := o.total - int64(len(head)) - int64(len(tail))
	if missing <= 0 {
		return strings.ToValidUTF8(head+tail, "\uFFFD")
	}
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n… %d bytes are left out …\n", missing) + strings.ToValidUTF8(tail, "")
}
