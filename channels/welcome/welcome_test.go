package welcome

import (
	"strings"
	"testing"

	"parley/tools"
)

// The text promises only what the agent may do, and describes each capability.
func TestTheTextListsGrantedCapabilities(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	bare := Text(Facts{Prefix: "!"})
	for _, one := range tools.Permissions() {
		text := Text(Facts{Prefix: "!", Capabilities: []tools.Permission{one}})
		if strings.Count(text, "\n") != strings.Count(bare, "\n")+1 || seen[text] {
			t.Errorf("with %s it says %q", one, text)
		}
		seen[text] = true
	}
	if !strings.Contains(bare, "`!stop`") || strings.Contains(bare, "own this bot") || strings.Contains(bare, "may approve") {
		t.Errorf("it says %q", bare)
	}
	if all := Text(Facts{Owner: true, Approver: true, Capabilities: tools.Permissions(), Prefix: "/"}); !strings.Contains(all, "own this bot") || !strings.Contains(all, "`/new`") {
		t.Errorf("to an owner it says %q", all)
	}
}
