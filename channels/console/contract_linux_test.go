package console_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/console"
	"parley/tools/testlog"
)

func TestConsoleKeepsTheContract(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New: func(t testing.TB) channelstest.FakePlatform { return newKeyboard(t) },
		MissingFeatures: map[channelstest.Feature]string{
			channelstest.Acknowledgements: "a terminal forgets a line as soon as it is read",
			channelstest.ManyChats:        "one person sits at a terminal",
			channelstest.Network:          "no API stands behind a terminal",
		},
	})
}

// A keyboard is a terminal on which the contract's suite types lines, with a buffer that receives the console's
// output.
type keyboard struct {
	t           testing.TB
	front, back *os.File
	printed     *testlog.Buffer
}

func newKeyboard(t testing.TB) *keyboard {
	k := &keyboard{t: t, printed: new(testlog.Buffer)}
	k.front, k.back = openTerminal(t)
	t.Cleanup(func() {
		_ = k.back.Close() // the result doesn't matter anymore
		_ = k.front.Close()
	})
	return k
}

func (k *keyboard) Channel(log *slog.Logger) channels.Channel {
	c, err := console.New(console.Config{Chat: "default", Session: session, In: k.back, Out: k.printed, Log: log})
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

func (k *keyboard) Address(int) bus.Address {
	return bus.Address{Channel: console.Name, Chat: "default"}
}

func (k *keyboard) Say(_ int, text string) {
	if _, err := k.front.WriteString(text + "\n"); err != nil {
		k.t.Fatal(err)
	}
}

// Shown returns each printed line as a message.
func (k *keyboard) Shown(int) (shown []channelstest.ShownMessage) {
	for line := range strings.Lines(k.printed.String()) {
		if line = strings.TrimSpace(line); line != "" {
			shown = append(shown, channelstest.ShownMessage{Text: line})
		}
	}
	return shown
}

func (k *keyboard) Unacknowledged() int                           { return 0 }
func (k *keyboard) Break(channelstest.Call, channelstest.Trouble) { k.t.Fatal("no call can be broken") }
func (k *keyboard) Mend()                                         {}
func (k *keyboard) Calls(channelstest.Call) int                   { return 0 }
func (k *keyboard) Down()                                         { k.t.Fatal("a terminal is not out of reach") }
func (k *keyboard) Up()                                           {}
