package parleytest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// Picture returns a picture of one color, which Beholder recognizes.
func Picture(t *testing.T, red uint8) []byte {
	t.Helper()
	p := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		p.Set(i%8, i/8, color.RGBA{R: red, A: 255})
	}
	var b bytes.Buffer
	Must(t, png.Encode(&b, p))
	return b.Bytes()
}
