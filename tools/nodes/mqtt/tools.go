package mqtt

import (
	"encoding/json"
	"fmt"
	"time"

	"parley/tools/nodes"
)

// Timeout is how long a command may take by default, which is also the agents' own default.
const Timeout = 30 * time.Second

// OfferOf returns the offer of an agent whose tools have these names. Agents report only the names, so the arguments
// are those that tools of these names usually have; a tool of another name accepts any arguments. None of them counts
// as pure, because an agent cannot prove its identity. A call may take timeout.
func OfferOf(names []string, timeout time.Duration) nodes.Offer {
	offer := nodes.Offer{Platform: edgePlatform, Tools: []nodes.Tool{}}
	for _, name := range cleanToolNames(names) {
		about, schema := describeTool(name)
		offer.Tools = append(offer.Tools, nodes.Tool{Name: name, Description: about, Schema: json.RawMessage(schema), Timeout: timeout.Milliseconds()})
	}
	return offer
}

// describeTool returns the description and the schema of a tool's arguments.
func describeTool(name string) (about, schema string) {
	switch name {
	case "bash":
		return textBash, `{"type":"object","properties":{"command":{"type":"string","description":"the command line"}},"required":["command"],"additionalProperties":false}`
	case "read":
		return textRead, `{"type":"object","properties":{"path":{"type":"string","description":"the file's path on the device"}},"required":["path"],"additionalProperties":false}`
	case "git_log":
		return textGitLog, `{"type":"object","properties":{"max_count":{"type":"integer","minimum":1,"description":"how many commits at most"}},"additionalProperties":false}`
	case "git_diff":
		return textGitDiff, `{"type":"object","properties":{"commit":{"type":"string","description":"the commit whose changes are shown"}},"additionalProperties":false}`
	}
	return fmt.Sprintf(textOther, name), `{"type":"object"}`
}
