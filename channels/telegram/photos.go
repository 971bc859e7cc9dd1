package telegram

import (
	"bytes"
	"cmp"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"

	"github.com/go-telegram/bot/models"

	"parley/bus"
)

// inputFile returns a file in the form in which go-telegram/bot uploads it.
func inputFile(file bus.File) *models.InputFileUpload {
	return &models.InputFileUpload{Filename: cmp.Or(file.Name, "file"), Data: bytes.NewReader(file.Data)}
}

// What Telegram accepts as a photo: the size in bytes, the sum of width and height in pixels, and how many times
// longer one side may be than the other.
const (
	maxPhotoBytes  = 10_000_000
	maxPhotoSides  = 10_000
	maxPhotoAspect = 20
)

// isPhoto reports whether Telegram accepts a file as a photo: a PNG or JPEG image within the limits for photos.
func isPhoto(content []byte) bool {
	if len(content) > maxPhotoBytes {
		return false
	}
	var c image.Config
	var err error
	switch http.DetectContentType(content) {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(content))
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(content))
	default:
		return false
	}
	return err == nil && c.Width > 0 && c.Height > 0 && c.Width+c.Height <= maxPhotoSides &&
		c.Width <= maxPhotoAspect*c.Height && c.Height <= maxPhotoAspect*c.Width
}
