package page

import (
	"fmt"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// A search finds settings and shows where they come from. It shows no secrets.
func TestSettingsAreFoundByWords(t *testing.T) {
	t.Parallel()
	o, _ := newWorld(t, parleytest.EchoModel, fmt.Sprintf("[tokens.reader]\ntoken = %q\nmay = [\"read\"]\n", readerToken))
	v := visit{enter(newBrowser(t), o, 1280, 900), o}
	v.see("configuration", "Configuration", "http.listen")
	eval[bool](v.tab, "(document.querySelector('main input[type=checkbox]').click(), true)")
	v.wait("the defaults to go", "![...document.querySelectorAll('main tbody td')].some(c => c.textContent === 'default')")
	v.waitText("main", "http.listen")
	v.write("main input[type=search]", "READER token")
	v.wait("the others to go", "document.querySelectorAll('main tbody tr').length === 2")
	for _, want := range []string{"tokens.reader.token", "***", "tokens.reader.may", `["read"]`, "parley.toml:"} {
		if !strings.Contains(v.text("main tbody"), want) {
			t.Errorf("there is no %s: %s", want, v.text("main tbody"))
		}
	}
	if strings.Contains(v.text("body"), readerToken) {
		t.Error("a secret is shown")
	}
}
