package openai

import (
	"net/http"
	"strings"

	"parley/agent/llm"
)

// fault classifies a refusal. It checks for Overflow first, because servers give an overflow all kinds of
// statuses.
func (r *refusal) fault() llm.Fault {
	s := r.status
	switch {
	case r.isOverflow():
		return llm.Overflow
	case r.isMalformedOutput():
		return llm.Busy
	case r.cause() != "":
		return llm.Refused
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooEarly, s == http.StatusTooManyRequests, s == statusNoCapacity, s >= 500:
		return llm.Busy
	case s == http.StatusBadRequest && r.mentions("does not support tools"):
		return llm.Refused
	case s >= 400:
		return llm.Rejected
	case r.hasCode("invalid_request_error", "invalid_prompt", "invalid_argument"):
		return llm.Rejected
	}
	return llm.Busy
}

// statusNoCapacity is Groq's status for a request that its flexible tier has no room for at the moment.
const statusNoCapacity = 498

// cause returns what the operator has to fix, or "" if that isn't known. Few servers have a code for it; for
// the others only the status and the message tell.
func (r *refusal) cause() llm.Cause {
	switch {
	case r.isOverflow():
		return ""
	case r.isUnpaid():
		return llm.CauseQuota
	case r.rejectsPlace():
		return llm.CausePlace
	case r.isFlagged():
		return ""
	case r.rejectsModel():
		return llm.CauseModel
	case r.rejectsKey():
		return llm.CauseKey
	}
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.CauseKey
	case http.StatusNotFound:
		if r.mentions("model") {
			return llm.CauseModel
		}
		return llm.CauseAddress
	case http.StatusMethodNotAllowed, http.StatusGone:
		return llm.CauseAddress
	}
	if r.status > 0 && r.status < http.StatusBadRequest {
		return llm.CauseAddress
	}
	return ""
}

// isUnpaid reports whether the account has no money left. A limit on requests in a period doesn't count, even
// if a server calls it a quota.
func (r *refusal) isUnpaid() bool {
	return r.status == http.StatusPaymentRequired ||
		r.hasCode("insufficient_quota", "billing_hard_limit_reached", "exceeded_current_quota_error", "insufficient_balance", "1113", "arrearage") ||
		r.mentions("insufficient balance", "insufficient credit", "credit balance is too low", "account is not active", "in arrears", "out of credits")
}

// rejectsModel reports whether the server does not know the model.
func (r *refusal) rejectsModel() bool {
	return r.hasCode("model_not_found", "model_not_exist", "invalid_model", "unknown_model") ||
		r.mentions("model not found", "model not exist", "invalid model", "no such model", "unknown model", "is not a valid model", "model does not exist")
}

// rejectsPlace reports whether the provider doesn't serve the country or region that the request came from.
func (r *refusal) rejectsPlace() bool {
	return r.hasCode("unsupported_country_region_territory") ||
		r.mentions("country, region, or territory not supported", "user location is not supported", "not available in your region", "not available in your country",
			"check your network settings") // Groq
}

// isFlagged reports whether the provider's moderation rejects the conversation, with a status that otherwise means that
// the key is wrong.
func (r *refusal) isFlagged() bool {
	return r.mentions("requires moderation", "input was flagged")
}

// isExplained reports whether a refusal names a cause other than the request's length: the conversation's content, a
// tool, or a parameter other than the messages.
func (r *refusal) isExplained() bool {
	param := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(r.param)), "body.")
	if end := strings.IndexAny(param, ".["); end >= 0 {
		param = param[:end]
	}
	switch param {
	case "", "none", "null", "body", "messages", "input", "inputs", "prompt", "contents":
	default:
		return true
	}
	return r.isFlagged() || len(r.toolPlaces()) > 0 ||
		r.hasCode("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt", "data_inspection_failed", "datainspectionfailed",
			"unsupported_parameter", "unsupported_value", "unknown_parameter", "missing_required_parameter", "invalid_function_parameters") ||
		r.mentions("content filter", "content_filter", "content management policy", "content policy", "content policies", "usage policy", "usage policies",
			"safety", "moderation", "flagged", "inappropriate", "data inspection",
			"unsupported parameter", "unsupported value", "unknown parameter", "unknown field", "unknown name", "unrecognized request argument",
			"inputs are not permitted", "additional properties are not allowed")
}

