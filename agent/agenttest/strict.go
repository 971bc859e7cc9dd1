package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// RequireOrder returns a script of a provider that insists on an order of messages, like Mistral: a user
// message never directly follows a tool's, each result follows its call, and the last message is not the
// model's. It refuses requests that break this order, and passes all others to next.
func RequireOrder(next Script) Script {
	return func(r Request) Response {
		if wrong := checkOrder(r.Messages()); wrong != "" {
			return Fail(http.StatusBadRequest, fmt.Sprintf(
				`{"object":"error","message":%s,"type":"invalid_request_message_order","param":null,"code":"3230"}`, quote(wrong)))
		}
		return next(r)
	}
}

// checkOrder returns the provider's complaint about the order of messages, or "" if there is none.
func checkOrder(messages []Message) string {
	last, open := "", map[string]bool{}
	for _, m := range messages {
		switch {
		case m.Role == "user" && last == "tool", m.Role == "system" && last != "":
			return fmt.Sprintf("Unexpected role '%s' after role '%s'", m.Role, last)
		case m.Role == "tool" && !open[m.CallID]:
			return "Unexpected tool call id " + m.CallID + " in tool results"
		case m.Role != "tool" && len(open) > 0:
			return "Not the same number of function calls and responses"
		case m.Role == "assistant" && m.Content == "" && len(m.Calls) == 0:
			return "Assistant message must have either content or tool_calls, but not none."
		}
		delete(open, m.CallID)
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		last = m.Role
	}
	if last != "user" && last != "tool" {
		return "Expected last role User or Tool (or Assistant with prefix True) for serving but got " + last
	}
	return ""
}

// RequireThoughts returns the script of a provider that is as strict as DeepSeek: it refuses a request if one
// of the model's messages with tool calls lacks the thinking that came with them. It passes all others to next.
func RequireThoughts(next Script) Script {
	return func(r Request) Response {
		for _, m := range r.Messages() {
			var thought struct {
				Content string `json:"reasoning_content"`
			}
			if err := json.Unmarshal(m.Raw, &thought); err != nil || m.Role == "assistant" && len(m.Calls) > 0 && thought.Content == "" {
				return Fail(http.StatusBadRequest, `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`)
			}
		}
		return next(r)
	}
}

// RequireTools returns the script of a provider that refuses calls and results in a request that offers no
// tools, like Anthropic behind LiteLLM. It passes other requests to next.
func RequireTools(next Script) Script {
	return func(r Request) Response {
		if len(r.Tools()) == 0 && (bytes.Contains(r.Body, []byte(`"tool_calls":[`)) || bytes.Contains(r.Body, []byte(`{"role":"tool"`))) {
			return Fail(http.StatusBadRequest, `{"error":{"message":"litellm.UnsupportedParamsError: Anthropic expects the tools= param to be passed in.","type":"invalid_request_error","code":"400"}}`)
		}
		return next(r)
	}
}

// RefuseTools returns the script of a provider that refuses some tools, one per request: the first that it
// finds. In words, {index} and {after} are replaced by the tool's position, counted from 0 and from 1, and
// {name} by its name. Other requests are passed to next.
func RefuseTools(status int, words string, refuses func(Tool) bool, next Script) Script {
	return func(r Request) Response {
		for i, t := range r.Offered() {
			if refuses(t) {
				return Fail(status, strings.NewReplacer("{index}", fmt.Sprint(i), "{after}", fmt.Sprint(i+1), "{name}", t.Name).Replace(words))
			}
		}
		return next(r)
	}
}

// RequireFit returns the script of a provider that is as strict about tools as OpenAI: at most 128 tools,
// descriptions of at most 1,024 characters, and schemas that are objects without a choice (such as anyOf) at
// the top and whose arrays declare their items. It passes requests that fit to next.
func RequireFit(next Script) Script {
	return func(r Request) Response {
		refuse := func(code, param, format string, args ...any) Response {
			return Fail(http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","param":%s,"code":%s}}`, quote(fmt.Sprintf(format, args...)), quote(param), quote(code)))
		}
		all, within := r.Offered(), ".function"
		if strings.HasSuffix(r.Path, "/responses") {
			within = ""
		}
		if n := len(all); n > 128 {
			return refuse("array_above_max_length", "tools", "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", n)
		}
		for i, t := range all {
			at := fmt.Sprintf("tools[%d]%s", i, within)
			if n := utf8.RuneCountInString(t.Description); n > 1024 {
				return refuse("string_above_max_length", at+".description", "Invalid '%s.description': string too long. Expected a string with maximum length 1024, but got a string with length %d instead.", at, n)
			}
			if wrong := checkSchema(t.Parameters); wrong != "" {
				return refuse("invalid_function_parameters", at+".parameters", "Invalid schema for function '%s': %s", t.Name, wrong)
			}
		}
		return next(r)
	}
}

// checkSchema returns OpenAI's complaint about the schema of a tool, or "" if there is none.
func checkSchema(schema map[string]any) string {
	for _, word := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if _, has := schema[word]; has || schema["type"] != "object" {
			return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, one := range properties {
		if of, _ := one.(map[string]any); of["type"] == "array" && of["items"] == nil {
			return fmt.Sprintf("In context=('properties', '%s'), array schema missing items.", name)
		}
	}
	return ""
}

// Window returns the script of a provider whose context window holds that many tokens, of four bytes each. It
// refuses a longer request with words, in which {window} and {asked} are replaced by the numbers. It passes
// other requests to next.
func Window(tokens, status int, words string, next Script) Script {
	return func(r Request) Response {
		asked := Tokens(r)
		if asked <= tokens {
			return next(r)
		}
		return Fail(status, strings.NewReplacer("{window}", fmt.Sprint(tokens), "{asked}", fmt.Sprint(asked)).Replace(words))
	}
}

// CountTokens returns a script that plays next, but reports the number that Tokens returns as the prompt's tokens,
// instead of 100.
func CountTokens(next Script) Script {
	return func(r Request) Response {
		answer := next(r)
		for i, p := range answer.Parts {
			answer.Parts[i].Bytes = strings.Replace(p.Bytes, `"prompt_tokens":100,`, fmt.Sprintf(`"prompt_tokens":%d,`, Tokens(r)), 1)
		}
		return answer
	}
}

// Tokens returns how many tokens a request has, counted the way Window does.
func Tokens(r Request) int { return len(r.Body) / 4 }
