package lines_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley/tools/mcp/lines"
)

// said is what a wire makes of what a child prints.
func said(t *testing.T, print string) (messages []string, dropped int64) {
	t.Helper()
	childIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(childOut, print)
		childOut.Close()
	}()
	w := lines.New(in, out, func() {})
	defer w.Close()
	for {
		m, err := w.Read(t.Context())
		if errors.Is(err, io.EOF) {
			return messages, w.Dropped()
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, string(raw))
	}
}

func TestWhatIsNoMessageIsDropped(t *testing.T) {
	got, dropped := said(t, strings.Join([]string{
		"Welcome to the server v1.0!",
		"",
		`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`,
		`{"not":"a message"}`,
		`{"jsonrpc":"2.0","id":2,"resu`,
		`{"jsonrpc":"2.0","method":"notifications/message"}` + "\r",
		`[1,2]`,
		`[{"jsonrpc":"2.0","id":3,"result":{}},{"jsonrpc":"2.0","id":4,"result":{}}]`,
		"\x1b[31mwarning\x1b[0m \xff\xfe",
		`"text"`,
		`{"jsonrpc":"2.0","id":5,"result":{}}`,
	}, "\n")+"\n")
	want := []string{
		`{"jsonrpc":"2.0","id":1,"result":{"a":1}}`, `{"jsonrpc":"2.0","method":"notifications/message"}`,
		`{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0","id":4,"result":{}}`, `{"jsonrpc":"2.0","id":5,"result":{}}`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it heard %s, want %s", got, want)
	}
	if dropped != 7 {
		t.Errorf("it dropped %d", dropped)
	}
}

// Who waits for a result that cannot be read is told so too.
func TestAResultThatCannotBeRead(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 3000) + "1" + strings.Repeat("}", 3000)
	got, _ := said(t, `{"jsonrpc":"2.0","id":7,"result":`+deep+"}\n"+`{"jsonrpc":"2.0","id":8,"result":{}}`+"\n")
	if len(got) != 2 || !strings.Contains(got[0], `"id":7,"error"`) || !strings.Contains(got[1], `"id":8`) {
		t.Errorf("it heard %.300s", got)
	}
}

// The caller of a call whose result is too long gets an error, and later messages still arrive.
func TestALineThatIsTooLong(t *testing.T) {
	filler := strings.Repeat("x", lines.MaxLine)
	for _, c := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":7,"result":{"text":"` + filler + `"}}`, `"id":7,"error"`},
		{`{"result":{"text":"` + filler + `"},"jsonrpc":"2.0","id":8}`, `"id":8,"error"`},
		{`{"jsonrpc":"2.0","result":{"text":"` + filler + `"},"id":"nine"}`, `"id":"nine","error"`},
		{`{"jsonrpc":"2.0","method":"x","params":{"text":"` + filler + `"}}`, ""},
		{filler, ""},
	} {
		got, dropped := said(t, c.line+"\n"+`{"jsonrpc":"2.0","id":99,"result":{}}`+"\n")
		if last := got[len(got)-1]; !strings.Contains(last, `"id":99`) || dropped != 1 {
			t.Errorf("after %.30s it heard %s, and dropped %d", c.line, last, dropped)
		}
		if c.want == "" && len(got) != 1 || c.want != "" && (len(got) != 2 || !strings.Contains(got[0], c.want)) {
			t.Errorf("of %.30s it made %.200s", c.line, got)
		}
	}
}
