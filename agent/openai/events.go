package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// errGarbled says that a stream is not what it should be.
var errGarbled = errors.New("the answer is garbled")

const (
	maxEvent = 8 << 20 // the most that one event may have
	maxDrain = 4 << 10 // the most that is read after the end
)

// events reads an answer's body and gives the library what its reader can
// take: one data line for each event, no comments, no other fields, no limit
// to how many of them there were. An error in the stream becomes data like any
// other, and so does a body that is no stream at all but one JSON value.
type events struct {
	body io.ReadCloser
	in   *bufio.Reader
	beat func() // told of each line, comments included

	out    bytes.Buffer // waits to be read
	event  []byte       // data of the event so far
	name   string       // of the event
	bare   bool         // the event is JSON without "data:" before it
	done   bool         // the end was announced
	size   int          // bytes read so far
	failed error        // what ends the reading
}

func newEvents(body io.ReadCloser, beat func()) *events {
	return &events{body: body, in: bufio.NewReader(body), beat: beat}
}

// Read gives what is ready, and waits only for the first of it.
func (e *events) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.failed != nil {
			return 0, e.failed
		}
		e.failed = e.next()
	}
	return e.out.Read(p)
}

// Close ends the reading of the body.
func (e *events) Close() error { return e.body.Close() }

// drain reads what little may follow the announced end, so that the connection
// can be used again.
func (e *events) drain() {
	if e.done {
		_, _ = io.CopyN(io.Discard, e.in, maxDrain) // at worst it is not used again
	}
}

// next reads a line.
func (e *events) next() error {
	line, err := e.line()
	if len(line) > 0 || err == nil {
		e.beat()
		for part := range bytes.SplitSeq(line, []byte("\r")) {
			if failed := e.field(part); failed != nil {
				return failed
			}
		}
	}
	return err
}

// line reads up to the end of a line, without it.
func (e *events) line() ([]byte, error) {
	var long []byte
	for {
		part, err := e.in.ReadSlice('\n')
		e.size += len(part)
		switch {
		case e.size > maxStream:
			return nil, fmt.Errorf("%w: it does not end", errGarbled)
		case len(long)+len(part) > maxEvent:
			return nil, fmt.Errorf("%w: a line of more than %d bytes", errGarbled, maxEvent)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		part = bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r"))
		if long != nil {
			part = append(long, part...)
		}
		return part, err
	}
}

// field takes one line of the stream.
func (e *events) field(line []byte) error {
	switch {
	case len(e.event)+len(line) > maxEvent:
		return fmt.Errorf("%w: an event of more than %d bytes", errGarbled, maxEvent)
	case e.bare:
		return e.more(line)
	case len(line) == 0:
		return e.flush()
	case line[0] == '{': // an error, or a whole answer, without ceremony
		e.bare = true
		e.event = append(e.event[:0], line...)
		e.whole()
		return nil
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	name = bytes.TrimPrefix(name, []byte("\uFEFF"))
	value = bytes.TrimLeft(value, " ")
	switch string(name) {
	case "event":
		e.name = string(value)
	case "data":
		e.event = append(append(e.event, value...), ' ')
		e.whole()
	}
	return nil
}

// more takes a line of JSON that was printed over several.
func (e *events) more(line []byte) error {
	e.event = append(append(e.event, ' '), line...)
	if len(line) > 0 && line[0] == '}' {
		e.whole()
	}
	return nil
}

// whole passes an event on as soon as it is one: not every server ends its
// events with an empty line.
func (e *events) whole() {
	data := bytes.TrimSpace(e.event)
	switch {
	case string(data) == "[DONE]":
		e.done = true
		e.pass(data)
	case json.Valid(data):
		if e.name == "error" && !bytes.Contains(data, []byte(`"error"`)) {
			data = append(append([]byte(`{"error":`), data...), '}')
		}
		e.pass(data)
	}
}

// flush ends an event that is not JSON.
func (e *events) flush() error {
	data := bytes.TrimSpace(e.event)
	switch {
	case len(data) == 0:
		e.reset()
	case e.name == "error":
		text, err := json.Marshal(map[string]string{"error": string(data)})
		if err != nil {
			return errGarbled
		}
		e.pass(text)
	case e.name == "" || e.name == "message":
		return errGarbled
	default: // some event of the server's own
		e.reset()
	}
	return nil
}

// pass hands an event to the library, whose reader makes of data that begins
// with an error one of its own, unless there is a space before it.
func (e *events) pass(data []byte) {
	e.out.WriteString("data: ")
	if data[0] == '{' {
		e.out.WriteString("{ ")
		data = data[1:]
	}
	e.out.Write(data)
	e.out.WriteByte('\n')
	e.reset()
}

func (e *events) reset() {
	e.event, e.name, e.bare = e.event[:0], "", false
}
