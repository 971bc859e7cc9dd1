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
	maxEvent = 8 << 20 // bytes of one event
	maxDrain = 4 << 10 // bytes that are read after the end
)

// events reads an answer's body, and gives the library what its reader can take: one data
// line for each event, and nothing else. The library gives up after a number of other
// lines, and reads errors in its own way. So comments and other fields are dropped, and
// an error in the stream becomes data like any other. So does a body that is no stream
// but a single JSON value.
type events struct {
	body       io.ReadCloser
	in         *bufio.Reader
	signOfLife func() // called for each line, comments included

	out       bytes.Buffer // what the library has not read yet
	event     []byte       // data of the event so far
	name      string       // of the event
	noFraming bool         // the event is JSON without "data:" before it, perhaps on several lines
	done      bool         // [DONE] has come
	size      int          // bytes read so far
	failed    error        // why there is nothing more to read
}

func newEvents(body io.ReadCloser, beat func()) *events {
	return &events{body: body, in: bufio.NewReader(body), signOfLife: beat}
}

// Read returns what is ready. It waits only if nothing is.
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

// drain reads the little that may follow [DONE], so that the connection can be used
// again.
func (e *events) drain() {
	if e.done {
		_, _ = io.CopyN(io.Discard, e.in, maxDrain) // at worst it is not used again
	}
}

// next reads a line.
func (e *events) next() error {
	line, err := e.line()
	if len(line) > 0 || err == nil {
		e.signOfLife()
		for part := range bytes.SplitSeq(line, []byte("\r")) {
			if failed := e.takeLine(part); failed != nil {
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

// takeLine takes one line of the stream.
func (e *events) takeLine(line []byte) error {
	switch {
	case len(e.event)+len(line) > maxEvent:
		return fmt.Errorf("%w: an event of more than %d bytes", errGarbled, maxEvent)
	case e.noFraming:
		return e.addLine(line)
	case len(line) == 0:
		return e.endEvent()
	case line[0] == '{': // an error or a whole answer, without "data:"
		e.noFraming = true
		e.event = append(e.event[:0], line...)
		e.passIfWhole()
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
		e.passIfWhole()
	}
	return nil
}

// addLine adds a line of JSON that is printed on several lines.
func (e *events) addLine(line []byte) error {
	e.event = append(append(e.event, ' '), line...)
	if len(line) > 0 && line[0] == '}' {
		e.passIfWhole()
	}
	return nil
}

// passIfWhole passes an event on as soon as it is whole JSON: not every server ends its
// events with an empty line.
func (e *events) passIfWhole() {
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

// endEvent ends an event at an empty line. If it was whole it has been passed on already.
func (e *events) endEvent() error {
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
	default: // an event that only this server knows
		e.reset()
	}
	return nil
}

// pass gives an event to the library. The library's reader would handle data that begins
// with {"error" itself, so pass puts a space after the brace.
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
	e.event, e.name, e.noFraming = e.event[:0], "", false
}
