package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"parley/agent/llm"
	"parley/agent/openai"
	"parley/cmd/parley/config"
	"parley/tools/spelling"
)

// A model holds the settings of the model that onboard writes.
type model struct {
	provider
	name string
	key  secret

	listed   []string // the models that its server lists
	fallback bool     // whether it is only asked if the existing model doesn't answer
}

// describe returns in words which model it is.
func (m model) describe() string {
	if m.provider.name == demoProvider {
		return "the built-in demo"
	}
	return m.name + " of " + m.label()
}

// A secret is a key or token. The configuration file doesn't contain it but says where it is: in an
// environment variable, or in a file of its own.
type secret struct {
	env   string // the environment variable; "" if the secret is in a file
	value string // the secret itself; if env is not "", the current value of the variable
}

// needsServer reports whether this run has to find a server for the model, which the demo doesn't
// need.
func (s *setup) needsServer() bool { return s.asksModel() && s.model.provider.name != demoProvider }

// chooseProvider asks which provider's model should answer.
func (s *setup) chooseProvider(ctx context.Context) (err error) {
	if !s.asksModel() {
		return nil
	}
	name := s.Provider
	if name == "" && s.BaseURL != "" {
		name = otherProvider
	}
	if name == "" && !s.d.interactive {
		return missing("--provider", "whose model answers; demo for the built-in one")
	}
	if name == "" {
		if name, err = s.d.choose(ctx, textWhoseModel, providerChoices()); err != nil {
			return err
		}
	}
	var known bool
	if s.model.provider, known = providerNamed(name); known {
		return nil
	}
	var names []string
	for _, o := range providerChoices() {
		names = append(names, o.name)
	}
	wrong := fmt.Sprintf("there's no provider %q", name)
	if near := spelling.Nearest(name, names); near != "" {
		wrong += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return &UsageError{fmt.Sprintf("%s: write one of %s", wrong, strings.Join(names, ", "))}
}

// chooseServer finds the model's server, and asks for its address if the provider has none or the
// server doesn't answer there. It contacts only a server on the person's own machine, or one that is
// in no table; chooseKey contacts the others, once it has the key.
func (s *setup) chooseServer(ctx context.Context) error {
	if !s.needsServer() {
		return nil
	}
	m := &s.model
	usual, _ := providerNamed(m.provider.name)
	m.baseURL = cmp.Or(s.BaseURL, usual.baseURL)
	for asked := false; ; asked = true {
		if m.baseURL == "" || asked {
			if !s.d.interactive {
				return missing("--base-url", "where the model's server is")
			}
			typed, err := s.d.ask(ctx, textServerAddress, cmp.Or(s.BaseURL, usual.baseURL))
			if err != nil {
				return err
			}
			m.baseURL = typed
		}
		err := checkAddress(m.baseURL)
		if err == nil && (m.local || m.provider.name == otherProvider) {
			err = s.probeServer(ctx)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errLeft
		}
		if !s.d.interactive {
			return err
		}
		s.d.say("%v.", err)
		if m.local && errors.Is(err, errUnreachable) {
			s.d.say(textStartServer, backCommand)
		}
	}
}

// checkAddress returns why a text is not the address of a server; nil if it is one.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%q isn't an address: write one like http://127.0.0.1:8000/v1 or https://api.example.com/v1", text)
	}
	return nil
}

// errUnreachable says that no server answers at an address.
var errUnreachable = errors.New("the server can't be reached")

// probeServer asks the model's server for its models, without a key. A server that requires one counts as
// reached, too. If the address doesn't answer the way a model server does, but /v1 below it does,
// that becomes the address.
func (s *setup) probeServer(ctx context.Context) (err error) {
	m := &s.model
	m.listed = nil
	addresses := []string{m.baseURL}
	if trimmed := strings.TrimRight(m.baseURL, "/"); !strings.HasSuffix(trimmed, "/v1") {
		addresses = append(addresses, trimmed+"/v1")
	}
	for i, address := range addresses {
		names, failed := openai.Models(ctx, openai.Config{BaseURL: address})
		refused, isRefused := errors.AsType[*llm.Error](failed)
		switch {
		case failed == nil, isRefused && refused.Cause == llm.CauseKey:
			if i > 0 {
				s.d.say(textFoundAt, address)
			}
			m.baseURL, m.listed = address, names
			if m.local {
				s.d.say(textModelsAnswer, m.label(), len(names))
			}
			return nil
		case isRefused && refused.Cause == llm.CauseNetwork:
			return fmt.Errorf("%w at %s (%s)", errUnreachable, address, inWords(failed))
		case i == 0:
			err = fmt.Errorf("%s answers, but not the way a model server does (%s): check the address, which usually ends in /v1", m.baseURL, inWords(failed))
		}
	}
	return err
}

