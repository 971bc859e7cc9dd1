package prompt

import (
	"io/fs"
	"path"
	"strings"
)

// OfPerson returns what the operator has written about the person that the agent talks to, in the home in
// users/CHANNEL:USER.md. Nobody else may read it, so only private chats get it.
func OfPerson(home fs.FS, person string, private bool) []File {
	if !private || person == "" || strings.ContainsAny(person, "/\\") {
		return nil
	}
	all := Read(home, "operator, about the person you're talking to", path.Join("users", person+".md"))
	for i := range all {
		all[i].Name = "USER.md"
	}
	return all
}
