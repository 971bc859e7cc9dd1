package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"parley/cmd/parley/config"
	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/tunnel"
	"parley/tools/nodes/wire"
)

// maxPingAge is the longest time that a ping may stay unanswered through a broker. Together with the time between two
// pings, it is as long as a link may be silent.
const maxPingAge = time.Minute

// JoinThrough makes the device of a home join a server through an MQTT broker, like Join, but with the longer code
// for brokers.
func JoinThrough(ctx context.Context, c *config.Config, broker, code, name string) (public ed25519.PublicKey, m Membership, err error) {
	at, err := url.Parse(broker)
	if err != nil || at.Hostname() == "" || at.User != nil || strings.Trim(at.Path, "/") != "" || at.RawQuery != "" || at.Fragment != "" {
		return nil, m, errors.New(textBroker)
	}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`).MatchString(name) { // the name is part of topics
		return nil, m, fmt.Errorf(textBadName, name)
	}
	code, knows, ok := tunnel.ParseCode(code)
	if !ok {
		return nil, m, errors.New(textShortCode)
	}
	own := at.Scheme + "://" + at.Host
	return join(c.Home, own, func(public ed25519.PublicKey, key ed25519.PrivateKey) (wire.JoinAnswer, error) {
		over := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return brokerNode(c, own, name, key, knows).Dial(ctx)
		}}
		answer, err := ask(ctx, over, &url.URL{Scheme: "http", Host: at.Host, Path: "/" + wire.JoinPath}, wire.JoinRequest{Code: code, Name: name, Key: public})
		if err == nil && !knows(answer.Key) {
			err = fmt.Errorf(textNoServer, at.Host)
		}
		return answer, err
	})
}

// IsBroker reports whether an address is that of an MQTT broker, not of the server itself.
func IsBroker(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "mqtt" || u.Scheme == "mqtts")
}

// brokerNode returns the node's end of connections through a broker, with the account in the settings.
func brokerNode(c *config.Config, broker, name string, key ed25519.PrivateKey, knows func(ed25519.PublicKey) bool) tunnel.Node {
	return tunnel.Node{
		Place: tunnel.Place{Broker: mqtt.Server{URL: broker, User: c.MQTT.User, Password: string(c.MQTT.Password)}, Prefix: c.MQTT.Prefix},
		Name:  name, Key: key, Knows: knows,
	}
}
