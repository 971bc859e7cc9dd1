package config

import (
	"parley/cmd/parley/config/schema"
)

// Speech is the service that reads answers aloud; the zero Speech is none.
type Speech struct {
	BaseURL string // "" means OpenAI's
	APIKey  Secret
	Model   string
	Voice   string
	// PriceInput is the price of a million characters that are read, in micro-dollars. Origin says whether it is set.
	PriceInput int64
}

// These are the values of Channel.Speak: which answers are read aloud. An agent can also use its tool to have other
// texts read.
const (
	SpeakOff   = "off"
	SpeakAsked = "asked" // answers to voice messages
)

// Reads reports whether a service is configured that reads answers aloud.
func (s Speech) Reads() bool { return s != (Speech{}) }

// speechSection declares the settings of the service that reads answers aloud.
func speechSection() section {
	return section{
		Section: schema.Section{Name: "speech", Settings: []schema.Setting{
			{Key: "base_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Example: `"http://127.0.0.1:8880/v1"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(s *Speech) any { return &s.BaseURL })},
			{Key: "api_key", Kind: schema.Text, Secret: true, MayBeEmpty: true, Example: `"${OPENAI_API_KEY}"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(s *Speech) any { return &s.APIKey })},
			{Key: "model", Kind: schema.Text, Example: `"tts-1"`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Speech) any { return &s.Model })},
			{Key: "voice", Kind: schema.Text, Example: `"alloy"`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Speech) any { return &s.Voice })},
			{Key: "price_input", Kind: schema.Money, ZeroIsOff: true, Example: `15.0`, Reload: schema.AtOnce, Fill: schema.Into(func(s *Speech) any { return &s.PriceInput })},
		}},
		check: checkSpeech,
	}
}

// checkSpeech reports a service that needs a key and has none, a [speech] that sets nothing, and channels that are to
// speak without a service.
func checkSpeech(l *loader) {
	set := false
	for _, key := range []string{"base_url", "api_key", "model", "voice"} {
		set = set || l.Text("speech."+key) != ""
	}
	if set && l.Text("speech.base_url") == "" && l.Text("speech.api_key") == "" {
		l.Report(l.At("speech"), "speech", "the server at the default URL needs a key, and there isn't one",
			`write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`)
	}
	if !set && l.Mentioned("speech") {
		l.Report(l.At("speech"), "speech", "it doesn't name a server or a model", `write api_key = "${OPENAI_API_KEY}" there, or base_url for a server of your own`)
	}
	for _, name := range l.Names("channels") {
		key := "channels." + name + ".speak"
		if l.Text(key) == SpeakAsked && !set {
			l.Report(l.At(key), key, "nothing reads answers aloud: there is no [speech]", `add [speech] with an api_key or a base_url, or write speak = "off"`)
		}
	}
}
