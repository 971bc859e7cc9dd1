package slack

import (
	"net/http"

	"parley/channels/slack/events"
)

// requests receives by the requests that Slack makes.
type requests struct {
	secret     string               // the app's Signing Secret; "" if sockets are used
	deliveries chan events.Delivery // what the requests deliver
}

// ReceivesHTTP implements channels.HTTPReceiver: the channel receives by Slack's requests if it has
// a signing secret.
func (rs *requests) ReceivesHTTP() bool { return rs.secret != "" }

// ServeHTTP implements channels.HTTPReceiver: it answers one request of Slack's.
func (rs *requests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := events.Handler{Secret: rs.secret, Deliveries: rs.deliveries}
	h.ServeHTTP(w, r)
}
