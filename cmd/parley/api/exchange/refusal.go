package exchange

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A Refusal is an error in the form in which the API's caller reads it.
type Refusal struct {
	Status  int
	Code    string
	Message string
	Retry   time.Duration // value of the header Retry-After
	Allow   string        // value of the header Allow
}

// Error returns the message.
func (e *Refusal) Error() string { return e.Message }

// IsRefusal reports whether an error is a refusal rather than a failure.
func IsRefusal(err error) bool {
	_, is := errors.AsType[*Refusal](err)
	return is
}

// Forbidden refuses a request that the caller's token does not allow.
func Forbidden(message string) *Refusal {
	return &Refusal{Status: http.StatusForbidden, Code: "forbidden", Message: message}
}

// Unauthorized refuses a caller without a known token.
func Unauthorized(message string) *Refusal {
	return &Refusal{Status: http.StatusUnauthorized, Code: "unauthorized", Message: message}
}

// NotFound refuses a request about something that does not exist.
func NotFound(message string) *Refusal {
	return &Refusal{Status: http.StatusNotFound, Code: "not_found", Message: message}
}

// BadRequest refuses a request that cannot be parsed.
func BadRequest(code, format string, args ...any) *Refusal {
	return &Refusal{Status: http.StatusBadRequest, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Unprocessable refuses a request that can be parsed but makes no sense.
func Unprocessable(code, format string, args ...any) *Refusal {
	return &Refusal{Status: http.StatusUnprocessableEntity, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Conflict refuses a request that isn't possible in the current state.
func Conflict(code, message string) *Refusal {
	return &Refusal{Status: http.StatusConflict, Code: code, Message: message}
}

// Unavailable refuses a request that cannot be served now.
func Unavailable(code, message string) *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Code: code, Message: message, Retry: retryUnavailable}
}

const retryUnavailable = 5 * time.Second

// TooLarge refuses a request that has too many bytes.
func TooLarge(message string) *Refusal {
	return &Refusal{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: message}
}
