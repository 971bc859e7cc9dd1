package ssh

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
	"unicode"

	"parley/tools"
	"parley/tools/plainjson"
)

// protocolVersion is the version of the lines before the link.
const protocolVersion = 1

// A Hello is the node's first line.
type Hello struct {
	Version      int      `json:"parley_node"`
	Key          []byte   `json:"key"` // the public key of the home there
	Release      string   `json:"release"`
	Capabilities []string `json:"capabilities"`
}

// HelloOf returns the first line of a node with this public key.
func HelloOf(key []byte, release string, capabilities []string) Hello {
	return Hello{protocolVersion, key, release, capabilities}
}

// A Greeting is the server's line.
type Greeting struct {
	Version int    `json:"parley_server"`
	Key     []byte `json:"key"`  // the public key of the fleet
	Name    string `json:"name"` // of the node
}

// A Ready is the node's second line: the link begins, unless Refused says why not.
type Ready struct {
	Refused string `json:"refused,omitempty"`
}

// Limits of the lines.
const (
	maxLine  = 4 << 10 // bytes
	maxShown = 500     // bytes of what was read instead
)

// SendHello is the node's end of the preamble: it sends a Hello, and waits for the server's Greeting for at most
// patience. The link begins after SendReady. The error is io.EOF if the other end has closed the connection.
func SendHello(conn net.Conn, h Hello, patience time.Duration) (g Greeting, err error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return g, fmt.Errorf("bound the beginning: %w", err)
	}
	if err := writeLine(conn, h); err != nil {
		return g, err
	}
	line, err := readLine(conn)
	if errors.Is(err, io.EOF) && line == "" {
		return g, io.EOF
	}
	if err != nil {
		return g, fmt.Errorf("wait for the server: %w", err)
	}
	if json.Unmarshal([]byte(line), &g) != nil || g.Version == 0 || len(g.Key) != ed25519.PublicKeySize {
		return g, fmt.Errorf("%q is nothing that a server says", tools.Clip(line, maxShown))
	}
	if g.Version != protocolVersion {
		return g, fmt.Errorf("the server speaks version %d, and this program version %d", g.Version, protocolVersion)
	}
	return g, nil
}

// SendReady ends the preamble: it tells the server that the link begins, or why the node refuses it.
func SendReady(conn net.Conn, refused string) error {
	if err := writeLine(conn, Ready{refused}); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{}) //nolint:wrapcheck // it says enough
}

// readHello waits for the node's Hello. Its error is a *Problem, or a read error.
func readHello(conn net.Conn) (h Hello, err error) {
	line, err := readLine(conn)
	switch {
	case err != nil && !errors.Is(err, errLineTooLong) && line != "": // this output does not come from a node
		return h, &Problem{Kind: ForeignOutput, Said: clean(line)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return h, &Problem{Kind: NoOutput}
	case err != nil && !errors.Is(err, errLineTooLong):
		return h, err
	}
	switch {
	case json.Unmarshal([]byte(line), &h) != nil || h.Version == 0:
		return h, &Problem{Kind: ForeignOutput, Said: clean(line)}
	case h.Version != protocolVersion || len(h.Key) != ed25519.PublicKeySize:
		return h, &Problem{Kind: OtherVersion}
	}
	return h, nil
}

// sendGreeting sends the Greeting, and waits until the node is ready. Its error is a *Problem, or an error of reading
// or writing.
func sendGreeting(conn net.Conn, g Greeting) error {
	g.Version = protocolVersion
	if err := writeLine(conn, g); err != nil {
		return err
	}
	line, err := readLine(conn)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Problem{Kind: NoOutput}
	case err != nil:
		return err
	}
	var r Ready
	if json.Unmarshal([]byte(line), &r) != nil {
		return &Problem{Kind: ForeignOutput, Said: clean(line)}
	}
	if r.Refused != "" {
		return &Problem{Kind: ProgramRefuses, Said: clean(r.Refused)}
	}
	return nil
}

func writeLine(w io.Writer, line any) error {
	raw, err := plainjson.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	if _, err := w.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("write a line: %w", err)
	}
	return nil
}

// errLineTooLong is returned for a line that is too long.
var errLineTooLong = errors.New("the line is too long")

// readLine reads one line, and not a byte more, because the link follows. It returns what it has read even if it fails.
func readLine(r io.Reader) (string, error) {
	var line strings.Builder
	for one := make([]byte, 1); line.Len() < maxLine; {
		if _, err := io.ReadFull(r, one); err != nil {
			return line.String(), err //nolint:wrapcheck // io.EOF must stay as it is
		}
		if one[0] == '\n' {
			return line.String(), nil
		}
		line.WriteByte(one[0])
	}
	return line.String(), errLineTooLong
}

// clean returns the other end's text as one short line without control characters.
func clean(text string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	return tools.Clip(strings.Join(strings.Fields(visible), " "), maxShown)
}
