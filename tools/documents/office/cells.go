package office

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"
	"time"
)

// cell returns the text that a cell shows. For a formula, that is the result saved in the file.
func (b *bookReader) cell(r *partReader, e xml.StartElement) (string, error) {
	kind, looks := attribute(e, "t"), number(attribute(e, "s"))
	var value, formula, text string
	err := r.eachChild(func(e xml.StartElement) (err error) {
		switch e.Name.Local {
		case "v":
			value, err = r.text()
		case "f":
			formula, err = r.text()
		case "is":
			text, err = richText(r)
		}
		return err
	})
	if value == "" && text == "" {
		if formula != "" {
			return "=" + formula, err
		}
		return "", err
	}
	switch kind {
	case "s":
		if n, bad := strconv.Atoi(value); bad == nil && n >= 0 && n < len(b.strings) {
			return b.strings[n], err
		}
		return "", err
	case "inlineStr":
		return text, err
	case "b":
		return map[bool]string{true: "TRUE", false: "FALSE"}[value == "1"], err
	case "str", "e", "d":
		return value, err
	}
	return b.formats.show(value, looks), err
}

// formats describe how the numbers of a workbook are shown, to the extent that it changes their
// meaning.
type formats struct {
	since1904    bool
	codes        map[int]string // the format codes that the workbook defines itself, by id
	styleFormats []int          // the format id of each style that a cell can have
}

func (f *formats) read(r *partReader) error {
	f.codes = map[int]string{}
	return r.walk(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			if len(f.codes) < maxParts {
				f.codes[number(attribute(e, "numFmtId"))] = attribute(e, "formatCode")
			}
		case "cellXfs":
			return r.eachChild(func(e xml.StartElement) error {
				f.styleFormats = append(f.styleFormats, number(attribute(e, "numFmtId")))
				return nil
			})
		}
		return nil
	})
}

// A numberMeaning is the kind of value that a number represents.
type numberMeaning int

const (
	plainNumber numberMeaning = iota
	percentFormat
	dateFormat
	timeOfDay
	dateTime
)

// meaningOfID returns the kind of value that a number represents, by the id of its format. Ids
// below 164 are defined by the standard.
func (f *formats) meaningOfID(id int) numberMeaning {
	if code, ok := f.codes[id]; ok {
		return meaningOfCode(code)
	}
	switch {
	case id == 9 || id == 10:
		return percentFormat
	case id >= 14 && id <= 17, id >= 27 && id <= 31, id >= 50 && id <= 58, id == 36:
		return dateFormat
	case id >= 18 && id <= 21, id >= 32 && id <= 35, id >= 45 && id <= 47:
		return timeOfDay
	case id == 22:
		return dateTime
	}
	return plainNumber
}

// meaningOfCode returns the kind of value that a number represents, by its format code, such as
// "yyyy-mm-dd", "0.0%" or "[Red]#,##0 \"days\"".
func meaningOfCode(code string) numberMeaning {
	code, _, _ = strings.Cut(code, ";")
	var bare strings.Builder
	for i := 0; i < len(code); i++ {
		switch code[i] {
		case '"':
			i += max(strings.IndexByte(code[i+1:], '"')+1, 0)
		case '[':
			end := strings.IndexByte(code[i:], ']')
			if inner := strings.ToLower(code[i+1 : i+max(end, 1)]); strings.Trim(inner, "hms") == "" {
				bare.WriteString(inner) // elapsed hours, which may exceed a day
			}
			i += max(end, 0)
		case '\\', '_', '*':
			i++
		default:
			bare.WriteByte(code[i])
		}
	}
	letters := strings.ToLower(bare.String())
	days, hours := strings.ContainsAny(letters, "yd"), strings.ContainsAny(letters, "hs")
	switch {
	case letters == "general" || strings.HasPrefix(letters, "general"):
		return plainNumber
	case days && hours:
		return dateTime
	case days, strings.Contains(letters, "mmm"):
		return dateFormat
	case hours:
		return timeOfDay
	case strings.Contains(letters, "%"):
		return percentFormat
	}
	return plainNumber
}

// show formats the number value; look is the index of the cell's style. It returns a value that is no number
// unchanged.
func (f *formats) show(value string, look int) string {
	n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return value
	}
	m := plainNumber
	if look < len(f.styleFormats) {
		m = f.meaningOfID(f.styleFormats[look])
	}
	switch {
	case m == percentFormat:
		return formatNumber(n*100) + "%"
	case m == plainNumber || n < 0 || n > 2958466: // after the year 9999
		return formatNumber(n)
	case m == timeOfDay && n >= 1: // a duration
		seconds := int64(math.Round(n * 86400))
		return strconv.FormatInt(seconds/3600, 10) + time.Unix(seconds, 0).UTC().Format(":04:05")
	case m == timeOfDay:
		return f.timeOf(n).Format("15:04:05")
	case m == dateTime || n != math.Trunc(n):
		return f.timeOf(n).Format("2006-01-02 15:04:05")
	}
	return f.timeOf(n).Format("2006-01-02")
}

// timeOf returns the time that a number of days represents. Days are counted from 1900, which by an
// old mistake counts as a leap year, or from 1904 if the workbook says so.
func (f *formats) timeOf(days float64) time.Time {
	begin := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case f.since1904:
		begin = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 60:
		begin = begin.AddDate(0, 0, 1)
	}
	whole := math.Floor(days)
	return begin.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round((days-whole)*86400)) * time.Second)
}

// formatNumber formats a number rounded the way that people see it in an office program: 0.1+0.2 is
// 0.3.
func formatNumber(n float64) string {
	text := strconv.FormatFloat(n, 'g', 15, 64)
	if back, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(back) < 1e15 && math.Abs(back) >= 1e-6 || n == 0 {
		return strconv.FormatFloat(back, 'f', -1, 64)
	}
	return text
}
