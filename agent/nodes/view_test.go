package nodes_test

import (
	"encoding/json"
	"reflect"
	"testing"

	toolnodes "parley/tools/nodes"
)

// Nodes share one copy of equal descriptions and schemas, but each node has its own tools.
func TestEachNodeInTheViewHasItsOwnTools(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		p := f.process()
		other := tool("read", true)
		other.Description, other.Schema = "It reads something else.", json.RawMessage(`{"type":"object","properties":{}}`)
		named := tool("write", false)
		named.Schema = other.Schema
		want := map[string][]toolnodes.Tool{
			"one": {tool("read", true), tool("write", false)}, "two": {tool("read", true), named}, "three": {other},
		}
		for name, all := range want {
			p.join(name, all...)
		}
		waitUntil(t, "the view has all tools", func() bool {
			all, _ := p.View()
			got := map[string][]toolnodes.Tool{}
			for _, n := range all {
				got[n.Name] = n.Tools
			}
			return reflect.DeepEqual(got, want)
		})
	})
}
