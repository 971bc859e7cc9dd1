package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine is the length of the longest line that is read. No line that was archived is nearly as long.
const maxLine = 64 << 10

// A Break is where the chain is broken first.
type Break struct {
	Day     string `json:"day"`
	Line    int64  `json:"line,omitempty"` // of the file; 0 means the file as a whole
	Problem string `json:"problem"`
}

// A fileSummary is what was found in a file whose lines follow one another.
type fileSummary struct {
	header   header
	lines    int64    // how many records it has
	lastLine position // its last line
}

// A line contains the fields that are checked in every line.
type line struct {
	link
	File  int64  `json:"file"`
	Day   string `json:"day"`
	After string `json:"after"`
	End   string `json:"end"`
	Lines int64  `json:"lines"`
	Kind  string `json:"kind"`
}

// A readErrorRecorder records errors of reading the file, as opposed to problems in its content.
type readErrorRecorder struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (s *readErrorRecorder) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// walk reads the compressed file of a day, and checks all but the link to the file before. It returns what is wrong
// first, if anything is; an error means that the file could not be read.
func walk(content io.Reader, day string) (w fileSummary, broken *Break, err error) {
	from := &readErrorRecorder{Reader: content}
	c := &checker{day: day}
	problem := c.read(from)
	if from.err != nil {
		return w, nil, from.err
	}
	if problem != "" {
		return w, &Break{Day: day, Line: c.lineCount, Problem: problem}, nil
	}
	return fileSummary{c.header, c.records, c.last}, nil, nil
}

// A checker checks line by line whether a file is whole.
type checker struct {
	day         string
	last        position
	hasPosition bool  // whether last is known
	lineCount   int64 // how many lines were read
	records     int64
	header      header
	sawTrailer  bool // whether the last line of the file was read
}

// read checks all lines. It returns what is wrong first, or "".
func (c *checker) read(from io.Reader) string {
	unpacked, err := gzip.NewReader(from)
	if err != nil {
		return textNotPacked
	}
	lines := bufio.NewReaderSize(unpacked, maxLine)
	for {
		raw, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(raw) == 0 && c.sawTrailer:
			return ""
		case errors.Is(err, bufio.ErrBufferFull):
			c.lineCount++
			return textTooLong
		case err != nil && c.lineCount == 0:
			return textNotPacked
		case err != nil:
			return textCutOff
		}
		c.lineCount++
		if problem := c.check(bytes.TrimSuffix(raw, []byte("\n"))); problem != "" {
			return problem
		}
	}
}

// check checks the next line.
func (c *checker) check(raw []byte) string {
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return textNoLine
	}
	switch {
	case c.sawTrailer:
		return textAfterEnd
	case c.lineCount == 1 && (l.Day != c.day || l.File < 1):
		return textOtherFile
	}
	if problem := c.follows(l); problem != "" {
		return problem
	}
	switch {
	case c.lineCount == 1:
		c.header = header{link: l.link, File: l.File, Day: l.Day, After: l.After}
	case l.End != "":
		if l.End != c.day || l.Lines != c.records {
			return fmt.Sprintf(textWrongEnd, l.Lines, c.records)
		}
		c.sawTrailer = true
	case l.Kind == "":
		return textNoLine
	default:
		c.records++
	}
	c.last, c.hasPosition = position{l.N, hashOf(raw)}, true
	return ""
}

// follows returns why a line doesn't follow the last one; "" if it does.
func (c *checker) follows(l line) string {
	switch {
	case !c.hasPosition:
		return ""
	case l.N > c.last.lines+1:
		return textMissingLines
	case l.N < c.last.lines+1:
		return textAddedLines
	case l.Prev != c.last.hash:
		return textChangedLine
	}
	return ""
}
