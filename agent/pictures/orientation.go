package pictures

import (
	"bytes"
	"encoding/binary"
	"image"
)

// The lowest and the highest value of the Exif tag Orientation. It says how the camera was held; 1 is upright.
const (
	uprightWay = 1
	lastWay    = 8
)

// orientationOf returns the Orientation of a JPEG, or uprightWay if the file doesn't contain one.
func orientationOf(raw []byte) int {
	if !bytes.HasPrefix(raw, []byte{0xFF, 0xD8}) {
		return uprightWay
	}
	for rest := raw[2:]; len(rest) > 4 && rest[0] == 0xFF; {
		marker, size := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if marker == 0xDA || size < 2 || size+2 > len(rest) { // the image data begins
			break
		}
		if exif, ok := bytes.CutPrefix(rest[4:2+size], []byte("Exif\x00\x00")); ok && marker == 0xE1 {
			return orientationTag(exif)
		}
		rest = rest[2+size:]
	}
	return uprightWay
}

// orientationTag returns the tag's value in the first directory of a TIFF header, or uprightWay if there is
// none.
func orientationTag(exif []byte) int {
	const tag, entry = 0x0112, 12
	var order binary.ByteOrder = binary.LittleEndian
	if bytes.HasPrefix(exif, []byte("MM")) {
		order = binary.BigEndian
	}
	if len(exif) < 8 {
		return uprightWay
	}
	at := uint64(order.Uint32(exif[4:]))
	if at+2 > uint64(len(exif)) {
		return uprightWay
	}
	entries := exif[at+2:]
	for n := order.Uint16(exif[at:]); n > 0 && len(entries) >= entry; n-- {
		if order.Uint16(entries) == tag {
			if way := int(order.Uint16(entries[8:])); way >= uprightWay && way <= lastWay {
				return way
			}
			return uprightWay
		}
		entries = entries[entry:]
	}
	return uprightWay
}

// turnUpright returns a picture turned and mirrored according to its Orientation.
func turnUpright(p image.Image, way int) image.Image {
	if way == uprightWay {
		return p
	}
	b := p.Bounds()
	width, height := b.Dx(), b.Dy()
	turned := image.NewRGBA(image.Rect(0, 0, width, height))
	if way > 4 {
		turned = image.NewRGBA(image.Rect(0, 0, height, width))
	}
	for y := range height {
		for x := range width {
			toX, toY := x, y
			switch way {
			case 2:
				toX = width - 1 - x
			case 3:
				toX, toY = width-1-x, height-1-y
			case 4:
				toY = height - 1 - y
			case 5:
				toX, toY = y, x
			case 6:
				toX, toY = height-1-y, x
			case 7:
				toX, toY = height-1-y, width-1-x
			case 8:
				toX, toY = y, width-1-x
			}
			turned.Set(toX, toY, p.At(b.Min.X+x, b.Min.Y+y))
		}
	}
	return turned
}
