package config

import (
	"net/url"
	"regexp"
	"strconv"

	"parley/cmd/parley/config/schema"
)

// edgeWords is the only value of MQTT.Compatible.
const edgeWords = "evoclaw"

// MQTT is the broker where edge agents are reached; the zero MQTT is none.
type MQTT struct {
	URL        string // mqtt:// or mqtts://HOST:PORT
	User       string
	Password   Secret
	Compatible string // whose agents' words are spoken there
}

// mqttSection declares the settings of the broker.
func mqttSection() section {
	return section{
		Section: schema.Section{Name: "mqtt", Settings: []schema.Setting{
			{Key: "url", Kind: schema.URL, Schemes: []string{"mqtt", "mqtts"}, Check: refuseBroker, Example: `"mqtts://broker.example.com:8883"`, Fill: schema.Into(func(m *MQTT) any { return &m.URL })},
			{Key: "user", Kind: schema.Text, Example: `"parley"`, Fill: schema.Into(func(m *MQTT) any { return &m.User })},
			{Key: "password", Kind: schema.Text, Secret: true, Example: `"${MQTT_PASSWORD}"`, Fill: schema.Into(func(m *MQTT) any { return &m.Password })},
			{Key: "compatible", Kind: schema.Text, OneOf: []string{edgeWords}, Example: strconv.Quote(edgeWords), Fill: schema.Into(func(m *MQTT) any { return &m.Compatible })},
		}},
		check: checkMQTT,
	}
}

// refuseBroker returns what is wrong with the address of a broker, which has a host and perhaps a port, and nothing else. It
// doesn't repeat the address, because that may contain a password.
func refuseBroker(address string) *schema.Fault {
	u, err := url.Parse(address)
	if err != nil { // said elsewhere
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

// checkMQTT reports a broker without an address or without a word for what is spoken there, and a password without a user.
func checkMQTT(l *loader) {
	if !l.Mentioned("mqtt") {
		return
	}
	if !l.Mentioned("mqtt.url") {
		l.Report(l.At("mqtt"), "mqtt", "it doesn't say where the broker is", `write url = "mqtts://broker.example.com:8883", or mqtt:// without TLS`)
	}
	if !l.Mentioned("mqtt.compatible") {
		l.Report(l.At("mqtt"), "mqtt.compatible", "it's missing", `write compatible = "`+edgeWords+`": for now Parley speaks only with edge agents of that kind over MQTT`)
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
	if l.Text("mqtt.url") == "" {
		l.Report(l.At(path), path, "there is no [mqtt]: only what edge agents offer is listed here", "remove the line: parley node says itself which tools it has")
	}
	for i, name := range l.Texts(path) {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(name) {
			l.Report(l.ElementAt(path, i), path, strconv.Quote(name)+" can't be the name of a tool", "use at most 64 characters: letters, digits, _ and -")
		}
	}
}
