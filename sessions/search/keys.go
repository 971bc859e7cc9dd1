package search

import (
	"hash/fnv"
	"iter"
	"strconv"
	"strings"

	"parley/sessions"
)

// The index keeps no words but short hashes of them, which the databases store and compare as any word: so it has
// no text of anybody's, in whatever unused part of a file, and nobody's characters have to be escaped. Two words may
// have one hash; who has found an entry reads it, and sees that.

// Cut is the identity of the way in which words are cut and hashed. An index that has another one is filled anew.
const Cut = 1

// mostKeys bounds how many different words of one entry are indexed.
const mostKeys = 2000

// A key is the hash of a word's form: eight letters or digits.
type key string

// letters are those of a hash.
const letters = "0123456789abcdefghijklmnopqrstuv"

func keyOf(form string) key {
	h := fnv.New64a()
	_, _ = h.Write([]byte(form)) // it cannot fail
	sum := h.Sum64()
	sum ^= sum >> 40 // the low bits alone would have little of the last letters
	var k [8]byte
	for i := range k {
		k[i] = letters[sum%uint64(len(letters))]
		sum /= uint64(len(letters))
	}
	return key(k[:])
}

// sessionKey is the word that all entries of a session have, so that an index finds those of some sessions alone. It
// begins with a letter that no hash has.
func sessionKey(session int64) string { return "x" + strconv.FormatInt(session, 10) }

// forms yields the forms of the words, some of them several times; none for an entry without a text.
func (s said) forms() iter.Seq[string] {
	return func(yield func(string) bool) {
		if s.text == "" {
			return
		}
		for _, text := range []string{s.name, s.text} {
			for t := range tokens(text) {
				if !yield(t.form) {
					return
				}
			}
		}
	}
}

// wordsOf returns the words of an entry as the index keeps them, with spaces between them; "" for an entry that
// has none.
func wordsOf(e sessions.Entry) string {
	known := map[string]bool{}
	var b strings.Builder
	for form := range saidIn(e).forms() {
		if known[form] {
			continue
		}
		if known[form] = true; len(known) > mostKeys {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(keyOf(form)))
	}
	return b.String()
}

// hasWords reports whether wordsOf returns something, without hashing all of it.
func hasWords(e sessions.Entry) bool {
	for range saidIn(e).forms() {
		return true
	}
	return false
}

// KeyOf returns what the index has of a form of a word, for tests that look for it in files.
func KeyOf(form string) string { return string(keyOf(form)) }
