package search

import (
	"hash/fnv"
	"iter"
	"strconv"
	"strings"

	"parley/sessions"
)

// The index contains no words but short hashes of them, which the databases store and compare like words.
// So no unused part of a file can contain people's text, and no characters have to be escaped. Two words
// may have the same hash; the search reads each entry that it finds, and notices that.

// WordRules identifies the way in which words are cut and hashed. An index with a different value is filled
// again.
const WordRules = 1

// maxKeys limits how many different words of one entry are indexed.
const maxKeys = 2000

// A key is the hash of a word's form: eight letters or digits.
type key string

// hashAlphabet are the characters of a hash.
const hashAlphabet = "0123456789abcdefghijklmnopqrstuv"

func keyOf(form string) key {
	h := fnv.New64a()
	_, _ = h.Write([]byte(form)) // never fails
	sum := h.Sum64()
	sum ^= sum >> 40 // the low bits alone would hardly depend on the last letters
	var k [8]byte
	for i := range k {
		k[i] = hashAlphabet[sum%uint64(len(hashAlphabet))]
		sum /= uint64(len(hashAlphabet))
	}
	return key(k[:])
}

// sessionKey returns the word that is indexed for all entries of a session, so that a search in the index
// can be limited to some sessions. It begins with a letter that is in no hash.
func sessionKey(session int64) string { return "x" + strconv.FormatInt(session, 10) }

// forms yields the forms of the words, some of them several times; it yields none for an entry without a
// text.
func (s content) forms() iter.Seq[string] {
	return func(yield func(string) bool) {
		if s.text == "" {
			return
		}
		for _, text := range []string{s.name, s.text} {
			for t := range tokens(text) {
				if !yield(t.stemmed) {
					return
				}
			}
		}
	}
}

// wordsOf returns the words of an entry in the form in which they are indexed, separated by spaces, but no
// more than maxKeys; "" for an entry without words.
func wordsOf(e sessions.Entry) string {
	known := map[string]bool{}
	var b strings.Builder
	for form := range contentOf(e).forms() {
		if known[form] {
			continue
		}
		if known[form] = true; len(known) > maxKeys {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(keyOf(form)))
	}
	return b.String()
}

// hasWords reports whether wordsOf returns any words, without hashing all of them.
func hasWords(e sessions.Entry) bool {
	for range contentOf(e).forms() {
		return true
	}
	return false
}

// KeyOf returns what the index stores for a form of a word, for tests that look for it in files.
func KeyOf(form string) string { return string(keyOf(form)) }
