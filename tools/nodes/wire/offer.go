package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/tools/nodes"
	"parley/tools/plainjson"
)

// The limits of an offer in addition to those in package nodes.
const (
	maxToolName         = 64
	maxCapabilities     = 32
	maxCapabilityLength = 32  // bytes of a capability
	maxReleaseLength    = 100 // bytes of the release, and of the platform
	maxRules            = 64
	maxRule             = 500 // bytes of a rule
)

// CheckOffer returns which limit an offer exceeds; nil if none. The error is for the node's log.
func CheckOffer(o nodes.Offer) error {
	if len(o.Tools) > nodes.MaxTools {
		return fmt.Errorf("%d tools are more than %d", len(o.Tools), nodes.MaxTools)
	}
	seen := make(map[string]bool, len(o.Tools))
	for _, t := range o.Tools {
		if err := checkTool(t); err != nil {
			return err
		}
		if seen[t.Name] {
			return fmt.Errorf("two tools are named %s", t.Name)
		}
		seen[t.Name] = true
	}
	if len(o.Capabilities) > maxCapabilities {
		return fmt.Errorf("%d capabilities are more than %d", len(o.Capabilities), maxCapabilities)
	}
	for _, word := range o.Capabilities {
		if !consistsOf(word, maxCapabilityLength, "abcdefghijklmnopqrstuvwxyz0123456789_-") {
			return fmt.Errorf("the capability %.40q is not one to %d of a-z0-9_-", word, maxCapabilityLength)
		}
	}
	if len(o.Release) > maxReleaseLength || len(o.Platform) > maxReleaseLength {
		return fmt.Errorf("the release or the platform has more than %d bytes", maxReleaseLength)
	}
	if len(o.Ask) > maxRules || slices.ContainsFunc(o.Ask, func(rule string) bool { return len(rule) > maxRule }) {
		return fmt.Errorf("there are more than %d rules for what to ask about, or one has more than %d bytes", maxRules, maxRule)
	}
	raw, err := plainjson.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode the offer: %w", err)
	}
	if len(raw) > nodes.MaxOffer {
		return fmt.Errorf("the offer has %d bytes, more than %d", len(raw), nodes.MaxOffer)
	}
	return nil
}

func checkTool(t nodes.Tool) error {
	var schema map[string]json.RawMessage
	switch {
	case !consistsOf(t.Name, maxToolName, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"):
		return fmt.Errorf("the name of the tool %.80q is not one to %d of A-Za-z0-9_-", t.Name, maxToolName)
	case len(t.Description) > nodes.MaxDescription:
		return fmt.Errorf("the description of the tool %s has %d bytes, more than %d", t.Name, len(t.Description), nodes.MaxDescription)
	case len(t.Schema) > nodes.MaxSchema:
		return fmt.Errorf("the schema of the tool %s has %d bytes, more than %d", t.Name, len(t.Schema), nodes.MaxSchema)
	case json.Unmarshal(t.Schema, &schema) != nil || schema == nil:
		return fmt.Errorf("the schema of the tool %s is no JSON object", t.Name)
	case t.Timeout < 0:
		return fmt.Errorf("the tool %s may take less than no time", t.Name)
	}
	return nil
}

// consistsOf reports whether a text has one to most characters, all from of.
func consistsOf(text string, most int, of string) bool {
	return text != "" && len(text) <= most && strings.Trim(text, of) == ""
}
