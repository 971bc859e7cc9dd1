package canvas_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/tools/canvas"
	"parley/tools/toolstest"
)

// A document without active parts keeps its looks and its words, and nothing in it runs, moves or leads elsewhere.
func TestStill(t *testing.T) {
	for _, gone := range []string{
		`<script>EVIL</script>`, `<link rel=preconnect href="//EVIL">`, `<meta http-equiv=refresh content="0;url=//EVIL">`, `<base href="//EVIL">`,
		`<iframe src="//EVIL"></iframe>`, `<iframe srcdoc="EVIL"></iframe>`, `<object data="//EVIL"></object>`, `<embed src="//EVIL">`,
		`<form action="//EVIL"><button formaction="//EVIL">x</button></form>`, `<a href="//EVIL" ping="//EVIL">x</a>`, `<a href="javascript:EVIL">x</a>`,
		`<img src="//EVIL" srcset="//EVIL 2x">`, `<img srcset="data:image/gif;base64,R0lGODlh 1x, //EVIL 2x">`, `<img src=x onerror="EVIL">`, `<svg onload="EVIL"></svg>`, `<svg><image href="//EVIL"/></svg>`,
		`<svg><a xlink:href="//EVIL"><text>x</text></a></svg>`, `<svg><set attributeName="href" to="//EVIL"/></svg>`, `<svg><use href="//EVIL#x"/></svg>`,
		`<svg><style><a title="</style><link rel=preconnect href=//EVIL>"></style></svg>`, `<svg><desc><link rel=preconnect href=//EVIL></desc></svg>`,
		`<math><mtext><table><mglyph><style><!--</style><link rel=preconnect href=//EVIL>--></style></mglyph></table></mtext></math>`,
		`<noscript><link rel=preconnect href=//EVIL></noscript>`, `<template><script>EVIL</script></template>`, `<!-- EVIL -->`,
		`<video src="//EVIL" poster="//EVIL"></video>`, `<table background="//EVIL"></table>`, `<frameset><frame src="//EVIL"></frameset>`,
		`<portal src="//EVIL"></portal>`, `<textarea></textarea><xmp><link rel=preconnect href=//EVIL></xmp>`, `<plaintext><link rel=preconnect href=//EVIL>`,
		`<div attributionsrc="//EVIL">x</div>`, `<input type=image src="//EVIL">`, `<script type=speculationrules>{"prefetch":"EVIL"}</script>`,
	} {
		still, err := new(canvas.Reader).Still(t.Context(), "", []byte("<p>before</p>"+gone))
		if err != nil || strings.Contains(string(still), "EVIL") || !strings.Contains(string(still), "<p>before</p>") && !strings.Contains(gone, "frameset") {
			t.Errorf("%s became %s, %v", gone, still, err)
		}
		again, err := new(canvas.Reader).Still(t.Context(), "", still)
		if err != nil || string(again) != string(still) {
			t.Errorf("%s became %s, and then %s", gone, still, again)
		}
	}
	for _, stays := range []string{
		`<style>p { color: red }</style>`, `<p style="color:red" class="x" id="y" title="z">text</p>`, `<table><tbody><tr><td colspan="2">x</td></tr></tbody></table>`,
		`<img src="data:image/png;base64,AAAA" alt="x"/>`, `<svg viewBox="0 0 1 1"><path d="M0 0H1"></path><text x="1">a</text></svg>`, `<a href="#there">x</a>`,
		`<details open=""><summary>x</summary>y</details>`, `<ul><li>x</li></ul>`,
	} {
		if still, err := new(canvas.Reader).Still(t.Context(), "", []byte(stays)); err != nil || !strings.Contains(string(still), stays) {
			t.Errorf("%s became %s, %v", stays, still, err)
		}
	}
}

// Parsing time is the number of html and body tags times that of their attributes, so documents with too many are
// refused, even if a script or a comment hides the tags from a simple reader.
func TestStillRefusesSlowDocuments(t *testing.T) {
	tags := func(n int, tag string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, tag, i)
		}
		return b.String()
	}
	for name, doc := range map[string]string{
		"many tags":        tags(50_000, "<html x%d>"),
		"many body tags":   "<p>" + tags(50_000, "<BODY\n x%d>"),
		"one large tag":    "<body" + tags(50_000, " x%d") + ">",
		"in a drawing":     "<svg><style>" + tags(50_000, "<body x%d>"),
		"after a comment":  "<script><!--</script>" + tags(50_000, "<body x%d>"),
		"without an end":   tags(50_000, "<body x%d "),
		"between many few": tags(31, "<html x%d>") + "<html" + tags(400, " y%d") + ">",
	} {
		if _, err := new(canvas.Reader).Still(t.Context(), "", []byte(doc)); err == nil || !strings.Contains(err.Error(), "more than 32 html and body tags") {
			t.Errorf("%s: %v", name, err)
		}
	}
	few := `<html lang=en><body style="color:red" class=x>` + tags(20, "&lt;body&gt; <b>%d</b> <!-- <body> -->")
	if _, err := new(canvas.Reader).Still(t.Context(), "", []byte(few)); err != nil {
		t.Errorf("a page about pages: %v", err)
	}
}

// A canvas waits for its turn while two others are read, and only its call's time limit ends the wait. Its turn comes
// before the next canvas of a conversation that is being read.
func TestACanvasWaitsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, kept := new(canvas.Reader), memoryStore{}
		hold := func() func() {
			leave, err := reader.Hold(t.Context(), "busy")
			if err != nil {
				t.Error(err)
			}
			return leave
		}
		first, second := hold(), hold()
		third := make(chan func(), 1)
		go func() { third <- hold() }()
		synctest.Wait()
		c := toolstest.New(canvas.New(kept.keep, reader, nil))
		c.Call.Session, c.Call.Untrusted = "other", true
		drawn := make(chan string, 1)
		go func() { drawn <- c.Want(t, "canvas", `{"html":"<p>hello"}`, "") }()
		time.Sleep(30 * time.Second)
		if len(kept) > 0 {
			t.Error("three documents were read at once")
		}
		first()
		synctest.Wait()
		if got := <-drawn; !strings.Contains(got, canvas.Folder) || len(kept) != 1 {
			t.Errorf("told %s, kept %d files", got, len(kept))
		}
		last := <-third // once the canvas was read

		late, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := reader.Still(late, "other", []byte("<p>hello")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a canvas that got no turn: %v", err)
		}
		second()
		last()
		if _, err := reader.Still(t.Context(), "other", []byte("<p>hello")); err != nil {
			t.Errorf("after all others: %v", err)
		}
	})
}
