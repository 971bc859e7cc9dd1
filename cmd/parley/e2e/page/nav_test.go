package page

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// On a large screen, the navigation shows all views in groups. On a small screen, the views are in a menu that works
// with a keyboard.
func TestNavigation(t *testing.T) {
	t.Parallel()
	v := enterBusy(t)
	visible := "document.querySelector('.views').checkVisibility()"
	groups := eval[[]string](v.tab, "[...document.querySelectorAll('.views-title')].map(e => e.textContent)")
	if want := []string{"Conversations", "Now", "Setup", "Records"}; !slices.Equal(groups, want) || !eval[bool](v.tab, visible) {
		t.Errorf("the groups are %q, want %q", groups, want)
	}
	if eval[bool](v.tab, "document.querySelector('.menu-button').checkVisibility()") {
		t.Error("a large screen has a menu")
	}
	v.do(chromedp.EmulateViewport(390, 844))
	v.wait("the menu to be closed", "!"+visible)
	v.waitText(".menu-button .badge", "1 open requests")
	v.see("overview", "Overview", "ready")
	v.waitText(".here", "Overview")
	eval[bool](v.tab, "(document.querySelector('.menu-button').focus(), true)")
	v.key("Enter", "\r", 13, 0)
	v.wait("the menu", visible)
	if expanded := eval[string](v.tab, "document.querySelector('.menu-button').ariaExpanded"); expanded != "true" {
		t.Errorf("the button says that the menu is open: %s", expanded)
	}
	v.picture("menu-390")
	v.fits("menu")
	if hides := eval[bool](v.tab, "(n => n.scrollHeight > n.clientHeight)(document.querySelector('.views'))"); hides {
		t.Error("some views are out of sight")
	}
	v.key("Escape", "", 27, 0)
	v.wait("the menu to be closed", "!"+visible+" && document.activeElement.matches('.menu-button')")
	v.key("Enter", "\r", 13, 0)
	v.wait("the menu", visible)
	focus := ""
	for range 40 { // reaches the view with the Tab key alone
		if focus = eval[string](v.tab, "document.activeElement.textContent"); focus == "Usage" {
			break
		}
		v.key("Tab", "", 9, 0)
	}
	if focus != "Usage" {
		t.Fatalf("the Tab key leads to %q", focus)
	}
	v.key("Enter", "\r", 13, 0)
	v.waitText("main h1", "Usage")
	v.wait("the focus in the view", "!"+visible+" && document.activeElement.id === 'content'")
	eval[bool](v.tab, "(document.querySelector('.menu-button').click(), true)")
	v.wait("the menu", visible)
	// The open menu handles keys a moment after it is shown.
	v.wait("the menu to be closed", "(document.querySelector('main h1').dispatchEvent(new PointerEvent('pointerdown', {bubbles: true})), !"+visible+")")
}
