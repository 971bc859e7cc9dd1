// Package exchange handles one request to the HTTP API and its answer: who asks, what is read, what is answered.
//
// A package that serves requests declares a Route for each: the method and path, who may call it,
// and the handler. The handler reads the request with Answer.ReadJSON and Decode, or Limit and
// After, answers with Answer.JSON, and refuses by returning a Refusal, for example one made by NotFound. Package
// api has the table of all routes, checks the callers, and records requests in the log and the audit.
package exchange

import "net/http"

// A Route is one request that the API serves.
type Route struct {
	Pattern string // METHOD PATH, in the form that http.ServeMux accepts
	// Open says that callers need no token: anybody may make the request, or the handler itself checks callers.
	Open bool
	// Public says that platforms and browsers may request the path under a public name of the server.
	Public bool
	// May reports whether a caller may use the route; nil if it is open.
	May func(Caller) bool
	// Serve answers a request, or returns an error that the caller gets as the answer.
	Serve func(w *Answer, r *http.Request) error

	// Audit is the kind under which the audit records each request, and Result what it says was done; "" means that
	// nothing is recorded. For a route without a Result, only the requests that the handler notes are recorded.
	Audit, Result string
}

// Open returns the route of a request that anybody may make and h answers.
func Open(pattern string, h http.Handler) Route {
	return Route{Pattern: pattern, Open: true, Serve: func(w *Answer, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}}
}
