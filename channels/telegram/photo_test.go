package telegram_test

import (
	"bytes"
	"image"
	"image/png"
	"testing"

	"parley/bus"
)

func encodePNG(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A picture is sent as a photo, or as a file if Telegram does not accept it as a photo.
func TestPicturesAreSentAsPhotos(t *testing.T) {
	r := newRig(t)
	whole := encodePNG(t, 20, 10)
	files := []struct {
		content []byte
		photo   bool
	}{
		{whole, true},
		{encodePNG(t, 9000, 900), true},
		{encodePNG(t, 100, 1), false},             // one side is too long compared with the other
		{encodePNG(t, 9000, 1001), false},         // too large
		{whole[:len(whole)-20], false},            // truncated: the platform refuses it as a photo
		{[]byte("GIF89a"), false},                 // a GIF, which Telegram would show in another way
		{[]byte("\x89PNG\r\n\x1a\nwrong"), false}, // not a valid picture
	}
	for _, f := range files {
		if _, err := r.SendFile(t.Context(), address("5"), bus.File{Name: "chart.png", Data: f.content}, textPart("look")); err != nil {
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
