package mqtt

import (
	"encoding/json"
	"fmt"
	"time"

	"parley/tools/nodes"
)

// Timeout is how long a command may take by default: as long as these agents allow by themselves.
const Timeout = 30 * time.Second

// OfferOf returns what an agent offers whose tools have these names. Agents say no more of them than the names, so the
// arguments are those that tools of these names have; a tool of any other name takes what the model passes. None of them is
// said to change nothing: an agent cannot prove who it is. A call may take timeout.
func OfferOf(names []string, timeout time.Duration) nodes.Offer {
	offer := nodes.Offer{Platform: edgePlatform, Tools: []nodes.Tool{}}
	for _, name := range tidy(names) {
		about, schema := known(name)
		offer.Tools = append(offer.Tools, nodes.Tool{Name: name, Description: about, Schema: json.RawMessage(schema), Timeout: timeout.Milliseconds()})
	}
	return offer
}

// known returns the description and the schema of a tool's arguments.
func known(name string) (about, schema string) {
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
