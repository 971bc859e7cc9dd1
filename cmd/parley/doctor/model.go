package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"parley/agent/judge"
	"parley/agent/llm"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
	"parley/tools"
)

// modelTimeout is how long doctor waits for a model's answer: a server on the operator's own
// machine may have to load the model first.
const modelTimeout = 2 * time.Minute

// checkModels sends each model a request like a turn's, and returns the results.
func checkModels(ctx context.Context, cfg *config.Config) []Finding {
	var found []Finding
	_, judged := cfg.Judge()
	if cfg.OnlyDemo() {
		found = append(found, Finding{Part: "model", State: note, Detail: "the built-in demo answers, because model.name says so", Remedy: "set OPENAI_API_KEY, or name another model in [model]"})
	}
	if cfg.OnlyDemo() && !judged {
		return found
	}
	if !cfg.AnyModel() {
		return []Finding{{Part: "model", State: note, Detail: "none; chat uses the built-in demo", Remedy: "set OPENAI_API_KEY, or [model] in the configuration"}}
	}
	naming, cancel := context.WithTimeout(ctx, modelTimeout)
	defer cancel()
	all, err := models.New(naming, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return append(found, Finding{Part: "model", State: wrong, Detail: err.Error(), Remedy: remedyForModel(cfg, "model", "model.name", err)})
	}
	all.LookUpWindows(ctx)
	each := slices.DeleteFunc(all.All(), func(m models.Model) bool { return m.Server == "" })
	judges := all[models.ForJudge]
	return append(found, sideBySide(len(each)+len(judges), func(i int) Finding {
		if i >= len(each) {
			return checkJudge(ctx, cfg, judges[i-len(each)])
		}
		return checkModel(ctx, cfg, each[i])
	})...)
}

// checkModel sends one model a request, and returns the result.
func checkModel(ctx context.Context, cfg *config.Config, m models.Model) Finding {
	f := Finding{Part: strings.TrimSuffix(m.Named, ".name"), State: fine}
	ctx, cancel := context.WithTimeout(ctx, modelTimeout)
	defer cancel()
	who := m.Model.Info().Name + " at " + m.Server
	began := time.Now()
	answer, err := m.Model.Generate(ctx, smallRequest(), func(llm.Delta) {})
	switch {
	case err != nil && ctx.Err() != nil:
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf(textNoAnswer, who, modelTimeout), textCheckServer
	case err != nil:
		f.State, f.Detail, f.Remedy = wrong, who+": "+failureInWords(err), remedyForModel(cfg, m.Table, m.Named, err)
	case len(answer.Blocks) == 0 && answer.Stop != llm.StopLength:
		f.State, f.Detail = wrong, who+" gave an empty answer"
		f.Remedy = "check whether it's a chat model: " + settingOf(cfg, m.Named)
	case m.Model.Info().Toolless:
		f.State, f.Detail = note, who+" doesn't accept tools: agents answer, but can't do anything else"
		f.Remedy = "name a model that accepts tools, or have its server pass them on (vLLM: --enable-auto-tool-choice, llama.cpp: --jinja): " + settingOf(cfg, m.Named)
	default:
		f.Detail = fmt.Sprintf("%s answers in %d ms; %s", who, time.Since(began).Milliseconds(), windowOf(m.Model.Info()))
	}
	return f
}