// inWords returns the reason why a server didn't answer, in its own words or those of the network.
func inWords(err error) string {
	refused, ok := errors.AsType[*llm.Error](err)
	switch {
	case ok && refused.Said != "":
		return "“" + refused.Said + "”"
	case ok && refused.Cause == llm.CauseNetwork && refused.Err != nil:
		err = refused.Err
		for below := errors.Unwrap(err); below != nil; below = errors.Unwrap(err) {
			err = below // the outer errors repeat the address
		}
	case ok && refused.Err != nil:
		err = refused.Err
	}
	return err.Error()
}

// chooseKey asks for the key of the model's provider, and checks it by asking the server for its
// models.
func (s *setup) chooseKey(ctx context.Context) error {
	if !s.needsServer() || s.model.local {
		return nil
	}
	m, fromEnv := &s.model, true
	for {
		var err error
		if m.key, err = s.askKey(ctx, fromEnv); err != nil {
			return err
		}
		m.listed, err = openai.Models(ctx, openai.Config{BaseURL: m.baseURL, APIKey: m.key.value})
		if err == nil {
			s.d.say(textModelsAnswer, m.label(), len(m.listed))
			return nil
		}
		if ctx.Err() != nil {
			return errLeft
		}
		refused, ok := errors.AsType[*llm.Error](err)
		if ok && refused.Cause == llm.CauseAddress {
			return nil // this server lists no models; asking a model will show whether it answers
		}
		failed := s.refusal(err)
		if !s.d.interactive || s.KeyFile != "" {
			return failed
		}
		s.d.say("%v.", failed)
		fromEnv = fromEnv && ok && refused.Cause != llm.CauseKey
	}
}

// refusal returns an error that says why the model's server doesn't answer.
func (s *setup) refusal(err error) error {
	what := "%s doesn't answer the way it should (%s)"
	if refused, ok := errors.AsType[*llm.Error](err); ok {
		switch refused.Cause {
		case llm.CauseKey:
			what = "%s doesn't accept the key (%s)"
		case llm.CauseQuota:
			what = "%s says that the account has no credit left (%s)"
		case llm.CausePlace:
			what = "%s doesn't serve this machine's country or network (%s)"
		case llm.CauseNetwork:
			what = "%s can't be reached (%s)"
		case llm.CauseModel:
			what = "%s has no model by that name (%s)"
		}
	}
	return fmt.Errorf(what, s.model.label(), inWords(err))
}

// askKey returns the provider's key: from the file that a flag names, or from the environment;
// otherwise it asks for the key.
func (s *setup) askKey(ctx context.Context, fromEnv bool) (secret, error) {
	p := s.model.provider
	if s.KeyFile != "" {
		return readSecret(s.KeyFile)
	}
	if held := os.Getenv(p.env); held != "" && fromEnv {
		use := true
		if s.d.interactive {
			var err error
			if use, err = s.d.confirm(ctx, fmt.Sprintf(textUseVariable, p.env)); err != nil {
				return secret{}, err
			}
		}
		if use {
			return secret{env: p.env, value: held}, nil
		}
	}
	if p.name == otherProvider && !s.d.interactive {
		return secret{}, nil // the server may not require a key
	}
	if !s.d.interactive {
		return secret{}, missing("--key-file", "a file with the key of "+p.label()+"; or set "+p.env)
	}
	what := textYourKey + p.label()
	if p.name == otherProvider {
		what = textItsKey
	}
	if p.keys != "" {
		s.d.say(textFindKeys, p.keys)
	}
	for {
		typed, err := s.d.askSecret(ctx, what)
		if err != nil || typed != "" || p.name == otherProvider {
			return secret{value: typed}, err
		}
	}
}

// readSecret reads a secret from a file.
func readSecret(file string) (secret, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return secret{}, fmt.Errorf("read the secret: %w", err)
	}
	text := strings.TrimSpace(string(raw))
	if text == "" || strings.ContainsFunc(text, unicode.IsControl) {
		return secret{}, fmt.Errorf("%s has to contain only the secret, on one line", file)
	}
	return secret{value: text}, nil
}

// maxShown is how many models are listed to choose from.
const maxShown = 30

