package tools_test

import (
	"strings"
	"testing"

	"parley/tools"
)

func TestIsBinary(t *testing.T) {
	for start, want := range map[string]bool{
		"": false, "package main": false, "größer": false, "gr\xf6\xdfer in an old encoding": false, "cut off \xe2\x82": false,
		"\xff\xfe\xfd": false, "\xff\xfe\xfd\xfc": true, "a\x00": true, strings.Repeat("ab\xff", 9): true, strings.Repeat("abcd\xff", 9): false,
	} {
		if got := tools.IsBinary([]byte(start)); got != want {
			t.Errorf("%q is binary: %v, want %v", start, got, want)
		}
	}
}

func TestShortenLine(t *testing.T) {
	for line, want := range map[string]string{"": "", " abc": " abc", "abcde": "abcd…", "abc\xff": "abc\uFFFD", "a\x00b": "a\uFFFDb", "abcé": "abc…"} {
		if got := tools.ShortenLine(line, 4); got != want {
			t.Errorf("%q is shown as %q, want %q", line, got, want)
		}
	}
}

func TestRelativeTo(t *testing.T) {
	for _, tt := range [][3]string{{".", "a/b", "a/b"}, {"a", "a/b/c", "b/c"}, {"a/b", "a/b", ""}} {
		if got := tools.RelativeTo(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s is %q relative to %s, want %q", tt[1], got, tt[0], tt[2])
		}
	}
}
