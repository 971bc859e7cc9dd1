package documents

import (
	"strings"
	"testing"

	"parley/tools/documents/pages"
)

// Where its time is over a document is given as far as it was read, one page at least.
func TestGivesWhatItHasInTime(t *testing.T) {
	content := []byte(strings.Repeat("A paragraph of some words.\n\n", 1000))
	ask := request{Kind: pages.Text, Pages: []pages.Range{{First: 2, Last: 5}, {First: 7}}, Most: 1 << 20}
	got, err := read(ask, content)
	if err != nil || len(got.Pages) != 1 || got.Pages[0].Number != 2 || pages.Format(got.Next) != "3-5,7" {
		t.Errorf("it gave %d pages and left %s, %v", len(got.Pages), pages.Format(got.Next), err)
	}
}