// chooseModelName asks which of the server's models should answer, and makes it answer.
func (s *setup) chooseModelName(ctx context.Context) error {
	if !s.needsServer() {
		return nil
	}
	m := &s.model
	if s.Model != "" && len(m.listed) > 0 && !slices.Contains(m.listed, s.Model) {
		s.d.say(textNotListed, m.label(), s.Model)
	}
	for {
		var err error
		if m.name, err = s.askModelName(ctx); err != nil {
			return err
		}
		s.d.say(textAskingWord, m.name)
		if err = s.tryModel(ctx); err == nil {
			s.d.say("It answers.")
			return nil
		}
		if ctx.Err() != nil {
			return errLeft
		}
		failed := fmt.Errorf("%s: %w", m.name, s.refusal(err))
		if !s.d.interactive || s.Model != "" {
			return failed
		}
		s.d.say("%v.", failed)
	}
}

// tryModel asks the model for a word.
func (s *setup) tryModel(ctx context.Context) error {
	m, err := openai.New(openai.Config{BaseURL: s.model.baseURL, APIKey: s.model.key.value, Name: s.model.name, Window: s.model.window})
	if err != nil {
		return err
	}
	_, err = m.Generate(ctx, &llm.Request{
		System:    textOneWord,
		Messages:  []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "Say ok."}}}},
		MaxTokens: 64,
	}, func(llm.Delta) {})
	return err
}

// askModelName asks for one of the server's models, by its number, its name, or a part of names
// that shortens the list.
func (s *setup) askModelName(ctx context.Context) (string, error) {
	m := s.model
	usual := m.provider.model
	if !slices.Contains(m.listed, usual) && len(m.listed) > 0 {
		usual = m.listed[0]
	}
	switch {
	case s.Model != "":
		return s.Model, nil
	case !s.d.interactive && usual == "":
		return "", missing("--model", "the server doesn't list any chat models")
	case !s.d.interactive:
		return usual, nil
	}
	if len(m.listed) == 0 && m.provider.name == "ollama" {
		s.d.say(textNoModels)
	}
	shown := m.listed
	for {
		s.d.showModels(shown)
		what := textModelName
		if len(shown) > maxShown {
			what += ", or part of a name"
		}
		typed, err := s.d.ask(ctx, what, usual)
		if err != nil {
			return "", err
		}
		name, some := pick(typed, shown, m.listed)
		if name != "" {
			return name, nil
		}
		if shown = some; len(some) == 0 {
			s.d.say(textNoModel, typed)
			shown = m.listed
		}
	}
}

// showModels prints the names of models with their numbers.
func (d *dialogue) showModels(names []string) {
	for i, name := range names {
		if i == maxShown {
			d.say("      … and %d more", len(names)-maxShown)
			break
		}
		d.say("  %2d  %s", i+1, name)
	}
}

// pick returns the model that a person has typed: its number among those shown, or its name. If
// typed is neither, but part of listed names, it returns "" and the models with these names. Any
// other text is the name of a model that the server doesn't list, unless it is a number.
func pick(typed string, shown, listed []string) (name string, some []string) {
	if slices.Contains(listed, typed) {
		return typed, nil
	}
	if n, err := strconv.Atoi(typed); err == nil {
		if n >= 1 && n <= min(len(shown), maxShown) {
			return shown[n-1], nil
		}
		return "", nil
	}
	for _, other := range listed {
		if strings.Contains(strings.ToLower(other), strings.ToLower(typed)) {
			some = append(some, other)
		}
	}
	if typed == "" || len(some) > 0 {
		return "", some
	}
	return typed, nil
}

// chooseUse asks what an additional model is to be used for. Without a person to ask, it is a fallback.
func (s *setup) chooseUse(ctx context.Context) error {
	s.model.fallback = false
	if s.present == nil || !s.addsModel {
		return nil
	}
	if s.model.provider.name == demoProvider {
		return &UsageError{"the demo can't be added as another model, because it only understands a handful of requests: choose another provider"}
	}
	if !s.takesFurtherModel() {
		return nil
	}
	if !s.d.interactive {
		s.model.fallback = true
		return nil
	}
	const fallback, named = "fallback", "agents"
	use, err := s.d.choose(ctx, textWhenUsed, []choice{
		{fallback, "when the current model doesn't answer"},
		{named, "only when an agent's settings name it; " + config.MainAgent + " keeps its model"},
	})
	s.model.fallback = use == fallback
	return err
}
