package jobs

import (
	"fmt"
	"io"
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

// An Output collects what a job prints: the beginning in a file in the workspace, and the end in memory.
type Output struct {
	mu    sync.Mutex
	file  io.WriteCloser // nil once the file is full or can't be written
	kept  int64          // bytes in the file
	tail  []byte
	total int64
	noted int64 // the total at the last call of End or Raw
}

// Folder returns the folder in the session's workspace, or on the node, in which a job writes its files.
func Folder(id string) string { return "jobs/" + id }

// File returns the path, there, of the file that collects a job's output.
func File(id string) string { return Folder(id) + "/output.txt" }

// NewOutput makes an Output that has its file open for writing.
func NewOutput(file io.WriteCloser) *Output { return &Output{file: file} }

// Write adds output of the job, to the file until that is full, and to the end. The sandbox calls it
// (sandbox.Command.Output).
func (p *Output) Write(more []byte) {
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

// Close closes the file.
func (p *Output) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		_ = p.file.Close() // as above
		p.file = nil
	}
}

// End returns the last part of the output, with secrets removed by redact, and how many bytes were printed in
// total. news is false if nothing was printed since the last call.
func (p *Output) End(redact func(string) string) (text string, total int64, news bool) {
	raw, total, news := p.Raw()
	return EndOf(raw, total, redact), total, news
}

// Raw returns what EndOf needs, for a job whose output is redacted elsewhere, and what else End returns.
func (p *Output) Raw() (raw string, total int64, news bool) {
	p.mu.Lock()
	raw, total, news = string(p.tail), p.total, p.total != p.noted
	p.noted = p.total
	p.mu.Unlock()
	if over := len(raw) - maxTail - lookBack; over > 0 {
		raw = raw[over:]
	}
	return strings.ToValidUTF8(raw, "\uFFFD"), total, news
}

// EndOf returns the last part of an output, with secrets removed by redact. Raw is the end of all that was printed, which has
// that many bytes.
func EndOf(raw string, printed int64, redact func(string) string) string {
	text := redact(raw)
	if int64(len(raw)) < printed && len(text) > maxTail {
		text = strings.ToValidUTF8(text[len(text)-maxTail:], "")
	}
	return text
}
