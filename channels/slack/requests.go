package slack

import (
	"net/http"

	"parley/channels/slack/events"
)

// A requestReceiver receives messages by HTTP requests from Slack.
type requestReceiver struct {
	secret     string               // the app's Signing Secret; "" if sockets are used
	deliveries chan events.Delivery // receives the contents of the requests
}

// ReceivesHTTP implements channels.HTTPReceiver: the channel receives by HTTP requests if it has a signing secret.
func (rs *requestReceiver) ReceivesHTTP() bool { return rs.secret != "" }

// ServeHTTP implements channels.HTTPReceiver: it verifies and answers a request from Slack, and passes on its
// content.
func (rs *requestReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := events.Handler{Secret: rs.secret, Deliveries: rs.deliveries}
	h.ServeHTTP(w, r)
}
