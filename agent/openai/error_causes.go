package openai

import (
	"net/http"
	"slices"
	"strings"

	"parley/agent/llm"
)

// cause says what an operator has to look at. Few servers have a code for it; for the
// others there is only the status and their message.
func (r *refusal) cause() llm.Cause {
	switch {
	case r.isOverflow():
		return ""
	case r.isUnpaid():
		return llm.CauseQuota
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

// isUnpaid tells whether the account has no money left. A limit of requests per time does
// not count, even if a server calls it a quota.
func (r *refusal) isUnpaid() bool {
	return r.status == http.StatusPaymentRequired ||
		r.hasCode("insufficient_quota", "billing_hard_limit_reached", "exceeded_current_quota_error", "insufficient_balance", "1113", "arrearage") ||
		r.mentions("insufficient balance", "insufficient credit", "credit balance is too low", "account is not active", "in arrears", "out of credits")
}

func (r *refusal) rejectsModel() bool {
	return r.hasCode("model_not_found", "model_not_exist", "invalid_model", "unknown_model") ||
		r.mentions("model not found", "model not exist", "invalid model", "no such model", "unknown model", "is not a valid model", "model does not exist")
}

func (r *refusal) rejectsKey() bool {
	return r.hasCode("invalid_api_key", "authentication_error", "permission_error", "unauthenticated", "permission_denied", "invalid_authentication_error") ||
		r.mentions("api key not valid", "invalid api key", "incorrect api key", "api key is missing", "no auth credentials", "missing authentication")
}

// isModelsOwn tells whether the model wrote something that its own server could not read.
// Asked again, it may write something else.
func (r *refusal) isModelsOwn() bool {
	return r.hasCode("tool_use_failed", "output_parse_failed", "json_validate_failed")
}

func (r *refusal) mentions(words ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
