package folder

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Bounds of what a skill says of itself.
const (
	maxFront       = 16 << 10 // bytes, with the lines around it
	maxName        = 64
	maxDescription = 1024 // characters
)

// An about is what a SKILL.md says of itself. What else stands there, such as which tools
// it would like to be allowed, grants nothing.
type about struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

// parse reads the lines between the first two lines of dashes, and what follows them.
func parse(raw []byte) (a about, body string, err error) {
	if !utf8.Valid(trimmedRune(raw)) {
		return a, "", errors.New("it is no text in UTF-8")
	}
	text := strings.TrimPrefix(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\uFEFF")
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return a, "", errors.New("it does not begin with a line of three dashes")
	}
	front, body, ok := strings.Cut("\n"+rest, "\n---\n")
	if !ok {
		if front, ok = strings.CutSuffix("\n"+rest, "\n---"); !ok {
			return a, "", fmt.Errorf("no second line of three dashes ends its description within %d bytes", maxFront)
		}
		body = ""
	}
	if len(front) > maxFront {
		return a, "", fmt.Errorf("its description has more than %d bytes", maxFront)
	}
	if err := yaml.Unmarshal([]byte(front), &a); err != nil {
		return a, "", fmt.Errorf("its description is no YAML: %s (a text with a colon wants quotes)", oneLine(err.Error(), 200))
	}
	a.Description = oneLine(a.Description, 0)
	return a, strings.TrimSpace(body), nil
}

// trimmedRune is a text without a last character that was cut in the middle.
func trimmedRune(raw []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(raw); i++ {
		if utf8.RuneStart(raw[len(raw)-i]) {
			if !utf8.FullRune(raw[len(raw)-i:]) {
				return raw[:len(raw)-i]
			}
			break
		}
	}
	return raw
}

// oneLine is a text without line breaks and characters that nobody sees, of at most so
// many bytes; 0 is any.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if most > 0 && len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

var errName = errors.New("no name of a skill")

// CheckName says whether a text can be the name of a skill.
func CheckName(name string) error {
	if len(name) > maxName || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name) {
		return fmt.Errorf("%q is %w: it has small letters, digits and single hyphens between them, %d at most", oneLine(name, 80), errName, maxName)
	}
	return nil
}

// remedyName is a name that a folder's skill could have.
func remedyName(folder string) string {
	if CheckName(folder) != nil {
		return "my-skill"
	}
	return folder
}

// check says what is wrong with a skill in the folder of that name.
func (a about) check(folder string) *Problem {
	switch {
	case a.Name == "":
		return &Problem{Wrong: "it says no name", Remedy: "write name: " + remedyName(folder)}
	case CheckName(a.Name) != nil:
		return &Problem{Wrong: CheckName(a.Name).Error(), Remedy: "write for example name: " + remedyName(folder) + ", and call the folder so"}
	case a.Name != folder:
		return &Problem{Wrong: fmt.Sprintf("its name is %s, and its folder is called %q", a.Name, oneLine(folder, 80)), Remedy: "call the folder " + a.Name}
	case a.Description == "":
		return &Problem{Wrong: "it says no description", Remedy: `write description: "What it is for, and when to use it."`}
	case utf8.RuneCountInString(a.Description) > maxDescription:
		return &Problem{Wrong: fmt.Sprintf("its description has more than %d characters", maxDescription), Remedy: "say there what it is for and when to use it, and the rest below"}
	}
	return nil
}
