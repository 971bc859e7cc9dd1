package workspace

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesThatDifferOnlyInCase pretends that the filesystem ignores case, whatever the filesystem of the test
// machine does.
func TestNamesThatDifferOnlyInCase(t *testing.T) {
	for _, folds := range []bool{false, true} {
		w := &Workspaces{ignoresCase: folds}
		seen := map[string]string{}
		keys := []string{"main:slack:C1", "main:slack:c1", "Main:slack:c1", "main:slack:c%2F1", "main:slack:c%2f1"}
		for _, prefix := range []string{"X", "x"} {
			keys = append(keys, "main:web:"+prefix+strings.Repeat("y", 240), "main:web:"+prefix+strings.Repeat("Y", 240))
		}
		for _, key := range keys {
			name, err := w.directoryName(key)
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
				if len(part) > maxName {
					t.Errorf("%s has a part of %d bytes", key, len(part))
				}
			}
			if folds {
				name = strings.ToLower(name)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%s and %s share %s where case counts: %v", key, other, name, !folds)
			}
			seen[name] = key
		}
	}
}
