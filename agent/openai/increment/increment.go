// Package increment is a fast reader for the most frequent event of a model's answer: one more piece of its
// text, and nothing else.
package increment

import "unicode/utf8"

// Text returns the text that an event of a chat-completions stream adds to the answer. It returns false for any
// event that contains something it doesn't know, and for invalid JSON: these are left to the reader for
// everything that servers send.
func Text(event []byte) (text string, ok bool) {
	r := reader{left: event}
	r.readEvent()
	r.skipSpace()
	if r.failed || len(r.left) > 0 || !r.sawDelta {
		return "", false
	}
	return string(r.text), true
}

// A reader reads an event from beginning to end. Once it has failed, it reads nothing more.
type reader struct {
	left   []byte // what is left to read
	failed bool
	text   []byte

	sawChoices, sawDelta bool
}

// readEvent reads the whole event.
func (r *reader) readEvent() {
	r.readObject(func(name []byte) {
		switch string(name) {
		case "choices":
			r.failed = r.failed || r.sawChoices
			r.sawChoices = true
			r.require('[')
			r.readChoice()
			r.require(']')
		case "object":
			if string(r.readString()) == "error" {
				r.failed = true
			}
		case "usage":
			r.readStringOrNull(false)
		case "system_fingerprint", "service_tier":
			r.readStringOrNull(true)
		case "id", "model", "provider", "obfuscation":
			r.readString()
		case "created":
			r.readNumber()
		default:
			r.failed = true
		}
	})
}

// readChoice reads the only choice.
func (r *reader) readChoice() {
	r.readObject(func(name []byte) {
		switch string(name) {
		case "index":
			if string(r.readNumber()) != "0" {
				r.failed = true
			}
		case "delta":
			r.failed = r.failed || r.sawDelta
			r.sawDelta = true
			r.readDelta()
		case "finish_reason", "native_finish_reason", "logprobs":
			r.readStringOrNull(false)
		default:
			r.failed = true
		}
	})
}

// readDelta reads what the choice adds to the answer.
func (r *reader) readDelta() {
	r.readObject(func(name []byte) {
		switch string(name) {
		case "content":
			r.failed = r.failed || r.text != nil
			r.text = r.readStringOrNull(true)
		case "role":
			r.readString()
		case "refusal":
			r.readStringOrNull(false)
		default:
			r.failed = true
		}
	})
}

// readObject reads an object. It calls value for each field's value, with the field's name.
func (r *reader) readObject(value func(name []byte)) {
	r.require('{')
	if r.accept('}') {
		return
	}
	for !r.failed {
		name := r.readString()
		r.require(':')
		if r.failed {
			return
		}
		if value(name); !r.accept(',') {
			break
		}
	}
	r.require('}')
}

// readString reads a string without escapes, and returns its content. It fails on a string with escapes or invalid
// UTF-8.
func (r *reader) readString() []byte {
	r.require('"')
	for i, c := range r.left {
		switch {
		case r.failed || c < ' ' || c == '\\':
			r.failed = true
			return nil
		case c == '"':
			s := r.left[:i:i]
			r.left = r.left[i+1:]
			r.failed = !utf8.Valid(s)
			return s
		}
	}
	r.failed = true
	return nil
}

// readStringOrNull reads null, or a string if that is allowed. It returns nil for null.
func (r *reader) readStringOrNull(allowed bool) []byte {
	const null = "null"
	r.skipSpace()
	if len(r.left) >= len(null) && string(r.left[:len(null)]) == null {
		r.left = r.left[len(null):]
		return nil
	}
	if !allowed {
		r.failed = true
		return nil
	}
	return r.readString()
}

// readNumber reads a non-negative integer, and returns its digits.
func (r *reader) readNumber() []byte {
	r.skipSpace()
	n := 0
	for n < len(r.left) && '0' <= r.left[n] && r.left[n] <= '9' {
		n++
	}
	digits := r.left[:n]
	r.left = r.left[n:]
	r.failed = r.failed || n == 0 || n > 1 && digits[0] == '0'
	return digits
}

// require reads the character c, and fails if the next one is different.
func (r *reader) require(c byte) {
	if !r.accept(c) {
		r.failed = true
	}
}

// accept reads the character c if it comes next.
func (r *reader) accept(c byte) bool {
	r.skipSpace()
	if r.failed || len(r.left) == 0 || r.left[0] != c {
		return false
	}
	r.left = r.left[1:]
	return true
}

// skipSpace skips white space.
func (r *reader) skipSpace() {
	for len(r.left) > 0 && (r.left[0] == ' ' || r.left[0] == '\n' || r.left[0] == '\t' || r.left[0] == '\r') {
		r.left = r.left[1:]
	}
}
