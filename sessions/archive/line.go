package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"parley/sessions"
)

// lineVersion is the version of what a line has.
const lineVersion = 1

// A link contains what every line has: the hash of the line before, without its newline, and the line's own
// number in the chain.
type link struct {
	Prev string `json:"prev"` // empty in the very first line
	N    int64  `json:"n"`
}

// A header is the first line of a file.
type header struct {
	link
	Format int    `json:"format"`
	File   int64  `json:"file"` // the number of the file in the chain
	Day    string `json:"day"`
	After  string `json:"after,omitempty"` // the day of the file before
}

// A trailer is the last line of a file.
type trailer struct {
	link
	End   string `json:"end"`   // the day
	Lines int64  `json:"lines"` // how many records the file has
}

// A record is the line of an audit record. It has no arguments and no text that somebody wrote. What names a person, a
// conversation or something in it is a pseudonym.
type record struct {
	link
	ID       int64     `json:"id"`
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"`
	By       string    `json:"by,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Session  string    `json:"session,omitempty"`
	Turn     string    `json:"turn,omitempty"`
	Call     string    `json:"call,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Verdict  string    `json:"verdict,omitempty"`
	Result   string    `json:"result,omitempty"`
	ExitCode *int      `json:"exit_code,omitempty"`
	Bytes    int64     `json:"bytes,omitempty"`
	Elapsed  int64     `json:"elapsed_ms"`
	// Detail is a code, or a pseudonym.
	Detail string             `json:"detail,omitempty"`
	Used   *sessions.AuditUse `json:"used,omitempty"`
}

// hashOf returns the hash of a line, which the next line contains.
func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// maxWord is the length of the longest code or name that a line may have.
const maxWord = 100

// codeOrEmpty returns a text if it is a code or a name of the kind that programs use, and otherwise "": a
// tool's name may have been made up by a model.
func codeOrEmpty(text string) string {
	if len(text) > maxWord || strings.ContainsFunc(text, isForbiddenRune) {
		return ""
	}
	return text
}

// isForbiddenRune reports whether no code or name has this character.
func isForbiddenRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.:/@+-", r)
}
