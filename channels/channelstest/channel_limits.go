package channelstest

import (
	"fmt"
	"strings"

	"parley/channels"
	"parley/channels/markup"
)

// checkLimits checks that the platform accepts every text that was rendered within the channel's limits, in a single
// call: an adapter that sends a text again because its markup was invalid needs two. It also checks the longest edit.
func checkLimits(r *channelRun) {
	limits := r.channel.Limits()
	length := limits.Length
	texts := []string{
		strings.Repeat("x", length), strings.Repeat("😀", length), strings.Repeat("<&>*_~`[] ", length/4),
		strings.Repeat("**bold** _italic_ `code` [a link](https://a.example/b?c=d&e=f)\n\n- item\n\n> quote\n\n```go\nx < y\n```\n\n", length/40),
	}
	sent := 0
	for i, text := range texts {
		for n, piece := range markup.Render(text, limits.Dialect, limits.Length) {
			r.send(1, channels.Part{Key: fmt.Sprint("k", i, "/", n), Text: piece.Text, Plain: piece.Plain})
			sent++
		}
	}
	if n := r.platform.Calls(Sending); n != sent {
		r.Errorf("%d parts took %d calls", sent, n)
	}
	if shown := r.platform.Shown(1); len(shown) != sent {
		r.Errorf("the chat shows %d of %d messages", len(shown), sent)
	}
	editor, can := channels.AsEditor(r.channel)
	if !can {
		return
	}
	longest := strings.Repeat("y", length)
	if limits.EditBytes > 0 {
		longest = bytesOf(limits.EditBytes)
	}
	id := r.send(2, plainPart("edited", "hi"))
	if err := editor.Edit(r.Context(), r.platform.Address(2), id, channels.Part{Key: "edited", Text: longest, Plain: longest}); err != nil {
		r.Errorf("the longest edit: %v", err)
	}
}

// bytesOf returns a text of n bytes, in two-byte characters.
func bytesOf(n int) string { return strings.Repeat("é", n/2) }

func checkTooLong(r *channelRun) {
	limits := r.channel.Limits()
	text := strings.Repeat("x", max(limits.Length, r.MaxAcceptedLength)+1)
	_, err := r.channel.Send(r.Context(), r.platform.Address(1), channels.Part{Key: "k", Text: text, Plain: text})
	if fault := r.faultOf("too long", err); fault.Fault != channels.Rejected {
		r.Errorf("a text that is too long gives %v, want %s", fault, channels.Rejected)
	}
	if editor, can := channels.AsEditor(r.channel); can && limits.EditBytes > 0 {
		id := r.send(1, plainPart("edited", "hi"))
		text := bytesOf(limits.EditBytes + 2)
		err := editor.Edit(r.Context(), r.platform.Address(1), id, channels.Part{Key: "edited", Text: text, Plain: text})
		if fault := r.faultOf("too long for an edit", err); fault.Fault != channels.Rejected {
			r.Errorf("an edit that is too long gives %v, want %s", fault, channels.Rejected)
		}
	}
	files, can := channels.AsFileSender(r.channel)
	if most := channels.CaptionLength(r.channel, limits.Length); can && most != limits.Length {
		for length, taken := range map[int]bool{most: true, most + 1: false} {
			text := strings.Repeat("x", length)
			_, err := files.SendFile(r.Context(), r.platform.Address(2), someFile(), channels.Part{Key: fmt.Sprint("c", length), Text: text, Plain: text})
			if (err == nil) != taken {
				r.Errorf("a text of %d units beside a file: %v, and CaptionLength is %d", length, err, most)
			}
		}
	}
}
