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

// Limits of a skill's description of itself.
const (
	maxFront       = 16 << 10 // bytes, including the lines of dashes
	maxName        = 64
	maxDescription = 1024 // characters
)

// A frontMatter is the description at the top of a SKILL.md. Other fields there, such as the tools
// that the skill wants to be allowed, grant nothing.
type frontMatter struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
}

// parse splits a SKILL.md into the description, which is between its first two lines of dashes, and
// the body, which is the text below.
func parse(raw []byte) (a frontMatter, body string, err error) {
	if !utf8.Valid(trimCutRune(raw)) {
		return a, "", errors.New("it isn't text in UTF-8")
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
		return a, "", fmt.Errorf("its description is longer than %d bytes", maxFront)
	}
	if err := yaml.Unmarshal([]byte(front), &a); err != nil {
		return a, "", fmt.Errorf("its description isn't YAML: %s (a text with a colon needs quotes)", oneLine(err.Error(), 200))
	}
	a.Description = oneLine(a.Description, 0)
	return a, strings.TrimSpace(body), nil
}

// trimCutRune removes the last character of a text if it was cut in the middle.
func trimCutRune(raw []byte) []byte {
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

// oneLine returns a text without line breaks and invisible characters, cut to at most most bytes; 0
// means no limit.
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

// CheckName returns why a text cannot be the name of a skill; nil if it can.
func CheckName(name string) error {
	if len(name) > maxName || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name) {
		return fmt.Errorf("%q is %w: it has small letters, digits and single hyphens between them, %d at most", oneLine(name, 80), errName, maxName)
	}
	return nil
}

// suggestName returns a folder's name if it is a valid name of a skill, and otherwise an example of
// one.
func suggestName(folder string) string {
	if CheckName(folder) != nil {
		return "my-skill"
	}
	return folder
}

// cutVersion splits the name of a folder such as deploy-v2 into the skill's own name and its major
// version; found reports whether the name ends like that.
func cutVersion(folder string) (name, major string, found bool) {
	parts := regexp.MustCompile(`^(.+)-v([0-9]{1,9})$`).FindStringSubmatch(folder)
	if parts == nil {
		return folder, "", false
	}
	return parts[1], parts[2], true
}

// check returns what is wrong with the description of the skill in a folder; nil if nothing is. The
// skill has the name of its folder, or, so that two versions of it can lie side by side, that name
// without the -v2 at its end.
func (a frontMatter) check(folder string) *Problem {
	unversioned, _, _ := cutVersion(folder)
	switch {
	case a.Name == "":
		return &Problem{Wrong: "it has no name", Remedy: "write name: " + suggestName(folder)}
	case CheckName(a.Name) != nil:
		return &Problem{Wrong: CheckName(a.Name).Error(), Remedy: "write something like name: " + suggestName(folder) + ", and give the folder that name"}
	case CheckName(folder) != nil || a.Name != folder && a.Name != unversioned:
		return &Problem{Wrong: fmt.Sprintf("its name is %s, and its folder is called %q", a.Name, oneLine(folder, 80)), Remedy: "call the folder " + a.Name}
	case a.Description == "":
		return &Problem{Wrong: "it has no description", Remedy: `write description: "What it is for, and when to use it."`}
	case utf8.RuneCountInString(a.Description) > maxDescription:
		return &Problem{Wrong: fmt.Sprintf("its description has more than %d characters", maxDescription), Remedy: "say there what it's for and when to use it, and put the rest below"}
	}
	return nil
}
