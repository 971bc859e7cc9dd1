package tools

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAnnotate(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`: `{"a":1,"_repaired_args":"x \"y\""}`, " {\n} \n": `{"_repaired_args":"x \"y\""}`, `[1]`: `{"result":[1],"_repaired_args":"x \"y\""}`,
		`"{}"`: `{"result":"{}","_repaired_args":"x \"y\""}`, ``: `{"result":null,"_repaired_args":"x \"y\""}`,
	} {
		if got := string(Annotate(json.RawMessage(in), `x "y"`)); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
		if got := string(Annotate(json.RawMessage(in), "")); got != in {
			t.Errorf("without a note %q is %q", in, got)
		}
	}
	if got := Annotate(json.RawMessage(`{}`), strings.Repeat("ä", 9999)); !json.Valid(got) || len(got) > 3*maxRepairNote {
		t.Errorf("a long note: %s", got)
	}
}
