package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/tools/plainjson"
)

// memoryOfOwner is the path of the owner's memory in the API.
const memoryOfOwner = "/v1/memory/person/telegram:1"

// remember replaces the owner's memory with a text, as a client does that has read the current version.
func remember(o *parleytest.HTTPWorld, text string) {
	o.T.Helper()
	body, err := plainjson.Marshal(map[string]string{"content": text})
	parleytest.Must(o.T, err)
	if a := o.Ask("PUT", memoryOfOwner, string(body), append(o.OwnerHeader(), "If-Match", memoryNow(o).Version)...); a.Status != 200 {
		o.T.Fatalf("not remembered: %d %s", a.Status, a.Body)
	}
}

// memoryNow returns the owner's memory.
func memoryNow(o *parleytest.HTTPWorld) (m struct{ Content, Version string }) {
	o.T.Helper()
	parleytest.Must(o.T, json.Unmarshal([]byte(o.Ask("GET", memoryOfOwner, "", o.OwnerHeader()...).Body), &m))
	return m
}

// typeOver replaces the text of a field.
func (v visit) typeOver(css, text string) {
	v.t.Helper()
	v.wait(css, fmt.Sprintf("document.querySelector(%q)", css))
	eval[bool](v.tab, fmt.Sprintf("(f => { f.value = %q; return f.dispatchEvent(new Event('input', {bubbles: true})) })(document.querySelector(%q))", text, css))
}

// A person can read, edit and erase a memory. The page warns before it overwrites what somebody else has written
// meanwhile, and shows at once what the agent writes.
func TestAMemoryIsEditedAndErased(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	eval[bool](v.tab, "(window.setInterval = () => 0, true)") // the page does not poll anymore
	v.see("memory", "Memory", "telegram:1")
	eval[bool](v.tab, "(document.querySelector('main td a[aria-label=\"View the memory of telegram:1\"]').click(), true)")
	v.waitText("main pre", "likes tea")
	v.press("Edit")
	v.typeOver("main textarea", "likes coffee")
	remember(v.o, "likes water")
	v.press("Save")
	v.waitText("main .note.error", "This memory changed while you were editing it.")
	v.waitText("main pre", "likes water")
	v.forgive("status of 412")
	if got := memoryNow(v.o).Content; got != "likes water" {
		t.Errorf("what others wrote is lost: %q", got)
	}
	v.press("Replace it with my text")
	v.press("Save")
	v.waitText("main .note.done", "Saved the memory of telegram:1.")
	v.waitText("main pre", "likes coffee")
	if got := memoryNow(v.o).Content; got != "likes coffee" {
		t.Errorf("saved is %q", got)
	}
	v.o.Ask("POST", "/v1/asks/"+v.openAsk(), `{"answer":"deny"}`, v.o.OwnerHeader()...)
	v.o.Telegram.Say(1, 1, "remember it")
	v.waitText("main pre", "lives in Ulm")
	v.press("Erase…")
	v.waitText("dialog", "You can't undo it.")
	v.press("Cancel")
	if got := memoryNow(v.o).Content; !strings.Contains(got, "likes coffee") {
		t.Errorf("it is erased by accident: %q", got)
	}
	v.press("Erase…")
	remember(v.o, "likes juice")
	v.press("Erase it")
	v.waitText("dialog [role=alert]", " ")
	v.waitText("main pre", "likes juice")
	v.forgive("status of 412")
	v.press("Cancel")
	if got := memoryNow(v.o).Content; got != "likes juice" {
		t.Errorf("erased is what nobody had seen: %q", got)
	}
	v.press("Erase…")
	v.press("Erase it")
	v.waitText("main .note.done", "Erased the memory of telegram:1.")
	v.waitText("main", "There's no memory here.")
	if got := memoryNow(v.o).Content; got != "" {
		t.Errorf("left is %q", got)
	}
	v.see("audit", "Audit", "erased")
}

// The memory of a conversation is in no list. A person finds it by typing the key of the session.
func TestTheMemoryOfAConversationIsFound(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	v.see("memory", "Memory", "telegram:1")
	v.write("main .filters input", "main:telegram:1")
	v.waitText("main", "There's no memory here.")
	v.press("Write")
	v.typeOver("main textarea", "we met on Monday")
	v.press("Save")
	v.waitText("main pre", "we met on Monday")
	v.write("main .filters input", "0")
	v.waitText("main .note.error", "There's no such session")
	v.forgive("status of 404")
}
