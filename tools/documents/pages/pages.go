// Package pages is what reading a document gives: the text of its pages, or why there is none.
//
// It is the ground that those who parse documents, those who have them parsed, and
// the tools that show them stand on.
package pages

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// MaxBytes is how large a document may be.
	MaxBytes = 32 << 20
	// UsualMost is how much of its text is shown at once, in bytes: what a model is shown
	// of a result has room for it.
	UsualMost = 48 << 10
)

// A Kind is what a file is, as far as its beginning tells.
type Kind string

// The kinds. A file of the last three is looked at more closely by who parses it.
const (
	None   Kind = ""       // nothing that is known here
	PDF    Kind = "pdf"    // a Portable Document
	Office Kind = "office" // an archive: DOCX, XLSX, PPTX, or something else
	Old    Kind = "old"    // an office document before 2007, or one with a password
	Table  Kind = "table"  // values between commas, semicolons or tabs
	Text   Kind = "text"   // any other text
)

// A Reader makes text of documents.
type Reader interface {
	// Read gives pages of one document. Its error is for the model; a *NoDocument
	// says that the file is none of the kinds above.
	Read(ctx context.Context, r Request) (Shown, error)
}

// A Request asks for pages of one document.
type Request struct {
	Name    string // what to call it in errors
	Kind    Kind
	Pages   string // "" is from the first on, as many as there is room for
	Most    int    // bytes of text; at least one page is given, cut if it is longer
	Content io.Reader
}

// Shown is what a model is shown of a document.
type Shown struct {
	// Content is the text, each page below a line that says which it is.
	Content string `json:"content"`
	// Pages is how many there are.
	Pages int `json:"pages"`
	// Next are those that were asked for and did not fit; "" if all did.
	Next string `json:"next,omitempty"`
	// Note says what has to be known of how the text came about.
	Note string `json:"note,omitempty"`
}

// NoDocument says that a file is of no kind that can be read.
type NoDocument struct{}

func (*NoDocument) Error() string { return "it is no document" }

// A Document is one file that is being read.
type Document interface {
	// Count is how many pages there are.
	Count() int
	// Page is one of them, from 1 on.
	Page(n int) (Page, error)
	// Note says what has to be known of how its text came about; "" is nothing.
	Note() string
}

// A Page is a page, or a part of a document that has none, with what it is called.
type Page struct {
	Title string `json:"title,omitempty"` // "slide 3", "sheet Sales, rows 1 to 80"; "" is "page N"
	Text  string `json:"text"`
}

// A Problem is why a document has no text to give.
type Problem string

// The problems.
const (
	Unknown   Problem = "unknown"   // it is no document of any kind that is read
	Encrypted Problem = "encrypted" // it takes a password
	Damaged   Problem = "damaged"
	TooMuch   Problem = "too much" // reading it would take more than is allowed
	Legacy    Problem = "legacy"   // of a kind that programs have given up
)

// An Error is a Problem as Go has errors, with what was found.
type Error struct {
	Problem Problem
	Detail  string // for the model; "" says no more
}

func (e *Error) Error() string { return strings.TrimSuffix(string(e.Problem)+": "+e.Detail, ": ") }

// Errorf makes an Error.
func Errorf(p Problem, format string, args ...any) *Error {
	return &Error{Problem: p, Detail: fmt.Sprintf(format, args...)}
}

// A Range is pages from First to Last, both included; Last 0 is to the end.
type Range struct{ First, Last int }

// maxRanges bounds how many pieces a choice of pages has.
const maxRanges = 100

// Parse reads a choice of pages: "3", "2-5", "7-", or several between commas.
func Parse(choice string) ([]Range, error) {
	if strings.TrimSpace(choice) == "" {
		return []Range{{First: 1}}, nil
	}
	parts := strings.Split(choice, ",")
	if len(parts) > maxRanges {
		return nil, fmt.Errorf("at most %d ranges of pages at once", maxRanges)
	}
	ranges := make([]Range, 0, len(parts))
	for _, part := range parts {
		from, to, several := strings.Cut(strings.TrimSpace(part), "-")
		r := Range{First: number(from)}
		switch to = strings.TrimSpace(to); {
		case !several:
			r.Last = r.First
		case to != "":
			r.Last = number(to)
		}
		if r.First < 1 || several && to != "" && r.Last < r.First {
			return nil, fmt.Errorf(`%q names no pages: write "3", "2-5" or "7-", or several of them between commas`, strings.TrimSpace(part))
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// number is a number of a page; 0 is none.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}

// Format is how Parse reads them.
func Format(ranges []Range) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		switch {
		case r.First == r.Last:
			parts[i] = strconv.Itoa(r.First)
		case r.Last == 0:
			parts[i] = strconv.Itoa(r.First) + "-"
		default:
			parts[i] = strconv.Itoa(r.First) + "-" + strconv.Itoa(r.Last)
		}
	}
	return strings.Join(parts, ",")
}

// Within are the ranges as far as there are pages: those beyond the last one go.
func Within(ranges []Range, count int) []Range {
	var kept []Range
	for _, r := range ranges {
		if r.First > count {
			continue
		}
		if r.Last == 0 || r.Last > count {
			r.Last = count
		}
		kept = append(kept, r)
	}
	return kept
}
