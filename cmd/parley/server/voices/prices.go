package voices

import (
	"cmp"
	"context"
	"unicode"
	"unicode/utf8"

	"parley/agent/llm"
	"parley/agent/prices"
	"parley/cmd/parley/config"
)

// Some models charge for the tokens of the sound that they make instead of the characters that they read. A minute of
// speech has about 1,250 tokens and 830 characters.
const (
	soundTokens     = 3
	soundCharacters = 2 // characters for which there are soundTokens tokens
	// soundWide is how many of these characters take as long to speak as one Chinese, Japanese or Korean character.
	soundWide = 3
	million   = 1_000_000
)

// Price implements agent.Voice.
func (v *Voices) Price(words string) (model string, micro int64, known bool) {
	c := v.cfg.Settings()
	list, err := v.cfg.Prices()
	if err != nil { // Load has read the list before
		return modelOf(c.Speech), 0, false
	}
	text, sound, known := priceOf(c, list)
	n := int64(utf8.RuneCountInString(words))
	return modelOf(c.Speech), (text*n + sound*spoken(words) + million - 1) / million, known
}

// priceOf returns what a million characters cost, in micro-dollars, and what their sound costs: according to the
// settings, or else to the price list; known is false if neither has a price. The operator's own server costs nothing
// unless the settings have a price.
func priceOf(c *config.Config, list prices.List) (text, sound int64, known bool) {
	if c.Origin("speech.price_input") != "" || llm.IsOwnServer(c.Speech.BaseURL) {
		return c.Speech.PriceInput, 0, true
	}
	p, known := list.Of(modelOf(c.Speech), c.Speech.BaseURL)
	return p.Input, p.Output * soundTokens / soundCharacters, known
}

// spoken returns how many English characters take as long to speak as the words.
func spoken(words string) (n int64) {
	for _, r := range words {
		if n++; unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			n += soundWide - 1
		}
	}
	return n
}

// Check returns why the voice can't be used with these settings, or nil if it can. If a cap on cost is set, the price
// of the voice must be known, and only the operator's own server may cost 0.
func Check(c *config.Config, list prices.List) error {
	if !c.Speech.Reads() {
		return nil
	}
	wrong := func(remedy string) error {
		at := cmp.Or(c.Origin("speech.price_input"), c.Origin("speech.model"), c.Origin("speech.api_key"), c.Origin("speech.base_url"))
		return &config.SettingError{Where: at, Key: "speech.price_input", Remedy: remedy}
	}
	if c.Origin("speech.price_input") != "" && c.Speech.PriceInput == 0 && !llm.IsOwnServer(c.Speech.BaseURL) {
		return wrong("0 is for a server on this machine or in its own network: write what it costs to have a million characters read, in dollars")
	}
	if _, _, known := priceOf(c, list); c.Budget.Written && !known {
		return wrong("[budget] limits what models may cost, but the price of " + modelOf(c.Speech) + " isn't known: write price_input, in dollars per million characters, or price_input = 0 for a server on this machine or in its own network")
	}
	return nil
}

// Load checks the settings.
func (v *Voices) Load(context.Context) error {
	list, err := v.cfg.Prices()
	if err != nil {
		return err
	}
	return Check(v.cfg.Settings(), list)
}

// Reload checks the next settings.
func (v *Voices) Reload(next *config.Config) (apply func(), err error) {
	list, err := v.cfg.Prices()
	if err == nil {
		err = Check(next, list)
	}
	return func() {}, err
}
