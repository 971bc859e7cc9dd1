package welcome

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"parley/channels/markup"
)

// An Introduction tells people, at the first contact, that they are talking to a bot, and what happens to what they
// say.
type Introduction struct {
	About  string   // the operator's own words; "" means none
	Owners []string // the names of those who run the bot
	// Models says where texts are sent to be answered: hosts, or Local for a model inside the program. It is empty
	// if this process does not know.
	Models []string
	Prefix string // what commands begin with on the platform, such as "/"
	Days   int    // how many days what was said is kept; 0 means until somebody erases it
}

// Local is the entry in Models for a model that is part of the program, so that texts are not sent anywhere.
const Local = "local"

// maxOwners is the maximum number of owners that are named.
const maxOwners = 3

// Text returns the introduction, as Markdown.
func (f Introduction) Text() string {
	said := []string{textBot + ownersInWords(f.Owners)}
	switch {
	case len(f.Models) == 0:
		said = append(said, textSomeModel)
	case slices.Equal(f.Models, []string{Local}):
		said = append(said, textLocalModel)
	default:
		said = append(said, fmt.Sprintf(textModels, placesInWords(f.Models)))
	}
	kept := textKept
	if f.Days > 0 {
		kept = fmt.Sprintf(textKeptDays, f.Days)
		if f.Days == 1 {
			kept = textKeptDay
		}
	}
	said = append(said, kept)
	said = append(said, fmt.Sprintf(textOwnData, f.Prefix))
	text := strings.Join(said, " ")
	if about := strings.TrimSpace(f.About); about != "" {
		text += "\n\n" + about
	}
	return text
}

// placesInWords says, in words, where texts are sent.
func placesInWords(hosts []string) string {
	var places []string
	for _, host := range hosts {
		if place := markup.Verbatim(host); !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if len(places) == 1 {
		return "model at " + places[0]
	}
	last := len(places) - 1
	return "models at " + strings.Join(places[:last], ", ") + " and " + places[last]
}

// ownersInWords returns the sentence that names the people who run the bot; "" if there are none.
func ownersInWords(owners []string) string {
	if len(owners) == 0 {
		return ""
	}
	var names []string
	for _, name := range owners[:min(len(owners), maxOwners)] {
		names = append(names, markup.Verbatim(name))
	}
	if more := len(owners) - maxOwners; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	if last > 0 {
		names = []string{strings.Join(names[:last], ", "), names[last]}
	}
	return textRunBy(strings.Join(names, " and "))
}

// Host returns the host in a model's address, with its port if it has one; "" if it finds none. The rest of the
// address may contain secrets.
func Host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
