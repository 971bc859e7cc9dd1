package config

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"parley/cmd/parley/config/schema"
)

// compatibleEvoclaw is the only value of MQTT.Compatible.
const compatibleEvoclaw = "evoclaw"

// MQTT is the broker where nodes and edge agents are reached, and Parley's account there. On a device, whose own
// settings name the broker, it is only the account.
type MQTT struct {
	URL        string // mqtt:// or mqtts://HOST:PORT; "" means that there is none
	User       string
	Password   Secret
	Prefix     string // the first part of the topics of nodes
	Compatible string // whose edge agents' words are spoken there, too; "" means that there are none
}

// mqttSection declares the settings of the broker.
func mqttSection() section {
	return section{
		Section: schema.Section{Name: "mqtt", Settings: []schema.Setting{
			{Key: "url", Kind: schema.URL, Schemes: []string{"mqtt", "mqtts"}, Check: refuseBroker, Example: `"mqtts://broker.example.com:8883"`, Fill: schema.Into(func(m *MQTT) any { return &m.URL })},
			{Key: "user", Kind: schema.Text, Example: `"parley"`, Fill: schema.Into(func(m *MQTT) any { return &m.User })},
			{Key: "password", Kind: schema.Text, Secret: true, Example: `"${MQTT_PASSWORD}"`, Fill: schema.Into(func(m *MQTT) any { return &m.Password })},
			{Key: "prefix", Kind: schema.Text, Default: "parley", Fill: schema.Into(func(m *MQTT) any { return &m.Prefix })},
			{Key: "compatible", Kind: schema.Text, OneOf: []string{compatibleEvoclaw}, Example: strconv.Quote(compatibleEvoclaw), Fill: schema.Into(func(m *MQTT) any { return &m.Compatible })},
		}},
		check: checkMQTT,
	}
}

// refuseBroker returns what is wrong with the address of a broker, which has a host and perhaps a port, and nothing else. It
// doesn't repeat the address, because that may contain a password.
func refuseBroker(address string) *schema.Fault {
	u, err := url.Parse(address)
	if err != nil { // that is reported elsewhere
		return nil
	}
	if u.User != nil {
		return &schema.Fault{Wrong: "it contains a name or a password, which logs would show", Remedy: `write user = "…" and password = "${MQTT_PASSWORD}" instead`}
	}
	if u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return &schema.Fault{Wrong: "there is something after the host and the port", Remedy: `write something like url = "mqtts://broker.example.com:8883"`}
	}
	return nil
}

// refuseBrokerOf returns what is wrong with the address of a server if it is that of a broker; see refuseBroker.
func refuseBrokerOf(address string) *schema.Fault {
	if !isAtBroker(address) {
		return nil
	}
	return refuseBroker(address)
}

// isAtBroker reports whether an address is that of a broker.
func isAtBroker(address string) bool {
	return strings.HasPrefix(address, "mqtt://") || strings.HasPrefix(address, "mqtts://")
}

// checkMQTT reports a broker without an address, unless this is a device that has it elsewhere, a prefix that no topic can
// have, and a password without a user.
func checkMQTT(l *loader) {
	if !l.Mentioned("mqtt") {
		return
	}
	if !l.Mentioned("mqtt.url") && (!isAtBroker(l.Text("node.server")) || l.Mentioned("mqtt.compatible")) {
		l.Report(l.At("mqtt"), "mqtt", "it doesn't say where the broker is", `write url = "mqtts://broker.example.com:8883", or mqtt:// without TLS`)
	}
	if prefix := l.Text("mqtt.prefix"); !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,3}$`).MatchString(prefix) {
		l.Report(l.At("mqtt.prefix"), "mqtt.prefix", strconv.Quote(prefix)+" can't begin the topics of nodes", "use one to four words of letters, digits, _ and -, with / in between")
	}
	if l.Mentioned("mqtt.password") && l.Text("mqtt.user") == "" {
		l.Report(l.At("mqtt.password"), "mqtt.password", "there is no user that it's the password of", `write user = "parley", or whoever it is`)
	}
}

// checkNodeTools reports tools in a node's list that no node can have, and lists that have no effect.
func checkNodeTools(l *loader, table string) {
	path := table + ".tools"
	if !l.Mentioned(path) {
		return
	}
	if l.Text("mqtt.compatible") == "" {
		l.Report(l.At(path), path, "there is no [mqtt] with compatible: only what edge agents offer is listed here", "remove the line: parley node says itself which tools it has")
	}
	for i, name := range l.Texts(path) {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
			l.Report(l.ElementAt(path, i), path, strconv.Quote(name)+" can't be the name of a tool", "use at most 64 characters: letters, digits, _ and -")
		}
	}
}
