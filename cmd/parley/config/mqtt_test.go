package config_test

import (
	"testing"

	"parley/cmd/parley/config"
)

func TestMQTT(t *testing.T) {
	same(t, "none", good(t, "", nil).MQTT, config.MQTT{Prefix: "parley"})
	same(t, "nodes only", good(t, "[mqtt]\nurl = \"mqtt://broker\"\nprefix = \"home/parley-2\"\n", nil).MQTT, config.MQTT{URL: "mqtt://broker", Prefix: "home/parley-2"})
	device := good(t, "[node]\nserver = \"mqtts://broker\"\n[mqtt]\nuser = \"pi\"\n", nil)
	same(t, "on a device", device.MQTT, config.MQTT{User: "pi", Prefix: "parley"})
	same(t, "the device's broker", device.Node.Server, "mqtts://broker")
	c := good(t, "[mqtt]\nurl = \"mqtts://broker:8883\"\nuser = \"parley\"\npassword = \"${P}\"\ncompatible = \"evoclaw\"\n[nodes.pi]\ntools = [\"bash\"]\n", vars{"P": "a-secret"})
	same(t, "the broker", c.MQTT, config.MQTT{URL: "mqtts://broker:8883", User: "parley", Password: "a-secret", Prefix: "parley", Compatible: "evoclaw"})
	same(t, "the tools", c.Nodes["pi"].Tools, []string{"bash"})
}

func TestBadMQTT(t *testing.T) {
	for _, c := range []badCase{
		{"nothing in it", "[mqtt]\n",
			`1: mqtt: it doesn't say where the broker is: write url = "mqtts://broker.example.com:8883", or mqtt:// without TLS`},
		{"edge agents on a device", "[node]\nserver = \"mqtt://broker\"\n[mqtt]\ncompatible = \"evoclaw\"\n",
			`3: mqtt: it doesn't say where the broker is: write url = "mqtts://broker.example.com:8883", or mqtt:// without TLS`},
		{"a prefix of many topics", "[mqtt]\nurl = \"mqtt://broker\"\nprefix = \"home/+\"\n",
			`3: mqtt.prefix: "home/+" can't begin the topics of nodes: use one to four words of letters, digits, _ and -, with / in between`},
		{"a password in a node's broker", "[node]\nserver = \"mqtt://u:p@broker\"\n",
			`2: node.server: it contains a name or a password, which logs would show: write user = "…" and password = "${MQTT_PASSWORD}" instead`},
		{"another wire", "[mqtt]\nurl = \"mqtt://broker\"\ncompatible = \"native\"\n",
			`3: mqtt.compatible: unknown value "native": write "evoclaw"`},
		{"another scheme", "[mqtt]\nurl = \"tcp://broker\"\ncompatible = \"evoclaw\"\n",
			`2: mqtt.url: not an address that begins with mqtt:// or mqtts://: write something like url = "mqtts://broker.example.com:8883"`},
		{"a password in the address", "[mqtt]\nurl = \"mqtt://u:p@broker\"\ncompatible = \"evoclaw\"\n",
			`2: mqtt.url: it contains a name or a password, which logs would show: write user = "…" and password = "${MQTT_PASSWORD}" instead`},
		{"a password of nobody", "[mqtt]\nurl = \"mqtt://broker\"\npassword = \"${T}\"\ncompatible = \"evoclaw\"\n",
			`3: mqtt.password: there is no user that it's the password of: write user = "parley", or whoever it is`},
		{"tools", "[nodes.pi]\ntools = [\"bash\", \"rm -rf\"]\n",
			`2: nodes.pi.tools: there is no [mqtt] with compatible: only what edge agents offer is listed here: remove the line: parley node says itself which tools it has` + "\n" +
				`2: nodes.pi.tools: "rm -rf" can't be the name of a tool: use at most 64 characters: letters, digits, _ and -`},
	} {
		c.run(t)
	}
}
