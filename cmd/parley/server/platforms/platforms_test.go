package platforms

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every row in the table of platforms is complete, and its page names its tokens.
func TestPlatformsAreWhole(t *testing.T) {
	for _, p := range platforms() {
		if p.Name == "" || p.Title == "" || p.open == nil || p.account == nil || len(p.Tokens) == 0 {
			t.Errorf("the row of %q is not whole", p.Name)
		}
		page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", p.page))
		if err != nil {
			t.Errorf("%s has no page: %v", p.Name, err)
			continue
		}
		for _, token := range p.Tokens {
			if !strings.Contains(string(page), token.Key) {
				t.Errorf("%s does not name %s of %s", p.page, token.Key, p.Title)
			}
		}
		if !strings.Contains(string(page), p.Title) {
			t.Errorf("%s does not name %s", p.page, p.Title)
		}
	}
}
