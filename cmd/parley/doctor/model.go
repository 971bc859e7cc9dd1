package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/agent/openai"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server"
	"parley/tools"
)

// modelPatience is how long doctor waits for a model's answer: a server of one's
// own may have to load it first.
const modelPatience = 2 * time.Minute

// checkModel asks the model something, as a turn would, and says what came of it.
func checkModel(ctx context.Context, cfg *config.Config) Finding {
	f := Finding{Part: "model", State: fine}
	if cfg.Model.Demo || !cfg.Model.Configured {
		f.State, f.Detail, f.Remedy = note, "none; chat uses the built-in demo", "set OPENAI_API_KEY, or [model] in the configuration"
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, modelPatience)
	defer cancel()
	m, err := server.NewModel(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		f.State, f.Detail, f.Remedy = wrong, err.Error(), remedyForModel(cfg, err)
		return f
	}
	who := m.Info().Name + " at " + cmp.Or(cfg.Model.BaseURL, openai.DefaultURL)
	began := time.Now()
	answer, err := m.Generate(ctx, smallTalk(), func(llm.Delta) {})
	switch {
	case err != nil && ctx.Err() != nil:
		f.State, f.Detail = wrong, fmt.Sprintf("%s has not answered within %v", who, modelPatience)
		f.Remedy = "look whether its server is overloaded, or still loads the model"
	case err != nil:
		f.State, f.Detail, f.Remedy = wrong, who+": "+told(err), remedyForModel(cfg, err)
	case len(answer.Blocks) == 0 && answer.Stop != llm.StopLength:
		f.State, f.Detail = wrong, who+" answered with nothing"
		f.Remedy = "look whether it is a model for chats: " + settingOf(cfg, "model.name")
	default:
		f.Detail = fmt.Sprintf("%s answers in %d ms", who, time.Since(began).Milliseconds())
	}
	return f
}

// smallTalk is the smallest request that has what a turn's requests have: a
// model that takes no tools answers a chat, and then refuses every turn.
func smallTalk() llm.Request {
	return llm.Request{
		System:    "Answer with the one word that you are asked for.",
		Messages:  []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "Say ok."}}}},
		MaxTokens: 64,
		Tools: []tools.Spec{{
			Name: "noop", Description: "Does nothing. Do not call it.",
			Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		}},
	}
}

// told is what failed, in the provider's own words or the network's.
func told(err error) string {
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err.Error()
	}
	what, _, _ := strings.Cut(fault.Explain(), " Look at ") // the remedy names file and line
	return strings.TrimSuffix(what, ".")
}

// remedyForModel says which setting to look at, and where it stands.
func remedyForModel(cfg *config.Config, err error) string {
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return "look at " + settingOf(cfg, "model.base_url") + " and " + settingOf(cfg, "model.api_key")
	}
	switch {
	case fault.Cause == llm.CauseKey && cfg.Model.APIKey == "":
		return "no key is sent: set model.api_key, or OPENAI_API_KEY where the file names no base_url"
	case fault.Cause == llm.CauseKey:
		return "set the key that this provider gave you: " + settingOf(cfg, "model.api_key")
	case fault.Cause == llm.CauseModel:
		return "name one that the provider has: " + settingOf(cfg, "model.name")
	case fault.Cause == llm.CauseQuota:
		return "pay into the account, or set another account's key: " + settingOf(cfg, "model.api_key")
	case fault.Cause == llm.CauseAddress:
		return "correct the address, which usually ends in /v1: " + settingOf(cfg, "model.base_url")
	case fault.Cause == llm.CauseNetwork:
		if _, dns := errors.AsType[*net.DNSError](err); dns {
			return "the name is not found: look at this machine's DNS, and at " + settingOf(cfg, "model.base_url")
		}
		return "look whether the server runs, at the network or a proxy between, and at " + settingOf(cfg, "model.base_url")
	case fault.Fault == llm.Busy:
		return "try again in a while; turns wait for it and try again by themselves"
	}
	return "look at " + settingOf(cfg, "model.name") + ", " + settingOf(cfg, "model.base_url") + " and " + settingOf(cfg, "model.api_key")
}
