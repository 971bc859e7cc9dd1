package onboard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools/spelling"
)

// A model has the settings of the model that onboard writes.
type model struct {
	provider
	name string
	key  secret
}

// A secret is a key or token. The configuration file does not hold it but says where it is: in an
// environment variable, or in a file of its own.
type secret struct {
	env   string // the environment variable; "" if the secret is in a file
	value string // the secret itself; if env is not "", the value that the variable has now
}

// chooseModel asks which model answers, and checks the server and the key by asking the
// server for its models.
func (c Command) chooseModel(ctx context.Context, d *dialogue) (m model, err error) {
	if m.provider, err = c.chooseProvider(ctx, d); err != nil || m.provider.name == demoProvider {
		return m, err
	}
	for {
		if !m.local {
			if m.key, err = c.askKey(ctx, d, m.provider); err != nil {
				return model{}, err
			}
		}
		names, err := openai.Models(ctx, openai.Config{BaseURL: m.baseURL, APIKey: m.key.value})
		if err == nil {
			d.say("%s answers, with %d models.", m.fromText(), len(names))
			m.name, err = c.chooseModelName(ctx, d, m.provider, names)
			return m, err
		}
		if ctx.Err() != nil {
			return model{}, errLeft
		}
		if again, failed := c.askAgain(ctx, d, m, err); failed != nil || !again {
			return model{}, failed
		}
	}
}

// askAgain tells the person why a server could not be asked for its models, and asks whether to
// try another key.
func (c Command) askAgain(ctx context.Context, d *dialogue, m model, err error) (bool, error) {
	why := err.Error()
	if refused, ok := errors.AsType[*llm.Error](err); ok {
		why = refused.Explain()
	}
	failed := fmt.Errorf("%s does not list its models: %s", m.fromText(), why)
	if !d.asks || c.KeyFile != "" {
		return false, failed
	}
	d.say("%v", failed)
	what := "Try again with another key?"
	if m.local {
		what = "Start it, and then: try again?"
	}
	again, err := d.confirm(ctx, what, true)
	if err == nil && !again {
		err = errors.New("nothing was written")
	}
	return again, err
}

// chooseProvider asks which provider's model is to answer.
func (c Command) chooseProvider(ctx context.Context, d *dialogue) (p provider, err error) {
	name := c.Provider
	if name == "" && c.BaseURL != "" {
		name = otherProvider
	}
	if name == "" && !d.asks {
		return provider{}, missing("--provider", "whose model answers; demo for the built-in one")
	}
	if name == "" {
		if name, err = d.choose(ctx, "Whose model answers?", providerChoices()); err != nil {
			return provider{}, err
		}
	}
	switch name {
	case demoProvider:
		return provider{name: demoProvider}, nil
	case otherProvider:
		return c.askOtherServer(ctx, d)
	}
	p, known := providerNamed(name)
	if !known {
		var names []string
		for _, o := range providerChoices() {
			names = append(names, o.name)
		}
		wrong := fmt.Sprintf("there is no provider %q", name)
		if near := spelling.Nearest(name, names); near != "" {
			wrong += fmt.Sprintf(" (did you mean %q?)", near)
		}
		return provider{}, &UsageError{fmt.Sprintf("%s: one of %s", wrong, strings.Join(names, ", "))}
	}
	if c.BaseURL != "" {
		p.baseURL = c.BaseURL
	}
	return p, nil
}

// askOtherServer asks for the URL of a server that is not in the table of providers.
func (c Command) askOtherServer(ctx context.Context, d *dialogue) (provider, error) {
	p := provider{name: otherProvider, baseURL: c.BaseURL, env: "OPENAI_API_KEY"}
	if p.baseURL == "" && !d.asks {
		return provider{}, missing("--base-url", "where the model's server is")
	}
	for p.baseURL == "" {
		var err error
		if p.baseURL, err = d.ask(ctx, "Its address, usually ending in /v1", ""); err != nil {
			return provider{}, err
		}
	}
	return p, nil
}

// askKey returns a provider's key: from the file that a flag names, or from the environment;
// otherwise it asks for the key.
func (c Command) askKey(ctx context.Context, d *dialogue, p provider) (secret, error) {
	if c.KeyFile != "" {
		return readSecret(c.KeyFile)
	}
	if held := os.Getenv(p.env); held != "" {
		use := true
		if d.asks {
			var err error
			if use, err = d.confirm(ctx, fmt.Sprintf("$%s is set. Use it? Whoever starts parley has to set it then.", p.env), true); err != nil {
				return secret{}, err
			}
		}
		if use {
			return secret{env: p.env, value: held}, nil
		}
	}
	if !d.asks && p.name == otherProvider {
		return secret{}, nil // it may want none
	}
	if !d.asks {
		return secret{}, missing("--key-file", "a file with the key of "+p.fromText()+"; or set "+p.env)
	}
	typed, err := d.askSecret(ctx, "The key of "+p.fromText())
	return secret{value: typed}, err
}

// readSecret reads a secret from a file.
func readSecret(file string) (secret, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return secret{}, fmt.Errorf("read the secret: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	if text == "" || strings.ContainsFunc(text, unicode.IsControl) {
		return secret{}, fmt.Errorf("%s has to hold the secret alone, in one line", file)
	}
	return secret{value: text}, nil
}

// maxShown is how many models are listed to choose from.
const maxShown = 30

// chooseModelName asks which of a server's models is to answer, and returns its name. names are those
// that the server lists.
func (c Command) chooseModelName(ctx context.Context, d *dialogue, p provider, names []string) (string, error) {
	if c.Model != "" {
		if len(names) > 0 && !slices.Contains(names, c.Model) {
			d.say("It does not list %s; that is written all the same.", c.Model)
		}
		return c.Model, nil
	}
	usual := p.model
	if !slices.Contains(names, usual) && len(names) > 0 {
		usual = names[0]
	}
	if !d.asks {
		if usual == "" {
			return "", missing("--model", "the server lists none that chats")
		}
		return usual, nil
	}
	for i, name := range names {
		if i == maxShown {
			d.say("      … and %d more", len(names)-maxShown)
			break
		}
		d.say("      %s", name)
	}
	for {
		name, err := d.ask(ctx, "Which model", usual)
		if err != nil || name != "" {
			return name, err
		}
	}
}
