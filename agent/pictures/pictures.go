// Package pictures makes a picture fit for a model: upright, small enough, and without what its camera wrote into it.
//
// pictures.go reads, shrinks and writes; orientation.go finds out which way a camera
// was held.
package pictures

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

// Errors that callers decide on.
var (
	// ErrNoPicture says that the bytes are no picture of a kind that can be read.
	ErrNoPicture = errors.New("it is no PNG, JPEG, GIF or WebP picture, or a damaged one")
	// ErrTooLarge says that a picture has more pixels than are read.
	ErrTooLarge = errors.New("the picture has more pixels than can be read: make it smaller first")
)

const (
	// Side is the longest side of what a model is shown, in pixels: models shrink
	// what is larger by themselves.
	Side = 1568
	// maxPixels bounds what is unpacked: four bytes each.
	maxPixels = 40_000_000
	// maxLossless is up to how many bytes a drawing or a screenshot stays as sharp as it is.
	maxLossless = 1 << 20
	quality     = 85 // of JPEG
	atOnce      = 2  // pictures that are unpacked at a time
)

// A Picture is a picture that a model can be shown.
type Picture struct {
	Data          []byte
	Type          string // image/png or image/jpeg
	Width, Height int
}

// A Fitter makes pictures fit for models, a few at a time: each takes much memory for
// a moment.
type Fitter struct{ slots chan struct{} }

// New makes a Fitter.
func New() *Fitter { return &Fitter{slots: make(chan struct{}, atOnce)} }

// IsPicture tells whether bytes begin as a picture does that Fit can read.
func IsPicture(head []byte) bool { return decoder(head) != nil }

// Fit makes a picture fit for a model. The same bytes give the same picture. Its errors
// are ErrNoPicture and ErrTooLarge, or ctx's.
func (f *Fitter) Fit(ctx context.Context, raw []byte) (Picture, error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return Picture{}, ctx.Err()
	}
	decode := decoder(raw)
	if decode == nil {
		return Picture{}, ErrNoPicture
	}
	size, err := sizeOf(raw)
	if err != nil || size.Width <= 0 || size.Height <= 0 {
		return Picture{}, ErrNoPicture
	}
	if size.Width > maxPixels/size.Height {
		return Picture{}, fmt.Errorf("%w (%d by %d)", ErrTooLarge, size.Width, size.Height)
	}
	whole, err := decode(raw)
	if err != nil {
		return Picture{}, ErrNoPicture
	}
	return encode(upright(shrink(whole), orientation(raw)), http.DetectContentType(raw) != "image/jpeg")
}

// decoder is what reads pictures that begin so; nil if nothing does. Of a moving picture
// it is the first frame.
func decoder(raw []byte) func([]byte) (image.Image, error) {
	switch http.DetectContentType(raw) {
	case "image/png":
		return func(b []byte) (image.Image, error) { return png.Decode(bytes.NewReader(b)) }
	case "image/jpeg":
		return func(b []byte) (image.Image, error) { return jpeg.Decode(bytes.NewReader(b)) }
	case "image/gif":
		return func(b []byte) (image.Image, error) { return gif.Decode(bytes.NewReader(b)) }
	case "image/webp":
		return func(b []byte) (image.Image, error) { return webp.Decode(bytes.NewReader(b)) }
	}
	return nil
}

// sizeOf reads how large a picture says that it is, without unpacking it.
func sizeOf(raw []byte) (image.Config, error) {
	r := bytes.NewReader(raw)
	switch http.DetectContentType(raw) {
	case "image/png":
		return png.DecodeConfig(r)
	case "image/jpeg":
		return jpeg.DecodeConfig(r)
	case "image/gif":
		return gif.DecodeConfig(r)
	}
	return webp.DecodeConfig(r)
}

// shrink is a picture whose longer side is at most Side.
func shrink(whole image.Image) image.Image {
	b := whole.Bounds()
	width, height := b.Dx(), b.Dy()
	longer := max(width, height)
	if longer <= Side {
		return whole
	}
	small := image.NewRGBA(image.Rect(0, 0, max(1, width*Side/longer), max(1, height*Side/longer)))
	draw.BiLinear.Scale(small, small.Bounds(), whole, b, draw.Src, nil)
	return small
}

// encode writes a picture: as it is where that may be a drawing and stays small, else as
// JPEG, on white.
func encode(made image.Image, lossless bool) (Picture, error) {
	p := Picture{Width: made.Bounds().Dx(), Height: made.Bounds().Dy()}
	var b bytes.Buffer
	if lossless {
		if err := png.Encode(&b, made); err != nil {
			return Picture{}, fmt.Errorf("encode a picture: %w", err)
		}
		if b.Len() <= maxLossless {
			p.Data, p.Type = b.Bytes(), "image/png"
			return p, nil
		}
		b.Reset()
		opaque := image.NewRGBA(image.Rect(0, 0, p.Width, p.Height))
		draw.Draw(opaque, opaque.Bounds(), image.White, image.Point{}, draw.Src)
		draw.Draw(opaque, opaque.Bounds(), made, made.Bounds().Min, draw.Over)
		made = opaque
	}
	if err := jpeg.Encode(&b, made, &jpeg.Options{Quality: quality}); err != nil {
		return Picture{}, fmt.Errorf("encode a picture: %w", err)
	}
	p.Data, p.Type = b.Bytes(), "image/jpeg"
	return p, nil
}
