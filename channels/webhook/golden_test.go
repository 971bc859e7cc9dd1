package webhook_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels/markup"
	"parley/channels/webhook"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// The golden files contain what the built-in templates make of the senders' documented examples, as each
// platform gets it, for people to look at.
func TestGoldenMessages(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 10 {
		t.Fatal("the examples are missing", err)
	}
	rigs := map[string]*rig{}
	for _, kind := range []string{webhook.Alertmanager, webhook.GitHub, webhook.JSON} {
		rigs[kind] = newRig(t, testConfig{kind: kind})
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, ".")
			d := rigs[kind]
			r := d.exampleRequest(name)
			r.Header.Set("X-GitHub-Delivery", name)
			d.mustAccept(r)
			var got strings.Builder
			md := d.onlyMessage().Text
			fmt.Fprintf(&got, "=== Markdown\n%s\n", md)
			for _, dialect := range []markup.Dialect{markup.SlackMrkdwn, markup.DiscordMarkdown, markup.TelegramHTML} {
				pieces := markup.Render(md, dialect, 4000)
				if len(pieces) != 1 {
					t.Errorf("%s: %d pieces", dialect, len(pieces))
				}
				fmt.Fprintf(&got, "=== %s\n%s\n", dialect, pieces[0].Text)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *updateGolden {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("it reads\n%s\nwant\n%s", got.String(), want)
			}
		})
	}
}
