package openai

import (
	"encoding/json"
	"net/http"

	"parley/agent/openai/wire"
)

// A minimaxStatus is the field base_resp, in which MiniMax says whether a request succeeded. It comes with HTTP
// status 200, and in a stream with the last event.
type minimaxStatus struct {
	Code    wire.String `json:"status_code"` // "0" if all is well
	Message wire.String `json:"status_msg"`
}

// readMinimax reads a field base_resp. A field that is missing or can't be read doesn't count as a failure.
func readMinimax(raw json.RawMessage) minimaxStatus {
	var s minimaxStatus
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return minimaxStatus{}
	}
	return s
}

// isFailure reports whether the request failed.
func (s minimaxStatus) isFailure() bool { return s.Code != "" && s.Code != "0" }

// httpStatus returns the HTTP status that other servers use for the same failure.
func (s minimaxStatus) httpStatus() int {
	switch s.Code {
	case "1002", "1039", "1041", "2045", "2056":
		return http.StatusTooManyRequests
	case "1004", "2049":
		return http.StatusUnauthorized
	case "1008":
		return http.StatusPaymentRequired
	case "1026", "1027", "2013": // forbidden content in the request or the answer; an invalid field
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}
