package openai

import (
	"net/http"
	"slices"
	"strings"

	"parley/agent/llm"
)

// cause says what an operator has to look at. Few servers have a code for it;
// of the others there is the status and what they write.
func (r *refusal) cause() llm.Cause {
	switch {
	case r.overflow():
		return ""
	case r.unpaid():
		return llm.CauseQuota
	case r.knowsNoModel():
		return llm.CauseModel
	case r.knowsNoKey():
		return llm.CauseKey
	}
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.CauseKey
	case http.StatusNotFound:
		if r.says("model") {
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

// unpaid tells whether the account is empty. A limit of requests in a time is
// no empty account, whatever it is called.
func (r *refusal) unpaid() bool {
	return r.status == http.StatusPaymentRequired ||
		r.is("insufficient_quota", "billing_hard_limit_reached", "exceeded_current_quota_error", "insufficient_balance", "1113", "arrearage") ||
		r.says("insufficient balance", "insufficient credit", "credit balance is too low", "account is not active", "in arrears", "out of credits")
}

func (r *refusal) knowsNoModel() bool {
	return r.is("model_not_found", "model_not_exist", "invalid_model", "unknown_model") ||
		r.says("model not found", "model not exist", "invalid model", "no such model", "unknown model", "is not a valid model", "model does not exist")
}

func (r *refusal) knowsNoKey() bool {
	return r.is("invalid_api_key", "authentication_error", "permission_error", "unauthenticated", "permission_denied", "invalid_authentication_error") ||
		r.says("api key not valid", "invalid api key", "incorrect api key", "api key is missing", "no auth credentials", "missing authentication")
}

// misspoken tells whether the model wrote what its own server could not read:
// asked again it may write something else.
func (r *refusal) misspoken() bool {
	return r.is("tool_use_failed", "output_parse_failed", "json_validate_failed")
}

func (r *refusal) says(words ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
