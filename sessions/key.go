package sessions

import (
	"fmt"
	"net/url"
	"strings"
)

// MaxKey is the maximum length of a session key, in bytes.
const MaxKey = 256

// Key returns the key of a session: an agent's name and where the conversation takes place. Each part is
// percent-encoded outside A-Za-z0-9._@-, so that no part contains a separator. "." and ".." are encoded too, so that
// they are never elements of a path made from a key. It returns ErrInvalidKey if a part is empty, except the thread,
// or the key is too long.
func Key(agent, channel, chat, thread string) (string, error) {
	parts := []string{agent, channel, chat}
	if thread != "" {
		parts = append(parts, thread)
	}
	for i, p := range parts {
		parts[i] = EncodePart(p)
	}
	key := strings.Join(parts, ":")
	return key, CheckKey(key)
}

// PersonalKey returns the key of one person's own conversation in a place where others have theirs:
// AGENT:CHANNEL:CHAT:[THREAD]:USER. The thread may be empty. It returns ErrInvalidKey as Key does.
func PersonalKey(agent, channel, chat, thread, user string) (string, error) {
	parts := []string{agent, channel, chat, thread, user}
	for i, p := range parts {
		parts[i] = EncodePart(p)
	}
	key := strings.Join(parts, ":")
	return key, CheckKey(key)
}

// CheckKey returns ErrInvalidKey unless a text is a session key in the form that Key and PersonalKey
// return: three to five encoded parts, none empty except the fourth of five, at most MaxKey bytes in all.
// A conversation has only one key, so any other spelling of a key is refused.
func CheckKey(key string) error {
	if len(key) > MaxKey {
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrInvalidKey, len(key), MaxKey)
	}
	parts := strings.Split(key, ":")
	if len(parts) < 3 || len(parts) > 5 {
		return fmt.Errorf("%w: want AGENT:CHANNEL:CHAT, AGENT:CHANNEL:CHAT:THREAD or AGENT:CHANNEL:CHAT:[THREAD]:USER", ErrInvalidKey)
	}
	for i, p := range parts {
		if p == "" && i == 3 && len(parts) == 5 {
			continue
		}
		said, err := url.PathUnescape(p)
		if err != nil || said == "" || EncodePart(said) != p {
			return fmt.Errorf("%w: each part has one or more of A-Za-z0-9._@- and, for every other byte, %%XX", ErrInvalidKey)
		}
	}
	return nil
}

// KeyParts are the parts of a session's key, decoded: which agent talks where, and with whom.
type KeyParts struct {
	Agent, Channel, Chat string
	Thread               string // "" if the conversation is in no thread
	User                 string // the one person whose conversation this is; "" if everybody there shares it
}

// ParseKey splits a session's key into its parts, or returns ErrInvalidKey.
func ParseKey(key string) (KeyParts, error) {
	if err := CheckKey(key); err != nil {
		return KeyParts{}, err
	}
	var parts [5]string
	for i, p := range strings.Split(key, ":") {
		parts[i], _ = url.PathUnescape(p) // CheckKey has done this without an error
	}
	return KeyParts{Agent: parts[0], Channel: parts[1], Chat: parts[2], Thread: parts[3], User: parts[4]}, nil
}

// AgentOf returns the name of the agent in a session's key. Names of agents are not encoded.
func AgentOf(key string) string {
	agent, _, _ := strings.Cut(key, ":")
	return agent
}

// EncodePart percent-encodes one part of a key.
func EncodePart(part string) string {
	if part == "." || part == ".." {
		return strings.ReplaceAll(part, ".", "%2E")
	}
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; needsNoEncoding(rune(c)) && c < 0x80 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// needsNoEncoding reports whether a key contains this character without encoding.
func needsNoEncoding(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		r == '.' || r == '_' || r == '@' || r == '-'
}