// rejectsKey reports whether the server rejects the API key.
func (r *refusal) rejectsKey() bool {
	return r.hasCode("invalid_api_key", "authentication_error", "permission_error", "unauthenticated", "permission_denied", "invalid_authentication_error") ||
		r.mentions("api key not valid", "invalid api key", "incorrect api key", "api key is missing", "no auth credentials", "missing authentication")
}

// isMalformedOutput reports whether the model wrote something that its own server could not parse. If it is
// asked again, it may write something else.
func (r *refusal) isMalformedOutput() bool {
	return r.hasCode("tool_use_failed", "output_parse_failed", "json_validate_failed")
}

// mayConcernTool reports whether a refusal may be about a tool. It is not if its status, the request's length or the
// model's output explains it.
func (r *refusal) mayConcernTool() bool {
	switch r.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError, 0:
		return r.fault() != llm.Overflow && !r.isMalformedOutput()
	}
	return false
}

// wantsResponses reports whether a refusal says that the model has to be asked through the Responses API,
// always or when it has tools.
func (r *refusal) wantsResponses() bool {
	return r.status >= http.StatusBadRequest && r.status < http.StatusInternalServerError &&
		r.mentions("v1/responses", "use the responses api", "only supported in the responses", "chatcompletion operation does not work") // the last is Azure's
}

// lacksResponses reports whether a refusal says that the server has no Responses API, or none for this model.
func (r *refusal) lacksResponses() bool {
	return r.lacksAddress() || r.status >= http.StatusBadRequest &&
		r.mentions("not supported with the responses api", "does not support the responses api", "not supported in the v1/responses")
}

// lacksAddress reports whether a refusal says that the server doesn't know the requested URL. A status 404 for
// an unknown model doesn't count.
func (r *refusal) lacksAddress() bool {
	switch r.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return !r.rejectsModel() && !r.refusesReasoning() && !r.mentions("model")
	}
	return false
}

// refusesReasoning reports whether a refusal is about an item of reasoning that was sent back to the Responses
// API: it can't be decrypted, is not stored, or is in the wrong place.
func (r *refusal) refusesReasoning() bool {
	return r.hasCode("invalid_encrypted_content") || r.mentions(
		"encrypted content", "encrypted_content", "of type 'reasoning'", "required 'reasoning' item", "items are not persisted",
	) && !r.mentions("is not supported with this model")
}

// requiresMessageOrder reports whether a refusal says that a person's message must not directly follow a tool's
// result. Servers say that, and so do the templates of models, which fail with status 500.
func (r *refusal) requiresMessageOrder() bool {
	return r.hasCode("3230", "invalid_request_message_order") || r.mentions("after role 'tool'", "after role \"tool\"", "roles must alternate")
}

// refusesPictures reports whether a refusal says that the model sees no pictures. A complaint about one
// picture, for example that it is damaged or too large, doesn't count.
func (r *refusal) refusesPictures() bool {
	if r.status < http.StatusBadRequest || r.status == http.StatusUnauthorized || r.status == http.StatusTooManyRequests || r.fault() == llm.Overflow {
		return false
	}
	return r.mentions(
		"does not support image", "not support image", "support image input", "image input is not supported", "image_url is only supported", "images are not supported",
		"no endpoints found that support image", // OpenRouter
		"unknown variant `image_url`",           // DeepSeek
		"not a multimodal model", "multimodal data provided, but model does not support multimodal", "is not multimodal",
		"mmproj", // llama.cpp
		"vision is not supported", "does not support vision", "content must be a string", "invalid content type. image_url",
	)
}

// refusesTools reports whether a refusal says that the model can't use tools, or that its server was started
// without support for them. A complaint about one tool doesn't count.
func (r *refusal) refusesTools() bool {
	if r.status < http.StatusBadRequest || r.status == http.StatusUnauthorized || r.status == http.StatusTooManyRequests || r.fault() == llm.Overflow {
		return false
	}
	return r.mentions(
		"does not support tools", "not support tool", "tools are not supported", "tool use is not supported", "tool calling is not supported",
		"does not support function calling", "function calling is not supported", "not support function", "function calling is not enabled",
		"no endpoints found that support tool use",  // OpenRouter
		"--enable-auto-tool-choice",                 // vLLM
		"tools param requires --jinja",              // llama.cpp
		"tool_calls is not supported by this model", // DeepSeek
	)
}
