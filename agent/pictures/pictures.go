// Package pictures makes pictures fit for a model: upright, small enough, and without
// what the camera added to the file.
//
// pictures.go reads, shrinks and writes pictures; png.go removes parts of a PNG that may be damaged and are not
// needed; orientation.go finds out how the camera was held; keep.go keeps pictures in a workspace.
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

// Errors that callers distinguish.
var (
	// ErrNoPicture is returned for bytes that are not a picture of a kind that can be read.
	ErrNoPicture = errors.New("it is not a PNG, JPEG, GIF or WebP picture, or it is damaged")
	// ErrTooLarge is returned for a picture that has too many pixels, or too many bytes, to be read.
	ErrTooLarge = errors.New("the picture has more pixels than can be read: make it smaller first")
)

const (
	// Side is the longest side of a picture for a model, in pixels. Models shrink larger pictures anyway.
	Side = 1568
	// maxPixels limits the pixels of a picture that is decoded; each takes four bytes.
	maxPixels = 40_000_000
	// maxLossless is the largest size in bytes of a picture that is kept as PNG, such as a drawing or a
	// screenshot.
	maxLossless = 1 << 20
	jpegQuality = 85 // of JPEG
	atOnce      = 2  // pictures that are decoded at the same time
)

// A Picture is a picture that is fit for a model.
type Picture struct {
	Data          []byte
	Type          string // image/png or image/jpeg
	Width, Height int
}

// A Fitter makes pictures fit for models. It works on only a few at once, because each briefly takes much
// memory.
type Fitter struct{ slots chan struct{} }

// New makes a Fitter.
func New() *Fitter { return &Fitter{slots: make(chan struct{}, atOnce)} }

// IsPicture reports whether head begins like a picture that Fit can read.
func IsPicture(head []byte) bool { return decoderFor(head) != nil }

// Fit makes a picture fit for a model. The same bytes give the same picture. Its errors are ErrNoPicture,
// ErrTooLarge, ctx's, or the encoder's.
func (f *Fitter) Fit(ctx context.Context, raw []byte) (Picture, error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return Picture{}, ctx.Err()
	}
	decode := decoderFor(raw)
	if decode == nil {
		return Picture{}, ErrNoPicture
	}
	shown := withoutExtras(raw)
	size, err := sizeOf(shown)
	if err != nil || size.Width <= 0 || size.Height <= 0 {
		return Picture{}, ErrNoPicture
	}
	if size.Width > maxPixels/size.Height {
		return Picture{}, fmt.Errorf("%w (%d by %d)", ErrTooLarge, size.Width, size.Height)
	}
	whole, err := decode(shown)
	if err != nil {
		return Picture{}, ErrNoPicture
	}
	return encode(turnUpright(shrink(whole), orientationOf(raw)), http.DetectContentType(raw) != "image/jpeg")
}

// decoderFor returns the function that decodes pictures that begin like raw; nil if there is none. It decodes
// only the first frame of an animation.
func decoderFor(raw []byte) func([]byte) (image.Image, error) {
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

// sizeOf reads the width and height that a picture declares, without decoding it.
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

// shrink returns the picture with its longer side at most Side pixels.
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

// encode writes a picture: as PNG if lossless is set and the file is small enough, and otherwise as JPEG on a
// white background.
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
	if err := jpeg.Encode(&b, made, &jpeg.Options{Quality: jpegQuality}); err != nil {
		return Picture{}, fmt.Errorf("encode a picture: %w", err)
	}
	p.Data, p.Type = b.Bytes(), "image/jpeg"
	return p, nil
}
