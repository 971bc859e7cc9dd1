package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"parley/tools/plainjson"
)

var (
	// errGarbled is returned for a stream that breaks the protocol or exceeds a limit.
	errGarbled = errors.New("the answer is garbled")
	// errStalled is returned if a server added nothing to its answer for too long, or took too long to list its models.
	errStalled = errors.New("the server has stopped answering")
	// errCut is returned for a stream that stopped before the answer had ended.
	errCut = errors.New("the answer was cut off")
)

const (
	maxStream = 96 << 20 // bytes of a stream
	maxEvent  = 8 << 20  // bytes of one event
	maxDrain  = 4 << 10  // bytes that are read after the end of an answer
)

// An eventReader reads the body of an answer, and rewrites it for the library's reader: one data line for each event,
// and nothing else. The library gives up after a number of other lines, and reads errors in its own way. So the
// eventReader drops comments and other fields, and turns errors in the stream into data, as well as a body that is a
// single JSON value and not a stream.
type eventReader struct {
	body       io.ReadCloser
	in         *bufio.Reader // nil once it is closed
	readers    *sync.Pool    // of *bufio.Reader
	signOfLife func()        // called for each line, comments included

	out   bytes.Buffer // what the library has not read yet
	event []byte       // the data of the current event so far
	name  string       // the name of the current event
	// blankFollows says that the current line is the last of its event.
	blankFollows bool
	noFraming    bool  // the event is JSON without "data:" before it, and may span several lines
	sawDone      bool  // [DONE] has arrived
	size         int   // bytes read so far
	endErr       error // why nothing more can be read; nil until then
}

// newEvents returns a reader of the stream in body. It calls beat for each line. It takes its buffer from
// readers if one is there, and puts it back when it is closed.
func newEvents(body io.ReadCloser, readers *sync.Pool, beat func()) *eventReader {
	in, ok := readers.Get().(*bufio.Reader)
	if !ok {
		in = bufio.NewReader(nil)
	}
	in.Reset(body)
	return &eventReader{body: body, in: in, readers: readers, signOfLife: beat}
}

// Read returns the data that is ready. It waits for the server only if there is none.
func (e *eventReader) Read(p []byte) (int, error) {
	for e.out.Len() == 0 {
		if e.endErr != nil {
			return 0, e.endErr
		}
		e.endErr = e.readNext()
	}
	return e.out.Read(p)
}

// Close closes the body.
func (e *eventReader) Close() error {
	if e.in != nil {
		e.in.Reset(nil)
		e.readers.Put(e.in)
		e.in = nil
		if e.endErr == nil {
			e.endErr = os.ErrClosed
		}
	}
	return e.body.Close()
}

// drain reads the few bytes that may follow the end of an answer, so that the connection can be reused.
func (e *eventReader) drain() {
	if e.endErr == nil {
		_, _ = io.CopyN(io.Discard, e.in, maxDrain) // if this fails, the connection is not reused
	}
}

// readNext reads one line of the body and handles it. It returns the error that ends the stream.
func (e *eventReader) readNext() error {
	line, err := e.readLine()
	if len(line) > 0 || err == nil {
		e.signOfLife()
		e.blankFollows = e.isBlankNext() && bytes.IndexByte(line, '\r') < 0
		for part := range bytes.SplitSeq(line, []byte("\r")) {
			if failed := e.handleLine(part); failed != nil {
				return failed
			}
		}
	}
	return err
}

// isBlankNext reports whether an empty line follows, judging only by what has been read already.
func (e *eventReader) isBlankNext() bool {
	next, _ := e.in.Peek(min(2, e.in.Buffered())) // Peek doesn't read more from the body
	return bytes.HasPrefix(next, []byte("\n")) || string(next) == "\r\n"
}

// readLine reads up to the end of a line, and returns the line without its end.
func (e *eventReader) readLine() ([]byte, error) {
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

// handleLine adds one line to the current event. An empty line ends the event, and fields other than event and data
// are dropped.
func (e *eventReader) handleLine(line []byte) error {
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

// addLine appends one line of a JSON value that spans several lines. A line that begins with a brace may be its last.
func (e *eventReader) addLine(line []byte) error {
	e.event = append(append(e.event, ' '), line...)
	if len(line) > 0 && line[0] == '}' {
		e.passIfWhole()
	}
	return nil
}

// passIfWhole passes the event on as soon as it is complete JSON, because not every server ends its events with
// an empty line. If an event is a JSON object without a name and a blank line follows, passIfWhole doesn't
// check that it is valid: its reader does.
func (e *eventReader) passIfWhole() {
	data := bytes.TrimSpace(e.event)
	switch {
	case string(data) == "[DONE]":
		e.sawDone = true
		e.passEvent(data)
	case e.blankFollows && e.name == "" && bytes.HasPrefix(data, []byte("{")):
		e.passEvent(data)
	case json.Valid(data):
		if e.name == "error" && !bytes.Contains(data, []byte(`"error"`)) {
			data = append(append([]byte(`{"error":`), data...), '}')
		}
		e.passEvent(data)
	}
}

// endEvent ends the event at an empty line. A complete event has been passed on before. Of the others, an error becomes
// JSON, an event of an unknown type is dropped, and any other event is garbled.
func (e *eventReader) endEvent() error {
	data := bytes.TrimSpace(e.event)
	switch {
	case len(data) == 0:
		e.reset()
	case e.name == "error":
		text, err := plainjson.Marshal(map[string]string{"error": string(data)})
		if err != nil {
			return errGarbled
		}
		e.passEvent(text)
	case e.name == "" || e.name == "message":
		return errGarbled
	default: // an event of a type that only this server has
		e.reset()
	}
	return nil
}

// passEvent writes an event for the library. The library's reader would handle data that begins with {"error"
// itself, so passEvent puts a space after the brace.
func (e *eventReader) passEvent(data []byte) {
	e.out.WriteString("data: ")
	if data[0] == '{' {
		e.out.WriteString("{ ")
		data = data[1:]
	}
	e.out.Write(data)
	e.out.WriteByte('\n')
	e.reset()
}

// reset clears the current event.
func (e *eventReader) reset() {
	e.event, e.name, e.noFraming = e.event[:0], "", false
}
