package telegram_test

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"parley/bus"
)

func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A picture is seen as one; what Telegram does not take as such goes as a file.
func TestPicturesAreSeen(t *testing.T) {
	r := newRig(t)
	whole := picture(t, 20, 10)
	files := []struct {
		content []byte
		photo   bool
	}{
		{whole, true},
		{picture(t, 9000, 900), true},
		{picture(t, 100, 1), false},               // too long for its width
		{picture(t, 9000, 1001), false},           // too large
		{whole[:len(whole)-20], false},            // cut off: the platform refuses it as a picture
		{[]byte("GIF89a"), false},                 // shown otherwise
		{[]byte("\x89PNG\r\n\x1a\nwrong"), false}, // none
	}
	for _, f := range files {
		if _, err := r.SendFile(t.Context(), at("5"), bus.File{Name: "chart.png", Data: f.content}, span("look")); err != nil {
			t.Fatal(err)
		}
	}
	sent := r.server.Sent(5)
	if len(sent) != len(files) {
		t.Fatalf("%d arrived of %d", len(sent), len(files))
	}
	for i, m := range sent {
		if m.File == nil || m.File.Photo != files[i].photo || m.Text != "look" || !bytes.Equal(m.File.Data, files[i].content) {
			t.Errorf("file %d arrived as %+v", i, m.File)
		}
	}
}
