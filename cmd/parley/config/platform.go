package config

import "strings"

// A Platform describes a chat platform, for checking the settings of its channels.
type Platform struct {
	Name  string // as in platform = "telegram"
	Title string // as people write it: "Telegram"
	// Receives lists the ways in which a channel of the platform can receive what people say, the
	// usual one first: values of the setting receive.
	Receives []string
	// Members says that access = "members" works on the platform: it knows who belongs to the
	// workspace and who is a guest.
	Members bool
	// Tokens are the tokens that a channel of the platform needs.
	Tokens []PlatformToken
	// OtherTokens are prefixes of tokens of the platform that no channel needs, but that people
	// confuse with those in Tokens.
	OtherTokens []string
	// IsUserID reports whether a text is a user id rather than a name or an address, and
	// UserIDRemedy says where to find the id. If IsUserID is nil, every text counts as an id.
	IsUserID     func(id string) bool
	UserIDRemedy string
	// IsGroupID and GroupIDRemedy do the same for groups and channels.
	IsGroupID     func(id string) bool
	GroupIDRemedy string
}

// A PlatformToken is one of the tokens that a platform gives a bot.
type PlatformToken struct {
	Key      string // the setting: "bot_token", "app_token" or "signing_secret"
	Env      string // the environment variable that fills the setting; if there is no file, it also creates a channel of the platform
	Begins   string // the prefix of the platform's tokens of this kind; "" if unknown
	ChatOnly bool   // whether a channel that only sends doesn't need it
	Receive  string // the way of receiving that needs it; "" means every way
}

// token returns the platform's token with this key; nil if there is none.
func (p Platform) token(key string) *PlatformToken {
	for i := range p.Tokens {
		if p.Tokens[i].Key == key {
			return &p.Tokens[i]
		}
	}
	return nil
}

// platformNames returns the names of platforms.
func platformNames(platforms []Platform) []string {
	var all []string
	for _, p := range platforms {
		all = append(all, p.Name)
	}
	return all
}

// platformOf returns the platform with that name. For an unknown one, which is reported elsewhere,
// it returns a Platform that checks nothing.
func platformOf(platforms []Platform, name string) Platform {
	for _, p := range platforms {
		if p.Name == name {
			return p
		}
	}
	return Platform{Name: name}
}

// titlesThatHave returns the titles of the platforms for which have returns true, as the beginning of
// a sentence: "Slack has", or "Slack and Discord have".
func titlesThatHave(platforms []Platform, have func(Platform) bool) string {
	var all []string
	for _, p := range platforms {
		if have(p) {
			all = append(all, p.Title)
		}
	}
	if len(all) > 1 {
		return strings.Join(all, " and ") + " have"
	}
	return strings.Join(all, "") + " has"
}
