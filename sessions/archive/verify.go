package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// A Report is the result of Verify.
type Report struct {
	From    string `json:"from,omitempty"` // the day of the first file
	To      string `json:"to,omitempty"`
	Files   int    `json:"files"`
	Records int64  `json:"records"`
	// HasDatabase is whether the database knows of any file. If not, nobody can tell whether all files were rewritten.
	HasDatabase bool   `json:"known"`
	Break       *Break `json:"break,omitempty"` // nil if nothing is broken
}

// Verify reads the files from that day on, or all if from is "", and reports where the chain is broken first, if
// anywhere. look returns all files that the database knows, in order. It is called once the files are listed: the
// database knows of a file before it is written.
func Verify(ctx context.Context, place Place, look func(ctx context.Context) ([]File, error), from string) (Report, error) {
	v := &verification{place: place, knownFiles: map[string]File{}}
	names, err := place.Names(ctx)
	if err != nil {
		return v.Report, wrap("list the files of the archive", err)
	}
	known, err := look(ctx)
	if err != nil {
		return v.Report, err
	}
	v.HasDatabase = len(known) > 0
	var days []string
	for _, name := range names {
		if day, ok := dayOf(name); ok && day >= from {
			days = append(days, day)
		}
	}
	for i, f := range known {
		if i > 0 && f.Day >= from && known[i-1].Day < from {
			v.previousFile = &known[i-1]
		}
		v.knownFiles[f.Day] = f
		if f.Day >= from && !f.Archived.IsZero() {
			days = append(days, f.Day)
		}
	}
	slices.Sort(days)
	for _, day := range slices.Compact(days) {
		if err := v.file(ctx, day); err != nil || v.Break != nil {
			return v.Report, err
		}
	}
	return v.Report, nil
}

// A verification is one call of Verify.
type verification struct {
	Report
	place        Place
	knownFiles   map[string]File
	previousFile *File     // the file before the first one, if the database knows it
	lastLine     *position // the last line that was read
	number       int64     // of the last file that was read
}

// file checks the file of a day.
func (v *verification) file(ctx context.Context, day string) error {
	f, known := v.knownFiles[day]
	content, err := v.place.Open(ctx, nameOf(day))
	if errors.Is(err, fs.ErrNotExist) {
		v.Break = &Break{Day: day, Problem: textMissingFile}
		return nil
	}
	if err != nil {
		return wrap("open the file of "+day, err)
	}
	w, broken, err := walk(content, day)
	if err = errors.Join(err, content.Close()); err != nil {
		return wrap("read the file of "+day, err)
	}
	if broken == nil {
		broken = v.linkProblem(w.header)
	}
	switch {
	case broken != nil:
	case v.HasDatabase && !known:
		broken = &Break{Day: day, Problem: textUnknownFile}
	case known && f.Hash != "" && f.Hash != w.lastLine.hash:
		broken = &Break{Day: day, Problem: textRewritten}
	}
	if v.Break = broken; broken != nil {
		return nil
	}
	if v.From == "" {
		v.From = day
	}
	v.To, v.Files, v.Records = day, v.Files+1, v.Records+w.lines
	v.lastLine, v.number = &w.lastLine, w.header.File
	return nil
}

// linkProblem returns why a file doesn't follow the one before it; nil if it does.
func (v *verification) linkProblem(h header) *Break {
	c := checker{}
	switch {
	case v.lastLine != nil && h.File != v.number+1 && h.After != v.To:
		return &Break{Day: h.Day, Problem: fmt.Sprintf(textMissingBefore, h.After)}
	case v.lastLine != nil:
		c.last, c.hasPosition = *v.lastLine, true
	case v.previousFile != nil && v.previousFile.Hash != "":
		c.last, c.hasPosition = position{h.N - 1, v.previousFile.Hash}, true
	case h.File == 1:
		c.hasPosition = true
	case v.HasDatabase:
		return &Break{Day: h.Day, Line: 1, Problem: textNotFirst}
	}
	if problem := c.follows(line{link: h.link}); problem != "" {
		return &Break{Day: h.Day, Line: 1, Problem: problem}
	}
	return nil
}