// checkJudge asks the model that judges tool calls to judge a harmless call, and returns the result.
func checkJudge(ctx context.Context, cfg *config.Config, m models.Model) Finding {
	f := Finding{Part: "guard", State: fine}
	ctx, cancel := context.WithTimeout(ctx, modelTimeout)
	defer cancel()
	who := m.Model.Info().Name + " at " + m.Server
	request := judge.HarmlessQuestion().Request()
	began := time.Now()
	answer, err := m.Model.Generate(ctx, &request, func(llm.Delta) {})
	took := time.Since(began)
	switch {
	case err != nil && ctx.Err() != nil:
		f.State, f.Detail, f.Remedy = wrong, fmt.Sprintf(textNoAnswer, who, modelTimeout)+textUnjudged, textCheckServer
		return f
	case err != nil:
		f.State, f.Detail, f.Remedy = wrong, who+": "+failureInWords(err)+textUnjudged, remedyForModel(cfg, m.Table, m.Named, err)
		return f
	}
	v := judge.Read(answer.Text(), func(text string) string { return text })
	f.Detail = fmt.Sprintf(textJudged, who, v.Decision, took.Milliseconds(), strings.Join(cfg.Guard.Judge, ", "))
	switch {
	case v.Fault != "":
		f.State, f.Detail, f.Remedy = wrong, who+textNoVerdict+textUnjudged, textBetterJudge+settingOf(cfg, "guard.model")
	case v.Decision != tools.Allow:
		f.State, f.Remedy = note, textBetterJudge+settingOf(cfg, "guard.model")
	case took > cfg.Guard.Timeout:
		f.State, f.Detail, f.Remedy = note, f.Detail+fmt.Sprintf(textSlowJudge, cfg.Guard.Timeout), textFasterJudge+settingOf(cfg, "guard.timeout")
	}
	return f
}

// windowOf returns in words how many tokens a model reads, and where that number comes from.
func windowOf(m llm.Info) string {
	if m.ContextTokens == 0 {
		return "its server doesn't say how large its window is (set window if you know it)"
	}
	return fmt.Sprintf("it can read %d tokens, %s", m.ContextTokens, m.ContextFrom)
}

// smallRequest returns the smallest request that has all parts of a turn's request, among them a
// tool, because some models accept no tools.
func smallRequest() *llm.Request {
	return &llm.Request{
		System:    textOneWord,
		Messages:  []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "Say ok."}}}},
		MaxTokens: 64,
		Tools: []tools.Spec{{
			Name: "noop", Description: "Does nothing. Do not call it.",
			Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		}},
	}
}

// failureInWords returns what failed when a model was asked, in the words of the provider or the network.
func failureInWords(err error) string {
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err.Error()
	}
	return fault.What()
}

// remedyForModel returns which setting to check after a model has failed with err, and where it is
// written. table is the table with the model's settings, and named the setting that chose the
// model.
func remedyForModel(cfg *config.Config, table, named string, err error) string {
	set := func(key string) string { return settingOf(cfg, table+"."+key) }
	fault, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return "check " + set("base_url") + " and " + set("api_key")
	}
	switch {
	case fault.Cause == llm.CauseKey && table == "model" && cfg.Model.APIKey == "":
		return textNoModelKey
	case fault.Cause == llm.CauseKey && table == "embeddings" && cfg.Embeddings.APIKey == "":
		return textNoEmbeddingsKey
	case fault.Cause == llm.CauseKey:
		return "set the key that this provider gave you: " + set("api_key")
	case fault.Cause == llm.CauseModel:
		return "name a model that the provider has: " + settingOf(cfg, named)
	case fault.Cause == llm.CauseQuota:
		return "add credit to the account, or set another account's key: " + set("api_key")
	case fault.Cause == llm.CausePlace:
		return "the key isn't the problem: use another provider, or reach this one through a server in a region that it serves: " + set("base_url")
	case fault.Cause == llm.CauseAddress:
		return "correct the address, which usually ends in /v1: " + set("base_url")
	case fault.Cause == llm.CauseNetwork:
		if _, dns := errors.AsType[*net.DNSError](err); dns {
			return "the host name can't be found: check this machine's DNS, and " + set("base_url")
		}
		return "check whether the server is running, and check the network, any proxy in between, and " + set("base_url")
	case fault.Fault == llm.Busy && table == "embeddings":
		return "try again in a while; a running server retries on its own"
	case fault.Fault == llm.Busy:
		return "try again in a while; turns wait for it and retry on their own"
	}
	return "check " + settingOf(cfg, named) + ", " + set("base_url") + " and " + set("api_key")
}
