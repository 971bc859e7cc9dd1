// Package pages defines what reading a document returns: the text of its pages, or why it has none.
//
// It is used by the packages that parse documents, by the package that has them parsed in a
// sandbox, and by the tools that show them.
package pages

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// MaxBytes limits the size of a document.
	MaxBytes = 32 << 20
	// UsualMost is how much of a document's text is shown at once, in bytes: as much as fits into a
	// result that a model is shown.
	UsualMost = 48 << 10
)

// A Kind is the kind of a file, as far as its beginning shows.
type Kind string

// The kinds. Only the parser finds out whether a file of the kind PDF, Office or Old really is one.
const (
	None   Kind = ""       // no kind that this package knows
	PDF    Kind = "pdf"    // a Portable Document
	Office Kind = "office" // an archive: DOCX, XLSX, PPTX, or something else
	Old    Kind = "old"    // an office document from before 2007, or one with a password
	Table  Kind = "table"  // values between commas, semicolons or tabs
	Text   Kind = "text"   // any other text
)

// A Reader turns documents into text.
type Reader interface {
	// Read returns some pages of one document. Its error is for the model; a *NoDocument means that
	// the file is of none of the kinds above.
	Read(ctx context.Context, r Request) (ShownPart, error)
}

// A Request asks for pages of one document.
type Request struct {
	Name    string // the document's name in errors
	Kind    Kind
	Pages   string // "" means from the first page on, as many as fit
	Most    int    // bytes of text; at least one page is returned, cut if it is longer
	Content io.Reader
}

// ShownPart is the part of a document that a model is shown.
type ShownPart struct {
	// Content is the text, each page below a line with its number.
	Content string `json:"content"`
	// Pages is how many pages the document has.
	Pages int `json:"pages"`
	// Next names the pages that were asked for and did not fit; "" if all did.
	Next string `json:"next,omitempty"`
	// Note tells the model what it has to know about how the text was read.
	Note string `json:"note,omitempty"`
}

// NoDocument is the error for a file of a kind that cannot be read.
type NoDocument struct{}

func (*NoDocument) Error() string { return "it is no document" }

// A Document is one file that is being read.
type Document interface {
	// Count returns how many pages the document has.
	Count() int
	// Page returns page n, counted from 1.
	Page(n int) (Page, error)
	// Note returns what the model has to know about how the text was read; "" if nothing.
	Note() string
}

// A Page is the text of one page, or of one part of a document that has no pages.
type Page struct {
	Title string `json:"title,omitempty"` // "slide 3", "sheet Sales, rows 1 to 80"; "" means "page N"
	Text  string `json:"text"`
}

// A Problem says why a document has no text to return.
type Problem string

// Why a document has no text to return.
const (
	Unknown   Problem = "unknown"   // it is not a document of any kind that can be read
	Encrypted Problem = "encrypted" // it needs a password
	Damaged   Problem = "damaged"
	TooMuch   Problem = "too much" // reading it would take more time or memory than is allowed
	Legacy    Problem = "legacy"   // its format is one that today's programs no longer write
)

// An Error is a Problem as a Go error, with details.
type Error struct {
	Problem Problem
	Detail  string // for the model; "" adds nothing
}

func (e *Error) Error() string { return strings.TrimSuffix(string(e.Problem)+": "+e.Detail, ": ") }

// Errorf makes an Error with a formatted detail.
func Errorf(p Problem, format string, args ...any) *Error {
	return &Error{Problem: p, Detail: fmt.Sprintf(format, args...)}
}

// A Range is the pages from First to Last, both included. If Last is 0, it extends to the end.
type Range struct{ First, Last int }

// maxRanges limits how many ranges a choice of pages may contain.
const maxRanges = 100

// Parse reads a choice of pages: "3", "2-5", "7-", or several with commas between them. An empty choice means all
// pages.
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

// number parses a page number; 0 if it is invalid.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}

// Format writes ranges in the form that Parse reads.
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

// ClipRanges returns the ranges cut to the pages that exist; ranges beyond the last page are dropped.
func ClipRanges(ranges []Range, count int) []Range {
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
