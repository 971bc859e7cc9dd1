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

func upload(file bus.File) *models.InputFileUpload {
	return &models.InputFileUpload{Filename: cmp.Or(file.Name, "file"), Data: bytes.NewReader(file.Data)}
}

// What Telegram takes as a photo: in bytes, in pixels of both sides together, and how
// much longer one side may be than the other.
const (
	mostPhoto  = 10_000_000
	mostSides  = 10_000
	mostAspect = 20
)

// isPhoto reports whether Telegram shows a file as a picture. It is of a few kinds, and
// not as large as others may be.
func isPhoto(content []byte) bool {
	if len(content) > mostPhoto {
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
	return err == nil && c.Width > 0 && c.Height > 0 && c.Width+c.Height <= mostSides &&
		c.Width <= mostAspect*c.Height && c.Height <= mostAspect*c.Width
}
