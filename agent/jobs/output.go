package jobs

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

const (
	// maxTail is how many bytes of the end of a job's output are kept in the store. A secret may begin before
	// these bytes and end among them, so the lookBack bytes before them are searched for secrets too.
	maxTail  = 16 << 10
	lookBack = 4 << 10
	// maxFile is how many bytes of the beginning of the output are kept in the workspace.
	maxFile = 8 << 20
)

// A jobOutput collects what a job prints: the beginning in a file in the workspace, and the end in memory.
type jobOutput struct {
	mu    sync.Mutex
	file  *os.File // nil once the file is full or can't be written
	kept  int64    // bytes in the file
	tail  []byte
	total int64
	noted int64 // the total at the last write to the store
}

// write adds output of the job, to the file until that is full, and to the end. The sandbox calls it
// (sandbox.Command.Output).
func (p *jobOutput) write(more []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += int64(len(more))
	p.tail = append(p.tail, more...)
	if over := len(p.tail) - maxTail - lookBack; over > maxTail { // shorten only now and then
		p.tail = append(p.tail[:0], p.tail[over:]...)
	}
	if p.file == nil {
		return
	}
	n, err := p.file.Write(more[:min(int64(len(more)), maxFile-p.kept)])
	p.kept += int64(n)
	if err == nil && p.kept < maxFile {
		return
	}
	if err == nil {
		_, _ = fmt.Fprintf(p.file, "\n… only the first %d MB are kept here; job_output shows the end …\n", maxFile>>20) // no harm if it fails
	}
	_ = p.file.Close() // the store keeps the end of the output
	p.file = nil
}

// close closes the file.
func (p *jobOutput) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		_ = p.file.Close() // as above
		p.file = nil
	}
}

// end returns the last part of the output, with secrets removed by redact, and how many bytes were printed in
// total. news is false if nothing was printed since the last write to the store.
func (p *jobOutput) end(redact func(string) string) (text string, total int64, news bool) {
	p.mu.Lock()
	raw, total, news := string(p.tail), p.total, p.total != p.noted
	p.noted = p.total
	p.mu.Unlock()
	if over := len(raw) - maxTail - lookBack; over > 0 {
		raw = raw[over:]
	}
	whole := int64(len(raw)) == total
	text = redact(strings.ToValidUTF8(raw, "\uFFFD"))
	if !whole && len(text) > maxTail {
		text = strings.ToValidUTF8(text[len(text)-maxTail:], "")
	}
	return text, total, news
}
