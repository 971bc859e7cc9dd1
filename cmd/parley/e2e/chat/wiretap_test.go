package chat

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // Redis names scripts by their SHA-1
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A wiretap is a proxy between the program and a server. It records what the program sends: the statements for
// PostgreSQL, or the commands and scripts for Redis.
type wiretap struct {
	server string
	read   func(w *wiretap, from *bufio.Reader) error

	mu      sync.Mutex
	asked   []string          // what the program sent, in order
	trips   int               // how often the program sent something after an answer, over all connections
	scripts map[string]string // the names of Redis scripts, by hash
}

// newWiretap starts a wiretap in front of the server at a URL, and returns the wiretap and its own URL.
func newWiretap(t *testing.T, place string, read func(*wiretap, *bufio.Reader) error) (*wiretap, string) {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	w := &wiretap{server: u.Host, read: read, scripts: map[string]string{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = listener.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { w.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait() // the program has ended before, because cleanups run in reverse order
	})
	return w, u.String()
}

// serve connects one client to the server.
func (w *wiretap) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	line := &line{tap: w, client: client, server: server}
	var answers sync.WaitGroup
	answers.Go(func() {
		defer client.Close()
		_, _ = io.Copy(line, server) // ends when either connection does
	})
	defer answers.Wait()
	defer server.Close()
	_ = w.read(w, bufio.NewReaderSize(line, 64<<10)) // ends when either connection does
}

// A line is one connection. What is read from it was sent by the client and is passed on to the server; what is written
// to it is the server's answer.
type line struct {
	tap            *wiretap
	client, server net.Conn
	asking         bool // whether the client has sent something since the last answer; guarded by tap.mu
}

// Read reads what the client sends, and passes it on to the server.
func (l *line) Read(p []byte) (int, error) {
	n, err := l.client.Read(p)
	if n > 0 {
		l.tap.mu.Lock()
		if !l.asking {
			l.asking = true
			l.tap.trips++
		}
		l.tap.mu.Unlock()
		if _, err := l.server.Write(p[:n]); err != nil {
			return n, err
		}
	}
	return n, err
}

// Write passes an answer on to the client.
func (l *line) Write(p []byte) (int, error) {
	l.tap.mu.Lock()
	l.asking = false
	l.tap.mu.Unlock()
	return l.client.Write(p)
}

// note records a statement or command.
func (w *wiretap) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, what)
}

// count returns how often a statement or command was sent since the last call of take.
func (w *wiretap) count(what string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asked {
		if a == what {
			n++
		}
	}
	return n
}

// take returns what was sent since the last call, and the number of round trips.
func (w *wiretap) take() (asked []string, trips int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked, trips, w.asked, w.trips = w.asked, w.trips, nil, 0
	return asked, trips
}

// readStatements reads PostgreSQL's protocol, and records each statement that is executed.
func readStatements(w *wiretap, from *bufio.Reader) error {
	if _, err := readFrame(from); err != nil { // the startup message has no type
		return err
	}
	prepared, bound := map[string]string{}, ""
	for {
		kind, err := from.ReadByte()
		if err != nil {
			return err
		}
		body, err := readFrame(from)
		if err != nil {
			return err
		}
		texts := bytes.SplitN(body, []byte{0}, 3)
		switch {
		case kind == 'P' && len(texts) == 3:
			prepared[string(texts[0])] = string(texts[1])
		case kind == 'B' && len(texts) == 3:
			bound = prepared[string(texts[1])]
		case kind == 'E':
			w.note(bound)
		case kind == 'Q':
			w.note(string(texts[0]))
		}
	}
}

func readFrame(from *bufio.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	body := make([]byte, max(4, binary.BigEndian.Uint32(size[:]))-4)
	_, err := io.ReadFull(from, body)
	return body, err
}

// scriptName finds the name of a script in its text.
var scriptName = regexp.MustCompile(`(?m)^--!.*\n-- (\w+) `)

// readCommands reads Redis's protocol, and records each command, and for a script its name.
func readCommands(w *wiretap, from *bufio.Reader) error {
	for {
		n, err := readCount(from, '*')
		if err != nil {
			return err
		}
		var words []string
		for range n {
			size, err := readCount(from, '$')
			if err != nil {
				return err
			}
			word := make([]byte, size+2)
			if _, err := io.ReadFull(from, word); err != nil {
				return err
			}
			words = append(words, string(word[:size]))
		}
		w.note(w.commandOf(words))
	}
}

// commandOf returns the name under which a command is recorded.
func (w *wiretap) commandOf(words []string) string {
	name := strings.ToLower(words[0])
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case name == "script" && len(words) == 3:
		if found := scriptName.FindStringSubmatch(words[2]); found != nil {
			sum := sha1.Sum([]byte(words[2])) //nolint:gosec // as above
			w.scripts[hex.EncodeToString(sum[:])] = found[1]
		}
	case name == "evalsha" && len(words) > 1:
		return "script " + w.scripts[words[1]]
	}
	return name
}

func readCount(from *bufio.Reader, sign byte) (int, error) {
	text, err := from.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if text[0] != sign {
		return 0, errors.New("not a command")
	}
	return strconv.Atoi(strings.TrimSpace(text[1:]))
}
